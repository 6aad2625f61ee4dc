//! The table of layouts: one line per layout, read by all other code.
//!
//! For: names, sentences, sources and settings of every layout. Must never know: any caller. A new
//! layout is one file and one line in `layouts!` below.

use crate::layout::ChannelLayout;
use crate::layout::entry::{Entry, Registered};
use cachewright_types::registry::{settings, unknown};
use cachewright_types::{RegistryError, Value};

macro_rules! layouts {
    ($($layout:ty),* $(,)?) => {
        cachewright_types::registry!("layout": $($layout),*);

        /// The layout registered as `name`, with `pairs` set over its defaults.
        pub fn boxed(
            name: &str,
            pairs: &[(String, Value)],
        ) -> Result<Box<dyn ChannelLayout>, RegistryError> {
            $(if <$layout as Registered>::ENTRY.name == name {
                let settings = settings("layout", <$layout>::ENTRY.name, pairs)?;
                return Ok(Box::new(<$layout>::new(&settings)));
            })*
            Err(unknown("layout", name, &entries()))
        }
    };
}

layouts! {
    crate::layout::striped::StripedLayout,
    crate::layout::dedicated::Dedicated,
    crate::layout::flashblox::FlashBlox,
    crate::layout::on_demand::OnDemand,
}
