//! What the registries of all stages have in common.
//!
//! A stage lists its schemes once through [`registry!`](crate::registry!); adding a scheme is one
//! file and one line there.

use crate::declare::Declared;
use crate::{SettingError, Value, nearest};
use thiserror::Error;

/// What a user can know of one scheme without reading code; `N` says what it may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<N: 'static> {
    /// The name in stack files.
    pub name: &'static str,
    /// One sentence in lower case.
    pub doc: &'static str,
    /// The paper or code it follows.
    pub source: &'static str,
    /// What must be provided before a run.
    pub needs: &'static [N],
}

/// Why no scheme could be made from a name and settings.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RegistryError {
    /// No such name.
    #[error("found {stage} `{name}`, expected one of {known}{hint}")]
    Unknown {
        /// What was looked for (`policy`, `partitioner`, ...).
        stage: &'static str,
        /// The name as found.
        name: String,
        /// All names.
        known: String,
        /// `; nearest is ...`, or empty.
        hint: String,
    },
    /// A setting was refused.
    #[error("{stage} `{name}`: {error}")]
    Setting {
        /// The stage.
        stage: &'static str,
        /// The scheme.
        name: String,
        /// The refusal.
        error: SettingError,
    },
    /// The run does not provide what the scheme needs.
    #[error("{stage} `{name}` needs {need}, found none, expected {remedy}")]
    Needs {
        /// The stage.
        stage: &'static str,
        /// The scheme.
        name: &'static str,
        /// The first need that is not met.
        need: &'static str,
        /// What would meet it.
        remedy: String,
    },
}

/// A need that a scheme may declare.
pub trait Needed: Copy {
    /// The noun phrase in errors.
    fn phrase(self) -> &'static str;
}

/// Checks before a run that it provides all that a scheme needs; the one matcher of needs.
/// `missing` gives nothing for a need that the run provides, otherwise what would provide it.
/// Errors: the first need that is not met, and what would provide it.
pub fn check_needs<N: Needed>(
    stage: &'static str,
    entry: &Entry<N>,
    missing: impl Fn(N) -> Option<String>,
) -> Result<(), RegistryError> {
    let unmet = entry.needs.iter().find_map(|need| Some((*need, missing(*need)?)));
    let Some((need, remedy)) = unmet else { return Ok(()) };
    Err(RegistryError::Needs { stage, name: entry.name, need: need.phrase(), remedy })
}

/// The entry called `name`.
pub fn find<N>(
    stage: &'static str,
    name: &str,
    entries: Vec<&'static Entry<N>>,
) -> Result<&'static Entry<N>, RegistryError> {
    let found = entries.iter().find(|entry| entry.name == name).copied();
    found.ok_or_else(|| unknown(stage, name, &entries))
}

/// The refusal of a name that no entry has.
pub fn unknown<N>(stage: &'static str, name: &str, entries: &[&'static Entry<N>]) -> RegistryError {
    let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
    let hint = match nearest(name, names.iter().copied()) {
        Some(near) => format!("; nearest is `{near}`"),
        None => String::new(),
    };
    RegistryError::Unknown { stage, name: name.to_owned(), known: names.join(", "), hint }
}

/// Every setting of a scheme with its value; nothing for a setting without one.
pub type Resolved = Vec<(&'static str, Option<Value>)>;

/// A scheme's settings: its defaults with `pairs` set over them.
pub fn settings<S: Declared>(
    stage: &'static str,
    name: &str,
    pairs: &[(String, Value)],
) -> Result<S, RegistryError> {
    S::from_pairs(pairs).map_err(|error| RegistryError::Setting {
        stage,
        name: name.to_owned(),
        error,
    })
}

/// Makes a stage's `entries`, `entry`, `resolved` and `keys` from the list of its schemes. Where it
/// stands, `Entry` is the stage's entry type, `Registered` its trait with `ENTRY` and `Settings`.
#[macro_export]
macro_rules! registry {
    ($stage:literal: $($scheme:ty),* $(,)?) => {
        /// Every scheme of this stage, in the order of tables.
        pub fn entries() -> Vec<&'static Entry> {
            vec![$(&<$scheme as Registered>::ENTRY),*]
        }

        /// The entry registered as `name`.
        pub fn entry(name: &str) -> Result<&'static Entry, $crate::registry::RegistryError> {
            $crate::registry::find($stage, name, entries())
        }

        /// Every setting of a scheme under `pairs`. Errors: no such scheme; a setting is refused.
        pub fn resolved(
            name: &str,
            pairs: &[(String, $crate::Value)],
        ) -> Result<$crate::registry::Resolved, $crate::registry::RegistryError> {
            $(if <$scheme as Registered>::ENTRY.name == name {
                type Scheme = <$scheme as Registered>::Settings;
                let settings = $crate::registry::settings::<Scheme>($stage, name, pairs)?;
                return Ok($crate::declare::Declared::values(&settings));
            })*
            entry(name).map(|_| Vec::new())
        }

        /// The settings of a scheme, or nothing if there is no such scheme.
        pub fn keys(name: &str) -> Option<Vec<$crate::Key>> {
            $(if <$scheme as Registered>::ENTRY.name == name {
                type Scheme = <$scheme as Registered>::Settings;
                return Some(<Scheme as $crate::declare::Declared>::keys());
            })*
            None
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    static ENTRY: Entry<()> = Entry { name: "lru", doc: "", source: "", needs: &[] };

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = find("policy", "lruu", vec![&ENTRY]).unwrap_err().to_string();
        assert_eq!(error, "found policy `lruu`, expected one of lru; nearest is `lru`");
        assert_eq!(find("policy", "lru", vec![&ENTRY]), Ok(&ENTRY));
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum TestNeed {
        Goal,
        Model,
    }

    impl Needed for TestNeed {
        fn phrase(self) -> &'static str {
            if self == TestNeed::Goal { "a goal" } else { "a model" }
        }
    }

    #[test]
    fn the_first_need_that_is_not_met_is_refused_with_what_would_meet_it() {
        let needs = &[TestNeed::Goal, TestNeed::Model];
        let entry = Entry { name: "hull", doc: "", source: "", needs };
        let missing = |need: TestNeed| (need == TestNeed::Model).then(|| "a file".to_owned());
        let error = "partitioner `hull` needs a model, found none, expected a file";
        let refused = check_needs("partitioner", &entry, missing).unwrap_err();
        assert_eq!(refused.to_string(), error);
        assert_eq!(check_needs("partitioner", &entry, |_| None), Ok(()));
    }
}
