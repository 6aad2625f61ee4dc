//! The table of layouts: one line per layout, read by everything else.
//!
//! For: names, sentences, sources and settings of every layout. Must never know: who asks. Adding a
//! layout is one file and one line in `layouts!` below.

use crate::Layout;
use cachewright_types::declare::Declared;
use cachewright_types::registry::{settings, unknown};
use cachewright_types::{RegistryError, Value};

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

macro_rules! layouts {
    ($($layout:ty),* $(,)?) => {
        cachewright_types::registry!("layout": $($layout),*);

        /// The layout registered as `name`, with `pairs` set over its defaults.
        pub fn boxed(
            name: &str,
            pairs: &[(String, Value)],
        ) -> Result<Box<dyn Layout>, RegistryError> {
            $(if <$layout as Registered>::ENTRY.name == name {
                let settings = settings("layout", <$layout>::ENTRY.name, pairs)?;
                return Ok(Box::new(<$layout>::new(&settings)));
            })*
            Err(unknown("layout", name, &entries()))
        }
    };
}

layouts! {
    crate::striped::Striped,
    crate::dedicated::Dedicated,
    crate::flashblox::FlashBlox,
    crate::on_demand::OnDemand,
}
