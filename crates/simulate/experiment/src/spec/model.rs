//! The keys `tenant.model` and `cache.model`.
//!
//! For: where trained models lie. Must never know: what is in them, who asks them. They are read
//! when a case is run whose partitioner needs them; others do not hear them, so that partitioners
//! can be compared on one file.

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
