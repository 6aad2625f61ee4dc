//! Why a live server or an offline tool ends: one sentence.
//!
//! For: exit statuses. Must never know: where sentences are shown.

use cachewright_live::io::open::OpenError;
use std::path::Path;

/// Why a live server, or an offline tool, ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiveError {
    /// The stack, a device or an address is not as expected. Nothing was written.
    #[error("{0}")]
    Refused(String),
    /// Input or output failed.
    #[error("{0}")]
    Failed(String),
    /// Another server has the devices now: this one is not to be started again by itself.
    #[error("{0}")]
    TakenOver(String),
}

impl LiveError {
    /// The exit status of a process that ends so: 2 if it was refused, 1 if it failed, 3 if another
    /// server has taken its devices over.
    pub fn status(&self) -> u8 {
        match self {
            LiveError::Refused(_) => 2,
            LiveError::Failed(_) => 1,
            LiveError::TakenOver(_) => 3,
        }
    }

    /// A refusal of a stack file.
    pub(crate) fn stack(origin: &Path, message: impl std::fmt::Display) -> LiveError {
        LiveError::Refused(format!("{}: {message}", origin.display()))
    }
}

impl From<OpenError> for LiveError {
    fn from(error: OpenError) -> LiveError {
        LiveError::Refused(error.to_string())
    }
}
