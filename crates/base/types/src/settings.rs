//! Settings declared once: name, unit, range, default and sentence in one place.
//!
//! For: the `settings!` macro and the checked reading of its values. Must never know: files. A
//! value comes from a stack file, the command line or Python as a [`Value`]; unknown keys, wrong
//! kinds and values out of range are refused with what was found and what was expected.

use thiserror::Error;

/// A setting's value before it is checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// true or false.
    Bool(bool),
    /// A word.
    Text(String),
}

/// What a user can know of one setting without reading code.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingSpec {
    /// The key in a stack file.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Unit of the value (`ratio`, `blocks`, `accesses`, ...).
    pub unit: &'static str,
    /// Value when the key is absent.
    pub default: f64,
    /// Smallest value accepted.
    pub low: f64,
    /// Largest value accepted.
    pub high: f64,
}

/// Why a setting was refused.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("`{key}`: found {found}, expected {expected}")]
pub struct SettingError {
    /// The key.
    pub key: String,
    /// What was found.
    pub found: String,
    /// What would have been accepted.
    pub expected: String,
}

/// A type that a setting can have. Implemented for `f64`, `u32` and `bool`.
pub trait Setting: Copy {
    /// The value as a number, for range checks and tables (`bool`: 0 or 1).
    fn number(self) -> f64;
    /// The checked value, or nothing when `value` is of another kind.
    fn from_value(value: &Value) -> Option<Self>;
    /// The kind in words, for errors.
    const KIND: &'static str;
}

impl Setting for f64 {
    const KIND: &'static str = "a number";
    fn number(self) -> f64 {
        self
    }
    fn from_value(value: &Value) -> Option<f64> {
        match value {
            Value::Float(x) => Some(*x),
            Value::Int(n) => Some(*n as f64),
            _ => None,
        }
    }
}

impl Setting for u32 {
    const KIND: &'static str = "a whole number";
    fn number(self) -> f64 {
        f64::from(self)
    }
    fn from_value(value: &Value) -> Option<u32> {
        match value {
            Value::Int(n) => u32::try_from(*n).ok(),
            _ => None,
        }
    }
}

impl Setting for bool {
    const KIND: &'static str = "true or false";
    fn number(self) -> f64 {
        f64::from(u8::from(self))
    }
    fn from_value(value: &Value) -> Option<bool> {
        match value {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }
}

/// A group of settings made by [`settings!`](crate::settings).
pub trait Settings: Default + Clone + Send + Sync + 'static {
    /// One entry per field, in the order of declaration.
    fn specs() -> Vec<SettingSpec>;
    /// Sets one field. Errors: unknown key (with the nearest known one), wrong kind, out of range.
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SettingError>;
    /// The current values, in the order of declaration.
    fn values(&self) -> Vec<(&'static str, f64)>;
    /// Defaults with `pairs` set over them.
    fn from_pairs(pairs: &[(String, Value)]) -> Result<Self, SettingError> {
        let mut settings = Self::default();
        for (key, value) in pairs {
            settings.set(key, value)?;
        }
        Ok(settings)
    }
}

/// Checks `value` against `spec`; used by the macro.
pub fn checked<T: Setting>(spec: &SettingSpec, value: &Value) -> Result<T, SettingError> {
    let refuse = || SettingError {
        key: spec.name.to_owned(),
        found: describe(value),
        expected: format!("{} in {} ({})", T::KIND, range_text(spec), spec.unit),
    };
    let typed = T::from_value(value).ok_or_else(refuse)?;
    let number = typed.number();
    if number >= spec.low && number <= spec.high { Ok(typed) } else { Err(refuse()) }
}

/// The refusal of a key that no field has.
pub fn unknown_key(key: &str, specs: &[SettingSpec]) -> SettingError {
    let names: Vec<&str> = specs.iter().map(|s| s.name).collect();
    let expected = match crate::nearest(key, names.iter().copied()) {
        Some(near) => format!("a known key; nearest is `{near}`"),
        None if names.is_empty() => "no settings here".to_owned(),
        None => format!("one of {}", names.join(", ")),
    };
    SettingError { key: key.to_owned(), found: "an unknown key".to_owned(), expected }
}

fn range_text(spec: &SettingSpec) -> String {
    format!("{}..={}", spec.low, spec.high)
}

fn describe(value: &Value) -> String {
    match value {
        Value::Int(n) => n.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::Text(t) => format!("`{t}`"),
    }
}

/// Declares a settings struct: each line is `name: type = default, "unit", low..=high;` under its
/// sentence. The struct gets `Default`, and the [`Settings`](crate::settings::Settings) trait.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                #[doc = $doc:literal]
                $field:ident : $kind:ty = $default:expr, $unit:literal, $low:literal ..= $high:expr;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( #[doc = $doc] pub $field: $kind, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl $crate::settings::Settings for $name {
            fn specs() -> Vec<$crate::SettingSpec> {
                vec![ $( $crate::SettingSpec {
                    name: stringify!($field),
                    doc: $doc.trim_ascii(),
                    unit: $unit,
                    default: $crate::Setting::number($default as $kind),
                    low: $low as f64,
                    high: $high as f64,
                }, )* ]
            }

            #[allow(unused_variables)]
            fn set(
                &mut self,
                key: &str,
                value: &$crate::Value,
            ) -> Result<(), $crate::SettingError> {
                let specs = <Self as $crate::settings::Settings>::specs();
                let Some(spec) = specs.iter().find(|spec| spec.name == key) else {
                    return Err($crate::settings::unknown_key(key, &specs));
                };
                $( if key == stringify!($field) {
                    self.$field = $crate::settings::checked(spec, value)?;
                } )*
                Ok(())
            }

            fn values(&self) -> Vec<(&'static str, f64)> {
                vec![ $( (stringify!($field), $crate::Setting::number(self.$field)), )* ]
            }
        }
    };
}

settings! {
    /// The settings of whatever has none.
    pub struct NoSettings {}
}

#[cfg(test)]
mod tests {
    use super::*;

    settings! {
        /// Two fields for the tests.
        pub struct Sample {
            /// share of something
            share: f64 = 0.1, "ratio", 0.0 ..= 1.0;
            /// number of levels
            levels: u32 = 64, "levels", 1 ..= 256;
        }
    }

    #[test]
    fn absent_keys_keep_their_defaults() {
        let sample = Sample::from_pairs(&[("levels".into(), Value::Int(8))]);
        assert_eq!(sample, Ok(Sample { share: 0.1, levels: 8 }));
    }

    #[test]
    fn wrong_values_are_refused_in_words() {
        let error = Sample::from_pairs(&[("levels".into(), Value::Int(0))]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`levels`: found 0, expected a whole number in 1..=256 (levels)"
        );
        let error = Sample::from_pairs(&[("level".into(), Value::Int(9))]).unwrap_err();
        assert!(error.to_string().contains("nearest is `levels`"), "{error}");
        assert!(Sample::from_pairs(&[("share".into(), Value::Text("x".into()))]).is_err());
    }
}
