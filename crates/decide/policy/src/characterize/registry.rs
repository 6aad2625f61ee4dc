//! The table of characterizers: one line per characterizer, read by all other code.
//!
//! For: names, sentences, sources and settings of every characterizer. Must never know: any caller.
//! A new characterizer is one file and one line in `characterizers!` below.

use crate::characterize::entry::{Entry, Registered};
use crate::characterize::windowed::Windowed;
use crate::characterize::{Characterizer, RequestFeatures};
use cachewright_types::registry::{settings, unknown};
use cachewright_types::{RegistryError, Value};

macro_rules! characterizers {
    ($($characterizer:ty),* $(,)?) => {
        cachewright_types::registry!("characterizer": $($characterizer),*);

        /// The characterizer registered as `name`, with `pairs` set over its defaults; it has no
        /// model yet.
        pub fn boxed(
            name: &str,
            pairs: &[(String, Value)],
        ) -> Result<Box<dyn Characterizer>, RegistryError> {
            let features = features(name, pairs)?;
            Ok(Box::new(Windowed::new(entry(name)?.name, features)))
        }

        /// What the characterizer registered as `name` sees of requests.
        pub fn features(
            name: &str,
            pairs: &[(String, Value)],
        ) -> Result<Box<dyn RequestFeatures>, RegistryError> {
            $(if <$characterizer as Registered>::ENTRY.name == name {
                let name = <$characterizer>::ENTRY.name;
                let settings = settings("characterizer", name, pairs)?;
                return Ok(Box::new(<$characterizer>::new(&settings)));
            })*
            Err(unknown("characterizer", name, &entries()))
        }
    };
}

characterizers! {
    crate::characterize::rc_rnn::RcRnnFeatures,
    crate::characterize::twsd::Twsd,
    crate::characterize::frequency::Frequency,
    crate::characterize::io_size::IoSize,
}
