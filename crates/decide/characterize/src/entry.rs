//! What stands in the registry of characterizers: needs, facts, and the trait of an entry.
//!
//! For: every characterizer and the table that lists them. Must never know: any characterizer.

use crate::Features;
use cachewright_types::declare::Declared;

/// What a characterizer needs beyond requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A trained model, through [`Characterizer::learn`].
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

/// What a characterizer sees of requests; [`crate::windowed::Windowed`] judges windows of it.
pub trait Registered: Features + Sized + 'static {
    /// Its settings.
    type Settings: Declared;
    /// Its facts.
    const ENTRY: Entry;
    /// One that has heard nothing.
    fn new(settings: &Self::Settings) -> Self;
}
