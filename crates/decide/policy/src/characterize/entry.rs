//! Entries of the registry of characterizers: their facts and their needs.
//!
//! For: every characterizer and the table that lists them. Must never know: any characterizer.

use crate::characterize::RequestFeatures;
use cachewright_types::declare::Declared;

/// What a characterizer needs beyond requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A trained model, through [`crate::characterize::Characterizer::learn`].
    Model,
}

impl Need {
    /// The word used in tables and errors.
    pub fn word(self) -> &'static str {
        match self {
            Need::Model => "model",
        }
    }
}

/// What a user can know of one characterizer without reading code.
pub type Entry = cachewright_types::registry::Entry<Need>;

/// The features of a characterizer in the registry; [`super::Windowed`] classifies windows
/// of them.
pub trait Registered: RequestFeatures + Sized + 'static {
    /// Its settings.
    type Settings: Declared;
    /// Its facts.
    const ENTRY: Entry;
    /// Features before the first request.
    fn new(settings: &Self::Settings) -> Self;
}
