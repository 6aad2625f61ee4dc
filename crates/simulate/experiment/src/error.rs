//! Why an experiment could not be run, in the user's words.

use cachewright_curve::CurveError;
use cachewright_system::RecordError;
use cachewright_trace::TraceError;
use cachewright_types::SettingError;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why an experiment could not be run.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The stack file or an option is wrong.
    #[error("{origin}: {message}", origin = origin.display())]
    Spec {
        /// The stack file.
        origin: PathBuf,
        /// Key, what was found and what was expected.
        message: String,
    },
    /// An option of the call is wrong.
    #[error("{0}")]
    Option(String),
    /// A trace could not be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A curve could not be measured as asked.
    #[error(transparent)]
    Curve(#[from] CurveError),
    /// A drive could not go on.
    #[error("{0}")]
    Flash(String),
    /// A result could not be written or read.
    #[error("{path}: {message}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// An answer could not be written as JSON.
    #[error("answer: {0}")]
    Answer(String),
    /// A policy of code outside failed, or broke a rule of caches.
    #[error("{0}")]
    Policy(String),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The caller asked to stop a sweep whose answers are kept.
    #[error("cancelled; {}", kept_sentence(*kept, *cases, out))]
    Stopped {
        /// Cases whose answers are in the folder.
        kept: usize,
        /// Cases of the sweep.
        cases: usize,
        /// The result folder.
        out: PathBuf,
    },
}

impl From<SettingError> for ExperimentError {
    fn from(error: SettingError) -> ExperimentError {
        ExperimentError::Option(error.to_string())
    }
}

fn kept_sentence(kept: usize, cases: usize, out: &Path) -> String {
    let out = out.display();
    format!("{kept} of {cases} cases are kept in {out}; the same command goes on from there")
}

impl ExperimentError {
    /// Why a file of a result could not be read or written.
    pub fn io(path: &Path, error: impl Display) -> ExperimentError {
        ExperimentError::Io { path: path.to_owned(), message: error.to_string() }
    }

    /// What is wrong with the stack file at `origin`, or with an option of a call on it.
    pub fn spec(origin: &Path, message: impl Into<String>) -> ExperimentError {
        ExperimentError::Spec { origin: origin.to_owned(), message: message.into() }
    }

    /// Whether the caller asked to stop.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            ExperimentError::Cancelled
                | ExperimentError::Stopped { .. }
                | ExperimentError::Record(RecordError::Cancelled)
        )
    }

    /// How much of a cancelled sweep is kept, if that is known.
    pub fn kept(&self) -> Option<String> {
        match self {
            ExperimentError::Stopped { kept, cases, out } => {
                Some(kept_sentence(*kept, *cases, out))
            }
            _ => None,
        }
    }
}
