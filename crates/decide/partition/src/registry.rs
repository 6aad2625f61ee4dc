//! The table of partitioners: one line per partitioner, read by everything else.
//!
//! For: names, sentences, sources, needs and settings of every partitioner. Must never know: who
//! asks. Adding a partitioner is one file and one line in `partitioners!` below.

use crate::Partitioner;
use cachewright_types::settings::Settings;
use cachewright_types::{Seed, SettingError, SettingSpec, Value, nearest};
use thiserror::Error;

/// What a partitioner needs beyond counts of accesses and hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A miss-ratio curve of each tenant's last interval.
    Curve,
    /// A goal per tenant.
    Goal,
    /// A trained model per tenant.
    Model,
    /// Knowledge of the next interval.
    Future,
}

impl Need {
    /// The word used in tables and errors.
    pub fn word(self) -> &'static str {
        match self {
            Need::Curve => "curve",
            Need::Goal => "goal",
            Need::Model => "model",
            Need::Future => "future",
        }
    }
}

/// What a user can know of one partitioner without reading code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name in stack files.
    pub name: &'static str,
    /// One sentence in lower case.
    pub doc: &'static str,
    /// The paper it follows.
    pub source: &'static str,
    /// What must be provided before a run.
    pub needs: &'static [Need],
}

/// A partitioner that stands in the registry.
pub trait Registered: Partitioner + Sized + 'static {
    /// Its settings, with defaults as in its source.
    type Settings: Settings;
    /// Its facts.
    const ENTRY: Entry;
    /// A partitioner of `tenants` tenants that has seen nothing.
    fn new(settings: &Self::Settings, tenants: usize, seed: Seed) -> Self;
}

/// Why no partitioner could be made from a name and settings.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PartitionError {
    /// No such name.
    #[error("found partitioner `{name}`, expected one of {known}{hint}")]
    Unknown {
        /// The name as found.
        name: String,
        /// All names.
        known: String,
        /// `; nearest is ...`, or empty.
        hint: String,
    },
    /// A setting was refused.
    #[error("partitioner `{name}`: {error}")]
    Setting {
        /// The partitioner.
        name: &'static str,
        /// The refusal.
        error: SettingError,
    },
    /// The run does not provide what the partitioner needs.
    #[error("partitioner `{name}` needs a {need} per tenant, found none")]
    Needs {
        /// The partitioner.
        name: &'static str,
        /// The first need not met.
        need: &'static str,
    },
}

macro_rules! partitioners {
    ($($partitioner:ty),* $(,)?) => {
        /// Every partitioner, in the order of tables.
        pub fn entries() -> Vec<&'static Entry> {
            vec![$(&<$partitioner as Registered>::ENTRY),*]
        }

        /// The settings of a partitioner, or nothing if there is no such partitioner.
        pub fn setting_specs(name: &str) -> Option<Vec<SettingSpec>> {
            $(if <$partitioner as Registered>::ENTRY.name == name {
                return Some(<$partitioner as Registered>::Settings::specs());
            })*
            None
        }

        /// The partitioner registered as `name`, with `pairs` set over its defaults.
        pub fn boxed(
            name: &str,
            pairs: &[(String, Value)],
            tenants: usize,
            seed: Seed,
        ) -> Result<Box<dyn Partitioner>, PartitionError> {
            $(if <$partitioner as Registered>::ENTRY.name == name {
                let settings = <$partitioner as Registered>::Settings::from_pairs(pairs).map_err(
                    |error| PartitionError::Setting { name: <$partitioner>::ENTRY.name, error },
                )?;
                return Ok(Box::new(<$partitioner>::new(&settings, tenants, seed)));
            })*
            Err(unknown(name))
        }
    };
}

partitioners! {
    crate::shared::Shared,
    crate::equal::Equal,
    crate::static_weights::Static,
    crate::hull::HullShares,
}

/// The entry registered as `name`.
pub fn entry(name: &str) -> Result<&'static Entry, PartitionError> {
    entries().into_iter().find(|entry| entry.name == name).ok_or_else(|| unknown(name))
}

/// Checks before a run that all that `entry` needs is `provided`.
pub fn check_needs(entry: &Entry, provided: &[Need]) -> Result<(), PartitionError> {
    match entry.needs.iter().find(|need| !provided.contains(need)) {
        Some(need) => Err(PartitionError::Needs { name: entry.name, need: need.word() }),
        None => Ok(()),
    }
}

fn unknown(name: &str) -> PartitionError {
    let names: Vec<&str> = entries().iter().map(|entry| entry.name).collect();
    let hint = match nearest(name, names.iter().copied()) {
        Some(near) => format!("; nearest is `{near}`"),
        None => String::new(),
    };
    PartitionError::Unknown { name: name.to_owned(), known: names.join(", "), hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = entry("shard").unwrap_err().to_string();
        assert!(error.contains("nearest is `shared`"), "{error}");
    }
}
