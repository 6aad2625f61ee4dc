//! The keys `tenant.model`, `cache.model`, `cache.models`, `cache.workload` and
//! `cache.characterize`.
//!
//! For: where trained models lie. Must never know: what is in them, what uses them. A model is read
//! when a case is run whose partitioner or policy needs it. Other schemes ignore it, so that one
//! file can compare them.

use crate::Scheme;
use crate::tables::CacheTable;
use cachewright_policy::characterize::Characterizer;
use cachewright_types::{Nanos, Value, parse_duration};
use std::path::{Path, PathBuf};

/// How often a characterizer is asked unless a stack says otherwise.
const MINUTE: Nanos = Nanos(60_000_000_000);

/// A file of a trained model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFile {
    /// As written in the stack file.
    pub text: String,
    /// Its path, a relative one taken from the stack file's folder.
    pub path: PathBuf,
}

impl ModelFile {
    /// The file of a text, relative ones below `folder`.
    pub fn new(text: &str, folder: &Path) -> ModelFile {
        ModelFile { text: text.to_owned(), path: folder.join(text) }
    }
}

/// Models of caching by the kind of workload they were trained on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KindsSpec {
    /// In order of the names.
    pub files: Vec<(String, ModelFile)>,
    /// The kind to begin with.
    pub first: Option<String>,
    /// What says which kind runs.
    pub characterizer: Option<CharacterizerSpec>,
}

/// A characterizer.
#[derive(Clone, Debug, PartialEq)]
pub struct CharacterizerSpec {
    /// Its name and settings.
    pub named: Scheme,
    /// Its model.
    pub model: ModelFile,
    /// How often it is asked.
    pub every: Nanos,
}

impl CharacterizerSpec {
    /// The characterizer that the cache's table names, if any.
    fn new(table: &CacheTable, folder: &Path) -> Result<Option<CharacterizerSpec>, String> {
        let Some(mut named) = table.characterize.clone() else { return Ok(None) };
        let mut take = |key: &str| {
            let index = named.pairs.iter().position(|(name, _)| name == key)?;
            Some(named.pairs.swap_remove(index).1)
        };
        let model = match take("model") {
            Some(Value::Text(text)) => ModelFile::new(&text, folder),
            Some(_) => {
                let expected = "expected a file in quotes";
                return Err(format!("`cache.characterize.model`: found no text, {expected}"));
            }
            None => {
                let expected = "expected the file of its model";
                return Err(format!("`cache.characterize`: found no `model`, {expected}"));
            }
        };
        let every = match take("every") {
            None => MINUTE,
            Some(Value::Text(text)) => parse_duration(&text)
                .map_err(|error| format!("`cache.characterize.every`: {error}"))?,
            Some(_) => Nanos(0),
        };
        if every.0 == 0 {
            let expected = "expected a time above 0, such as \"60s\"";
            return Err(format!("`cache.characterize.every`: found none, {expected}"));
        }
        named.pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        cachewright_policy::characterize::boxed(&named.name, &named.pairs)
            .map_err(|error| format!("`cache.characterize`: {error}"))?;
        Ok(Some(CharacterizerSpec { named, model, every }))
    }

    /// One with its model, which has observed nothing. Errors: a setting or a model is refused.
    pub fn with_model(&self, model: &[u8]) -> Result<Box<dyn Characterizer>, String> {
        let made = cachewright_policy::characterize::boxed(&self.named.name, &self.named.pairs);
        let mut made = made.map_err(|error| error.to_string())?;
        made.learn(model)?;
        Ok(made)
    }
}

impl KindsSpec {
    /// Errors: a characterizer tells only kinds apart of which there are no models.
    pub fn check_kinds(&self, characterizer: &dyn Characterizer) -> Result<(), String> {
        let known: Vec<&str> = self.files.iter().map(|(kind, _)| kind.as_str()).collect();
        let kinds = characterizer.kinds();
        if kinds.iter().any(|kind| known.contains(&kind.as_str())) {
            return Ok(());
        }
        let (classified, known) = (kinds.join(", "), known.join(", "));
        Err(format!("it tells {classified} apart, expected some of {known}"))
    }

    /// The models that the cache's table names. Errors: a first kind without a model, or none said
    /// where there are several.
    pub fn new(table: &CacheTable, folder: &Path) -> Result<KindsSpec, String> {
        let models = table.models.0.iter();
        let files: Vec<(String, ModelFile)> =
            models.map(|(kind, text)| (kind.clone(), ModelFile::new(text, folder))).collect();
        let kinds: Vec<&str> = files.iter().map(|(kind, _)| kind.as_str()).collect();
        let first = match table.workload.clone() {
            None if kinds.len() > 1 => {
                let kinds = kinds.join(", ");
                let found = "`cache.workload`: found none beside several models";
                return Err(format!("{found}, expected the kind to begin with: one of {kinds}"));
            }
            None => kinds.first().map(|kind| (*kind).to_owned()),
            Some(kind) if kinds.contains(&kind.as_str()) => Some(kind),
            Some(kind) => {
                let expected = match kinds.is_empty() {
                    true => "models of it in `cache.models`".to_owned(),
                    false => format!("one of {}", kinds.join(", ")),
                };
                return Err(format!("`cache.workload`: found `{kind}`, expected {expected}"));
            }
        };
        let characterizer = CharacterizerSpec::new(table, folder)?;
        Ok(KindsSpec { files, first, characterizer })
    }
}
