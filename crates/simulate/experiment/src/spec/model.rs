//! The keys `tenant.model`, `cache.model`, `cache.models` and `cache.workload`.
//!
//! For: where trained models lie. Must never know: what is in them, who asks them. They are read
//! when a case is run whose partitioner or policy needs them; others do not hear them, so that
//! schemes can be compared on one file.

use super::section::Section;
use std::path::{Path, PathBuf};

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
}

/// Models of caching by the kind of workload they were trained on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindsSpec {
    /// In order of the names.
    pub files: Vec<(String, ModelFile)>,
    /// The kind to begin with.
    pub first: Option<String>,
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
        Ok(KindsSpec { files, first })
    }
}
