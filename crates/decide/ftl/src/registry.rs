//! What the two tables of schemes have in common.
//!
//! For: the facts of a scheme and the refusal of unknown names. Must never know: any scheme. The
//! tables themselves stand in `separation` and `reclaim`; adding a scheme is one file and one line.

use crate::FtlError;
use cachewright_types::nearest;

/// What a scheme needs beyond the writes themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The lifetime of each page when it is written (a pre-pass over the whole trace).
    Future,
    /// A trained model.
    Model,
}

/// What a user can know of one scheme without reading code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name in stack files.
    pub name: &'static str,
    /// One sentence in lower case.
    pub doc: &'static str,
    /// The paper or code it follows.
    pub source: &'static str,
    /// What must be provided before a run.
    pub needs: &'static [Need],
}

/// The refusal of a name that no entry has.
pub(crate) fn unknown(stage: &'static str, name: &str, entries: &[&Entry]) -> FtlError {
    let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
    let hint = match nearest(name, names.iter().copied()) {
        Some(near) => format!("; nearest is `{near}`"),
        None => String::new(),
    };
    FtlError::Unknown { stage, name: name.to_owned(), known: names.join(", "), hint }
}
