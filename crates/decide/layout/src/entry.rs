//! What stands in the registry of layouts: needs, facts, and the trait of an entry.
//!
//! For: every layout and the table that lists them. Must never know: any layout.

use crate::Layout;
use cachewright_types::declare::Declared;

/// What a layout needs beyond weights and wishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A drive that shows its channels apart.
    Channels,
}

impl Need {
    /// The word used in tables and errors.
    pub fn word(self) -> &'static str {
        match self {
            Need::Channels => "channels",
        }
    }
}

/// What a user can know of one layout without reading code.
pub type Entry = cachewright_types::registry::Entry<Need>;

/// A layout that stands in the registry.
pub trait Registered: Layout + Sized + 'static {
    /// Its settings.
    type Settings: Declared;
    /// Its facts.
    const ENTRY: Entry;
    /// The layout under its settings.
    fn new(settings: &Self::Settings) -> Self;
}
