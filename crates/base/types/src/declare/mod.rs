//! Keys declared once: name, group, meaning, unit, range, default, source, and when they apply.
//!
//! For: the [`declare!`](crate::declare!) and [`choices!`](crate::choices!) macros and the checked
//! reading of values. Must never know: files, any scheme or device. Stack files, command options,
//! schemes and devices declare their keys here. A key that is unknown, of the wrong kind or out of
//! range is refused with what was found and what was expected.

pub mod kind;
mod macros;
#[cfg(test)]
mod tests;
mod value;

pub use kind::{Mismatch, Nested, Percent, Scheme, ValueKind};
pub use value::Value;

use crate::nearest;
use thiserror::Error;

/// What the kind of a choice is called.
pub const WORD: &str = "a word";

/// What a user can know of one key without reading code.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The key in a stack file.
    pub name: &'static str,
    /// The part of the table it belongs to; empty where there are no parts.
    pub group: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Unit of the value (`channels`, `MT/s`, ...); sizes and times are written with their own.
    pub unit: &'static str,
    /// The kind in words.
    pub kind: &'static str,
    /// Value when the key is absent; nothing where there is none.
    pub default: Option<Value>,
    /// What is accepted, in words.
    pub accepted: String,
    /// Smallest and largest number accepted, where there are such.
    pub range: Option<(f64, f64)>,
    /// The words of a choice.
    pub words: Vec<&'static str>,
    /// Where the default or the meaning comes from; empty where it is our own.
    pub source: &'static str,
    /// What the rest of the file must hold where the key differs from its default, as words that
    /// its reader knows (`devices`); empty: nothing.
    pub needs: &'static str,
    /// When the key means anything; it is ignored otherwise. Empty: always.
    pub applies: &'static str,
}

impl Key {
    /// The default as a number; NaN where it is none.
    pub fn default_number(&self) -> f64 {
        match &self.default {
            Some(Value::Int(number)) => *number as f64,
            Some(Value::Float(number)) => *number,
            Some(Value::Bool(flag)) => f64::from(u8::from(*flag)),
            _ => f64::NAN,
        }
    }

    /// The values at both ends of the range, or every value of a choice.
    pub fn extremes(&self) -> Vec<Value> {
        match (&self.default, self.range) {
            (Some(Value::Int(_)), Some((low, high))) => {
                vec![Value::Int(low as i64), Value::Int(high as i64)]
            }
            (Some(Value::Float(_)), Some((low, high))) => {
                vec![Value::Float(low), Value::Float(high)]
            }
            (Some(Value::Bool(_)), _) => vec![Value::Bool(false), Value::Bool(true)],
            _ => self.words.iter().map(|word| Value::Text((*word).to_owned())).collect(),
        }
    }

    /// The default as text of a stack file; empty where there is none.
    pub fn default_text(&self) -> String {
        self.default.as_ref().map(Value::to_string).unwrap_or_default()
    }
}

/// Why a key's value was refused.
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

/// A group of keys made by [`declare!`](crate::declare!).
pub trait Declared: Default + Clone + Send + Sync + 'static {
    /// One entry per key, in the order of declaration.
    fn keys() -> Vec<Key>;
    /// Sets one key. Errors: unknown key (with the nearest known one), wrong kind, out of range.
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SettingError>;
    /// Sets one key from a text without quotes, as options have it. It is read as a number or a
    /// flag where the key is no text. Errors: like [`Declared::set`].
    fn set_text(&mut self, key: &str, text: &str) -> Result<(), SettingError> {
        let plain = self.set(key, &Value::Text(text.to_owned()));
        plain.or_else(|_| self.set(key, &Value::read(text)))
    }
    /// The current values in the order of declaration; nothing for a key without one.
    fn values(&self) -> Vec<(&'static str, Option<Value>)>;
    /// For each key in which two differ, what cases that differ in it can share: words that the
    /// file's reader knows (`recording`); empty: nothing.
    fn differences(&self, other: &Self) -> Vec<&'static str>;
    /// Refuses values out of range, where a caller has set fields without [`Declared::set`].
    fn check_ranges(&self) -> Result<(), SettingError> {
        let mut again = Self::default();
        let given = self.values().into_iter();
        given
            .filter_map(|(key, value)| Some((key, value?)))
            .try_for_each(|(key, value)| again.set(key, &value))
    }
    /// Defaults with `pairs` set over them.
    fn from_pairs(pairs: &[(String, Value)]) -> Result<Self, SettingError> {
        let mut declared = Self::default();
        for (key, value) in pairs {
            declared.set(key, value)?;
        }
        Ok(declared)
    }
}

/// Sets a field from the value under `key`, which may name a part of it, and checks its range; used
/// by the macro.
pub fn assign<K: ValueKind>(
    field: &mut K,
    key: &str,
    value: &Value,
    unit: &str,
    range: Option<(f64, f64)>,
) -> Result<(), SettingError> {
    let refuse =
        |expected: String| SettingError { key: key.to_owned(), found: found(value), expected };
    if let Some((_, part)) = key.split_once('.') {
        let set = field.set_part(part, value);
        return if set { Ok(()) } else { Err(refuse(expected::<K>(value, unit, range))) };
    }
    let read = K::read(value).map_err(|mismatch| match mismatch {
        Mismatch::Kind => refuse(expected::<K>(value, unit, range)),
        Mismatch::Expected(words) => refuse(words),
        Mismatch::Item(item, expected) => {
            SettingError { key: key.to_owned(), found: found(&item), expected }
        }
        Mismatch::Key(error) => SettingError { key: format!("{key}.{}", error.key), ..error },
    })?;
    let outside = |(low, high): (f64, f64)| {
        read.number().is_some_and(|number| !(low..=high).contains(&number))
    };
    if range.is_some_and(outside) {
        return Err(refuse(expected::<K>(value, unit, range)));
    }
    *field = read;
    Ok(())
}

/// The number of a literal in a declaration. The macro uses it because a whole number without a
/// type must fit 32 bits.
pub fn literal(text: &str) -> f64 {
    text.replace(['_', ' '], "").parse().unwrap_or(f64::NAN)
}

/// What is accepted, in words.
pub fn accepted<K: ValueKind>(range: Option<(f64, f64)>) -> String {
    match range {
        Some((low, high)) => format!("{}..={}", K::bound(low), K::bound(high)),
        None if K::words().is_empty() => K::KIND.to_owned(),
        None => K::words().join(", "),
    }
}

/// The refusal of a key that is not declared.
pub fn unknown_key<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> SettingError {
    let known: Vec<&str> = known.into_iter().collect();
    let expected = match nearest(key, known.iter().copied()) {
        Some(near) => format!("a known key; nearest is `{near}`"),
        None if known.is_empty() => "no settings here".to_owned(),
        None => format!("one of {}", known.join(", ")),
    };
    SettingError { key: key.to_owned(), found: "an unknown key".to_owned(), expected }
}

fn expected<K: ValueKind>(value: &Value, unit: &str, range: Option<(f64, f64)>) -> String {
    if let Some((low, high)) = range {
        let unit = match unit {
            "" | "-" | "bytes" | "time" | "share" | "number" => String::new(),
            unit => format!(" ({unit})"),
        };
        return format!("{} from {} to {}{unit}", K::KIND, K::bound(low), K::bound(high));
    }
    let words = K::words();
    if K::KIND != WORD {
        return K::KIND.to_owned();
    }
    let near = value.as_text().and_then(|text| nearest(text, words.iter().copied()));
    let hint = near.map_or(String::new(), |near| format!("; nearest is `{near}`"));
    format!("one of {}{hint}", words.join(", "))
}

fn found(value: &Value) -> String {
    format!("`{}`", value.shown())
}

/// The key of a field; a field that would be a keyword of Rust is written `r#loop`.
pub const fn key_name(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

crate::declare! {
    /// The settings of a scheme that has none.
    pub struct NoSettings {}
}
