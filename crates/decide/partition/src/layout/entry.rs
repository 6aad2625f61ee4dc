//! Entries of the registry of layouts: their facts and their needs.
//!
//! For: every layout and the table that lists them. Must never know: any layout.

use crate::layout::ChannelLayout;
use cachewright_types::declare::Declared;

/// What a layout needs beyond weights and wishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A drive that exposes its channels.
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

/// A layout in the registry.
pub trait Registered: ChannelLayout + Sized + 'static {
    /// Its settings.
    type Settings: Declared;
    /// Its facts.
    const ENTRY: Entry;
    /// The layout under its settings.
    fn new(settings: &Self::Settings) -> Self;
}
