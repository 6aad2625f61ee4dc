//! What an import refuses, in words.
//!
//! For: one error type. Must never know: tags. Units: lines.

use std::fmt;

/// Why a configuration was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// The file; empty until it is known.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// What was found, and what was expected.
    pub message: String,
}

impl ImportError {
    /// A refusal of a line.
    pub fn on_line(line: u32, message: String) -> ImportError {
        ImportError { file: String::new(), line, message }
    }

    /// The refusal with its file.
    pub fn in_file(self, file: &str) -> ImportError {
        ImportError { file: file.to_owned(), ..self }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}, ", self.file)?;
        }
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ImportError {}
