//! Answers as JSON: documents that callers get, files of result folders, keys of kept answers.
//!
//! The order of keys is that of the fields (see `cachewright-result`).

use crate::ExperimentError;
use serde::Serialize;
use serde_json::Value;

/// An answer as callers get it. Errors: a value that JSON cannot say, which no answer has.
pub fn document(answer: &impl Serialize) -> Result<Value, ExperimentError> {
    serde_json::to_value(answer).map_err(refused)
}

/// An answer, or a part of one, as text in one line. Errors: like [`document`].
pub fn text(answer: &impl Serialize) -> Result<String, ExperimentError> {
    serde_json::to_string(answer).map_err(refused)
}

/// An answer as the text of a file for people and programs. Errors: like [`document`].
pub fn page(answer: &impl Serialize) -> Result<String, ExperimentError> {
    Ok(serde_json::to_string_pretty(answer).map_err(refused)? + "\n")
}

fn refused(error: serde_json::Error) -> ExperimentError {
    ExperimentError::Answer(error.to_string())
}
