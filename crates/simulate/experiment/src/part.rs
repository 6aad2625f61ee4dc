//! A file that appears whole or not at all.
//!
//! For: everything written into a result folder. Must never know: what is written. A part stands
//! beside its target under a name of its own, so that no other writer touches it, in this process
//! or another; it is removed unless it was finished.

use crate::ExperimentError;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Parts begun by this process.
static PARTS: AtomicU64 = AtomicU64::new(0);

/// A file that is being written.
pub(crate) struct PartialFile {
    part: PathBuf,
    target: PathBuf,
    finished: bool,
}

impl PartialFile {
    /// The part of what will stand at `target`.
    pub fn new(target: &Path) -> PartialFile {
        let number = PARTS.fetch_add(1, Ordering::Relaxed);
        let part = target.with_extension(format!("{}-{number}.part", std::process::id()));
        PartialFile { part, target: target.to_owned(), finished: false }
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.part
    }

    /// Puts what was written in its place. Errors: the operating system's.
    pub fn finish(mut self) -> Result<(), ExperimentError> {
        std::fs::rename(&self.part, &self.target).map_err(|error| self.failure(&error))?;
        self.finished = true;
        Ok(())
    }

    /// Why the target could not be written.
    pub fn failure(&self, error: &dyn std::fmt::Display) -> ExperimentError {
        ExperimentError::io(&self.target, error)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.finished {
            // There may be none; and what failed is said already.
            let _ = std::fs::remove_file(&self.part);
        }
    }
}
