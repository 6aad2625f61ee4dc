//! The keys `tenant.model`, `cache.model`, `cache.models`,
//! `cache.workload` and `cache.characterize`.
//!
//! For: where trained models lie. Must never know: what is in them, who asks them. They are read
//! when a case is run whose partitioner or policy needs them; others do not hear them, so that
//! schemes can be compared on one file.

use super::Named;
use super::section::Section;
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
    /// The model of a table, if it names one.
    pub fn from_section(section: &Section<'_>, folder: &Path) -> Result<Option<ModelFile>, String> {
        let text = section.optional_text("model")?;
        Ok(text.map(|text| ModelFile { path: folder.join(&text), text }))
    }

    /// The models of a table that take over while a run goes on. Errors: no list of texts; some
    /// without a first one.
    pub fn updates(section: &Section<'_>, folder: &Path) -> Result<Vec<ModelFile>, String> {
        const KEY: &str = "model_updates";
        let Some(value) = section.get(KEY) else { return Ok(Vec::new()) };
        let refuse = || section.refuse(KEY, value, "a list of files in quotes");
        let texts = value.as_array().ok_or_else(refuse)?.iter().map(|one| one.as_str());
        let texts: Option<Vec<&str>> = texts.collect();
        let files = texts.ok_or_else(refuse)?.into_iter().map(str::to_owned);
        if section.get("model").is_none() {
            return Err(section.refuse(KEY, value, "a first one in `model` as well"));
        }
        Ok(files.map(|text| ModelFile { path: folder.join(&text), text }).collect())
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
    pub judge: Option<JudgeSpec>,
}

/// A characterizer.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeSpec {
    /// Its name and settings.
    pub named: Named,
    /// Its model.
    pub model: ModelFile,
    /// How often it is asked.
    pub every: Nanos,
}

impl JudgeSpec {
    /// The characterizer that the cache's table names, if any.
    fn from_section(section: &Section<'_>, folder: &Path) -> Result<Option<JudgeSpec>, String> {
        let mut named = section.named("characterize", "")?;
        if named.name.is_empty() {
            return Ok(None);
        }
        let mut take = |key: &str| {
            let at = named.pairs.iter().position(|(name, _)| name == key)?;
            Some(named.pairs.swap_remove(at).1)
        };
        let model = match take("model") {
            Some(Value::Text(text)) => ModelFile { path: folder.join(&text), text },
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
        named.pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
        cachewright_characterize::boxed(&named.name, &named.pairs)
            .map_err(|error| format!("`cache.characterize`: {error}"))?;
        Ok(Some(JudgeSpec { named, model, every }))
    }
}

impl KindsSpec {
    /// The models that the cache's table names. Errors: a first kind without a model, or none said
    /// where there are several.
    pub fn from_section(section: &Section<'_>, folder: &Path) -> Result<KindsSpec, String> {
        let files: Vec<(String, ModelFile)> = section
            .texts("models")?
            .into_iter()
            .map(|(kind, text)| (kind, ModelFile { path: folder.join(&text), text }))
            .collect();
        let kinds: Vec<&str> = files.iter().map(|(kind, _)| kind.as_str()).collect();
        let first = match section.optional_text("workload")? {
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
        let judge = JudgeSpec::from_section(section, folder)?;
        Ok(KindsSpec { files, first, judge })
    }
}
