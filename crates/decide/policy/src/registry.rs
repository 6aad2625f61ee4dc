//! The table of policies: one line per policy, read by everything else.
//!
//! For: names, sentences, sources, needs and settings of every policy, and static dispatch by name.
//! Must never know: who asks. Adding a policy is one file and one line in `policies!` below.

use crate::Policy;
use cachewright_types::settings::Settings;
use cachewright_types::{Seed, SettingError, SettingSpec, Value, nearest};
use thiserror::Error;

/// What a policy needs beyond the accesses themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The position of each block's next access (a pre-pass over the whole trace).
    Future,
}

/// What a user can know of one policy without reading code.
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

/// A policy that stands in the registry.
pub trait Registered: Policy + Sized + 'static {
    /// Its settings, with defaults as in its source.
    type Settings: Settings;
    /// Its facts.
    const ENTRY: Entry;
    /// An empty cache of `capacity_blocks`.
    fn new(capacity_blocks: u32, settings: &Self::Settings, seed: Seed) -> Self;
}

/// Code that runs once the name of a policy has become its type.
pub trait PolicyVisitor {
    /// What the code returns.
    type Output;
    /// Called with the policy's type and checked settings.
    fn visit<P: Registered>(self, settings: P::Settings) -> Self::Output;
}

/// Why no policy could be made from a name and settings.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PolicyError {
    /// No such name.
    #[error("found policy `{name}`, expected one of {known}{hint}")]
    Unknown {
        /// The name as found.
        name: String,
        /// All names.
        known: String,
        /// `; nearest is ...`, or empty.
        hint: String,
    },
    /// A setting was refused.
    #[error("policy `{name}`: {error}")]
    Setting {
        /// The policy.
        name: &'static str,
        /// The refusal.
        error: SettingError,
    },
}

macro_rules! policies {
    ($($policy:ty),* $(,)?) => {
        /// Every policy, in the order of tables.
        pub fn entries() -> Vec<&'static Entry> {
            vec![$(&<$policy as Registered>::ENTRY),*]
        }

        /// The settings of a policy, or nothing if there is no such policy.
        pub fn setting_specs(name: &str) -> Option<Vec<SettingSpec>> {
            $(if <$policy as Registered>::ENTRY.name == name {
                return Some(<$policy as Registered>::Settings::specs());
            })*
            None
        }

        /// Runs `visitor` with the type registered as `name` and its checked settings.
        pub fn visit<V: PolicyVisitor>(
            name: &str,
            pairs: &[(String, Value)],
            visitor: V,
        ) -> Result<V::Output, PolicyError> {
            $(if <$policy as Registered>::ENTRY.name == name {
                let settings = <$policy as Registered>::Settings::from_pairs(pairs).map_err(
                    |error| PolicyError::Setting { name: <$policy>::ENTRY.name, error },
                )?;
                return Ok(visitor.visit::<$policy>(settings));
            })*
            Err(unknown(name))
        }
    };
}

policies! {
    crate::lru::Lru,
    crate::fifo::Fifo,
    crate::clock::Clock,
    crate::sieve::Sieve,
    crate::lfu::Lfu<false>,
    crate::lfu::Lfu<true>,
    crate::s3_fifo::S3Fifo<false>,
    crate::s3_fifo::S3Fifo<true>,
    crate::arc::Arc,
    crate::larc::Larc,
    crate::two_q::TwoQ,
    crate::lirs::Lirs,
    crate::lirs::LirsLibcachesim,
    crate::smq::Smq,
    crate::access_frequency::AccessFrequency,
    crate::belady::Belady<false>,
    crate::belady::Belady<true>,
}

/// The entry registered as `name`.
pub fn entry(name: &str) -> Result<&'static Entry, PolicyError> {
    entries().into_iter().find(|entry| entry.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> PolicyError {
    let names: Vec<&str> = entries().iter().map(|entry| entry.name).collect();
    let hint = match nearest(name, names.iter().copied()) {
        Some(near) => format!("; nearest is `{near}`"),
        None => String::new(),
    };
    PolicyError::Unknown { name: name.to_owned(), known: names.join(", "), hint }
}

/// A policy of any kind, for code that is not hot.
pub fn boxed(
    name: &str,
    pairs: &[(String, Value)],
    capacity_blocks: u32,
    seed: Seed,
) -> Result<Box<dyn Policy>, PolicyError> {
    struct Boxer(u32, Seed);
    impl PolicyVisitor for Boxer {
        type Output = Box<dyn Policy>;
        fn visit<P: Registered>(self, settings: P::Settings) -> Box<dyn Policy> {
            Box::new(P::new(self.0, &settings, self.1))
        }
    }
    visit(name, pairs, Boxer(capacity_blocks, seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = entry("lruu").unwrap_err().to_string();
        assert!(error.contains("nearest is `lru`"), "{error}");
    }
}
