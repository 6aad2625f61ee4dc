//! A document of one call in its result folder.
//!
//! For: `mrc.json` and `plan.json`: nothing of another stack is replaced unless asked for, and a
//! document appears whole or not at all. Must never know: what a document says, how stacks are told
//! apart.

use crate::folder::check_owner;
use crate::store::write_document;
use crate::{ExperimentError, Spec};
use serde::Serialize;
use std::path::Path;

/// Where a document goes; nothing is written without a folder.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The result folder.
    pub folder: Option<&'a Path>,
    /// The document's file.
    pub file: &'static str,
}

impl Place<'_> {
    /// Makes the folder. Errors: a file is in its place, the document there is of another stack and
    /// `force` does not say to replace it, the operating system's.
    pub fn claim(&self, spec: &Spec, force: bool) -> Result<(), ExperimentError> {
        let Some(folder) = self.folder else { return Ok(()) };
        let refuse = |origin: &Path, message: String| Err(ExperimentError::spec(origin, message));
        if folder.is_file() {
            return refuse(folder, "found a file, expected a folder for results".to_owned());
        }
        let failure = |path: &Path, error: &std::io::Error| ExperimentError::Io {
            path: path.to_owned(),
            message: error.to_string(),
        };
        std::fs::create_dir_all(folder).map_err(|error| failure(folder, &error))?;
        if force { Ok(()) } else { check_owner(folder, self.file, spec, "--force") }
    }

    /// Writes the document.
    pub fn write(&self, document: &impl Serialize) -> Result<(), ExperimentError> {
        match self.folder {
            Some(folder) => write_document(&folder.join(self.file), document),
            None => Ok(()),
        }
    }
}
