//! Parameters of a device, each declared once: name, unit, range, default, sentence and source.
//!
//! For: the [`parameters!`](crate::parameters) macro, the kinds a parameter can have, the checked
//! reading of a value. Must never know: any device. A value comes from a stack file, an importer or
//! a preset as a [`Value`]; unknown keys, wrong kinds and values out of range are refused with what
//! was found and what was expected. Units: bytes and times need one, as in `8KiB` and `75us`.

use cachewright_types::{Bytes, Nanos, SettingError, Value, nearest, parse_bytes, parse_duration};

/// What a user can know of one parameter without reading code.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The key in a stack file.
    pub name: &'static str,
    /// The part of the device it belongs to.
    pub group: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Unit of the value (`channels`, `MT/s`, ...); `bytes` and `time` are written with their own.
    pub unit: &'static str,
    /// Value when the key is absent, as text of a stack file.
    pub default: String,
    /// What is accepted, in words.
    pub accepted: String,
    /// Where the default or the meaning comes from.
    pub source: &'static str,
}

/// A kind of value that a parameter can have.
pub trait Quantity: Clone {
    /// The kind in words, for refusals.
    const KIND: &'static str;
    /// The value, or nothing when `value` is of another kind; the error is a refusal of its own.
    fn from_value(value: &Value) -> Option<Self>;
    /// The value as a number, for ranges (choices: 0).
    fn number(&self) -> f64;
    /// The value as text of a stack file; reading it back gives the same value.
    fn text(&self) -> String;
    /// A bound of a range in words.
    fn bound(number: f64) -> String {
        number.to_string()
    }
    /// The words of a choice; empty for numbers.
    fn words() -> Vec<&'static str> {
        Vec::new()
    }
    /// Sets what stands under the key with `.part` behind it; false when there is no such thing.
    fn set_part(&mut self, _part: &str, _value: &Value) -> bool {
        false
    }
}

impl Quantity for u32 {
    const KIND: &'static str = "a whole number";
    fn from_value(value: &Value) -> Option<u32> {
        match value {
            Value::Int(number) => u32::try_from(*number).ok(),
            _ => None,
        }
    }
    fn number(&self) -> f64 {
        f64::from(*self)
    }
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Quantity for f64 {
    const KIND: &'static str = "a number";
    fn from_value(value: &Value) -> Option<f64> {
        match value {
            Value::Float(number) => Some(*number),
            Value::Int(number) => Some(*number as f64),
            _ => None,
        }
    }
    fn number(&self) -> f64 {
        *self
    }
    fn text(&self) -> String {
        format!("{self:?}")
    }
}

impl Quantity for bool {
    const KIND: &'static str = "true or false";
    fn from_value(value: &Value) -> Option<bool> {
        match value {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }
    fn number(&self) -> f64 {
        f64::from(u8::from(*self))
    }
    fn text(&self) -> String {
        self.to_string()
    }
    fn words() -> Vec<&'static str> {
        vec!["true", "false"]
    }
}

impl Quantity for Bytes {
    const KIND: &'static str = "a number with a unit (`8KiB`)";
    fn from_value(value: &Value) -> Option<Bytes> {
        match value {
            Value::Text(text) => parse_bytes(text).ok(),
            _ => None,
        }
    }
    fn number(&self) -> f64 {
        self.0 as f64
    }
    fn text(&self) -> String {
        format!("\"{}\"", exact_bytes(*self))
    }
    fn bound(number: f64) -> String {
        exact_bytes(Bytes(number as u64))
    }
}

impl Quantity for Nanos {
    const KIND: &'static str = "a number with a unit (`75us`)";
    fn from_value(value: &Value) -> Option<Nanos> {
        match value {
            Value::Text(text) => parse_duration(text).ok(),
            _ => None,
        }
    }
    fn number(&self) -> f64 {
        self.0 as f64
    }
    fn text(&self) -> String {
        format!("\"{}\"", exact_duration(*self))
    }
    fn bound(number: f64) -> String {
        exact_duration(Nanos(number as u64))
    }
}

/// A group of parameters made by [`parameters!`](crate::parameters).
pub trait Parameters: Default + Clone {
    /// One entry per parameter, in the order of declaration.
    fn table() -> Vec<Parameter>;
    /// Sets one parameter. Errors: unknown key (with the nearest known one), wrong kind, out of
    /// range.
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SettingError>;
    /// The current values as text of a stack file, in the order of declaration.
    fn values(&self) -> Vec<(&'static str, String)>;
}

/// Sets a field from the value under `key`, which may name a part of it, and checks its range; used
/// by the macro.
pub fn assign<Q: Quantity>(
    field: &mut Q,
    key: &str,
    value: &Value,
    range: Option<(f64, f64)>,
) -> Result<(), SettingError> {
    let refuse = || SettingError {
        key: key.to_owned(),
        found: found(value),
        expected: expected::<Q>(value, range),
    };
    if let Some((_, part)) = key.split_once('.') {
        return if field.set_part(part, value) { Ok(()) } else { Err(refuse()) };
    }
    let within =
        |quantity: &Q| range.is_none_or(|(low, high)| (low..=high).contains(&quantity.number()));
    *field = Q::from_value(value).filter(within).ok_or_else(refuse)?;
    Ok(())
}

/// The number of a literal as it stands in a table; used by the macro, because a whole number
/// without a type must fit 32 bits.
pub fn literal(text: &str) -> f64 {
    text.replace('_', "").parse().unwrap_or(f64::NAN)
}

/// A value from its text without quotes: a number, true, false, or text.
pub fn read(text: &str) -> Value {
    match (text.parse::<i64>(), text.parse::<f64>(), text.parse::<bool>()) {
        (Ok(number), ..) => Value::Int(number),
        (_, Ok(number), _) => Value::Float(number),
        (.., Ok(flag)) => Value::Bool(flag),
        _ => Value::Text(text.to_owned()),
    }
}

/// What is accepted, in words.
pub fn accepted<Q: Quantity>(range: Option<(f64, f64)>) -> String {
    match range {
        Some((low, high)) => format!("{}..={}", Q::bound(low), Q::bound(high)),
        None if Q::words().is_empty() => Q::KIND.to_owned(),
        None => Q::words().join(", "),
    }
}

/// A size in the largest unit that divides it.
pub(crate) fn exact_bytes(bytes: Bytes) -> String {
    exact(bytes.0, &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)])
}

/// A time in the largest unit that divides it.
fn exact_duration(time: Nanos) -> String {
    exact(time.0, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)])
}

fn exact(number: u64, units: &[(&str, u64)]) -> String {
    let fits = |unit: &&(&str, u64)| unit.1 == 1 || (number > 0 && number.is_multiple_of(unit.1));
    let (name, scale) = units.iter().find(fits).copied().unwrap_or(("", 1));
    format!("{}{name}", number / scale)
}

/// The refusal of a key that no parameter has.
pub fn unknown_key(key: &str, known: &[&'static str]) -> SettingError {
    let expected = match nearest(key, known.iter().copied()) {
        Some(near) => format!("a known key; nearest is `{near}`"),
        None => format!("one of {}", known.join(", ")),
    };
    SettingError { key: key.to_owned(), found: "an unknown key".to_owned(), expected }
}

fn expected<Q: Quantity>(value: &Value, range: Option<(f64, f64)>) -> String {
    if range.is_some() {
        return format!("{} in {}", Q::KIND, accepted::<Q>(range));
    }
    let words = Q::words();
    if words.is_empty() {
        return Q::KIND.to_owned();
    }
    let near = match value {
        Value::Text(text) => nearest(text, words.iter().copied()),
        _ => None,
    };
    let hint = near.map_or(String::new(), |near| format!("; nearest is `{near}`"));
    format!("{}{}{hint}", if words.len() > 2 { "one of " } else { "" }, words.join(", "))
}

fn found(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Text(text) => format!("`{text}`"),
    }
}

/// Declares a struct of parameters. Under a group's name, each parameter is its sentence, then
/// `name: type = default, "unit" [, low ..= high]; "source";`. Bounds of bytes are in bytes, those
/// of times in nanoseconds. The struct gets `Default` and [`Parameters`].
#[macro_export]
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $group:literal {
                    $(
                        #[doc = $doc:literal]
                        $field:ident : $kind:ty = $default:expr, $unit:literal
                            $(, $low:literal ..= $high:literal)? ; $source:literal;
                    )*
                }
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $( #[doc = $doc] pub $field: $kind, )* )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $( $field: $default, )* )* }
            }
        }

        impl $crate::parameters::Parameters for $name {
            fn table() -> Vec<$crate::parameters::Parameter> {
                let defaults = Self::default();
                vec![ $( $( $crate::parameters::Parameter {
                    name: stringify!($field),
                    group: $group,
                    doc: $doc.trim_ascii(),
                    unit: $unit,
                    default: $crate::parameters::Quantity::text(&defaults.$field),
                    accepted: $crate::parameters::accepted::<$kind>(
                        $crate::parameters!(@range $($low, $high)?)
                    ),
                    source: $source,
                }, )* )* ]
            }

            fn set(
                &mut self,
                key: &str,
                value: &cachewright_types::Value,
            ) -> Result<(), cachewright_types::SettingError> {
                let head = key.split_once('.').map_or(key, |(head, _)| head);
                $( $( if head == stringify!($field) {
                    let range = $crate::parameters!(@range $($low, $high)?);
                    return $crate::parameters::assign(&mut self.$field, key, value, range);
                } )* )*
                let known = [$( $( stringify!($field), )* )*];
                Err($crate::parameters::unknown_key(key, &known))
            }

            fn values(&self) -> Vec<(&'static str, String)> {
                vec![ $( $(
                    (stringify!($field), $crate::parameters::Quantity::text(&self.$field)),
                )* )* ]
            }
        }
    };
    (@range) => { None };
    (@range $low:literal, $high:literal) => {
        Some((
            $crate::parameters::literal(stringify!($low)),
            $crate::parameters::literal(stringify!($high)),
        ))
    };
}

/// Declares an enumeration whose values are chosen by a word of a stack file. The first is named
/// by the default of the parameter, not here.
#[macro_export]
macro_rules! choices {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$doc:meta])* $variant:ident = $word:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[$doc])* $variant, )*
        }

        impl $name {
            /// All values, in the order of tables.
            pub const ALL: &[$name] = &[$( $name::$variant, )*];

            /// The word in stack files.
            pub fn word(self) -> &'static str {
                match self {
                    $( $name::$variant => $word, )*
                }
            }
        }

        impl $crate::parameters::Quantity for $name {
            const KIND: &'static str = "a word";

            fn from_value(value: &cachewright_types::Value) -> Option<$name> {
                match value {
                    cachewright_types::Value::Text(text) => {
                        $name::ALL.iter().copied().find(|choice| choice.word() == text)
                    }
                    _ => None,
                }
            }

            fn number(&self) -> f64 {
                0.0
            }

            fn text(&self) -> String {
                format!("\"{}\"", self.word())
            }

            fn words() -> Vec<&'static str> {
                $name::ALL.iter().map(|choice| choice.word()).collect()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    choices! {
        /// Two words for the tests.
        pub enum Colour {
            /// One.
            Red = "red",
            /// Another.
            Blue = "blue",
        }
    }

    parameters! {
        /// A sample for the tests.
        pub struct Sample {
            "shape" {
                /// number of corners
                corners: u32 = 3, "corners", 3 ..= 8; "made up";
                /// size of the sheet
                sheet: Bytes = Bytes(8192), "bytes", 512 ..= 65_536; "made up";
                /// time to cut
                cut: Nanos = Nanos(1_500), "time", 0 ..= 1_000_000; "made up";
                /// what it looks like
                colour: Colour = Colour::Red, "-"; "made up";
            }
        }
    }

    fn refusal(key: &str, value: Value) -> String {
        Sample::default().set(key, &value).unwrap_err().to_string()
    }

    #[test]
    fn values_out_of_range_and_of_another_kind_are_refused_in_words() {
        assert_eq!(
            refusal("corners", Value::Int(2)),
            "`corners`: found 2, expected a whole number in 3..=8"
        );
        assert_eq!(
            refusal("sheet", Value::Int(8192)),
            "`sheet`: found 8192, expected a number with a unit (`8KiB`) in 512B..=64KiB"
        );
        assert_eq!(
            refusal("cut", Value::Text("2ms".into())),
            "`cut`: found `2ms`, expected a number with a unit (`75us`) in 0ns..=1ms"
        );
        assert_eq!(
            refusal("colour", Value::Text("blu".into())),
            "`colour`: found `blu`, expected red, blue; nearest is `blue`"
        );
        assert!(refusal("corner", Value::Int(4)).contains("nearest is `corners`"));
    }

    #[test]
    fn texts_read_back_as_the_same_values() {
        let sample =
            Sample { corners: 5, sheet: Bytes(8_640), cut: Nanos(21_814), colour: Colour::Blue };
        let mut copy = Sample::default();
        for (key, text) in sample.values() {
            let value = match text.strip_prefix('"') {
                Some(rest) => Value::Text(rest.trim_end_matches('"').to_owned()),
                None => Value::Int(text.parse().unwrap()),
            };
            copy.set(key, &value).unwrap();
        }
        assert_eq!(copy, sample);
    }
}
