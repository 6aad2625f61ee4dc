//! Keys declared once: name, group, meaning, unit, range, default, source, and when they apply.
//!
//! Stack files, command options, schemes and devices declare their keys with
//! [`declare!`](crate::declare!) and [`choices!`](crate::choices!). A key that is unknown, of the
//! wrong kind or out of range is refused with what was found and what was expected.

pub mod kind;
mod macros;

use crate::nearest;
pub use kind::{Mismatch, Nested, Percent, Scheme, ValueKind};
use std::fmt;
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

/// A value before it is checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// true or false.
    Bool(bool),
    /// A text.
    Text(String),
    /// Values in order.
    List(Vec<Value>),
    /// Values by key, in the order of the file; each key once.
    Table(Vec<(String, Value)>),
}

/// Characters of a value that a message shows.
const SHOWN: usize = 100;

impl Value {
    /// A value from its text without quotes: a number, true, false, or text.
    pub fn read(text: &str) -> Value {
        match (text.parse::<i64>(), text.parse::<f64>(), text.parse::<bool>()) {
            (Ok(number), ..) => Value::Int(number),
            (_, Ok(number), _) => Value::Float(number),
            (.., Ok(flag)) => Value::Bool(flag),
            _ => Value::Text(text.to_owned()),
        }
    }

    /// The value of a key of a table; nothing if this is no table or has no such key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Table(pairs) => pairs.iter().find(|(name, _)| name == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The text without quotes, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value as options have it: a text stands without quotes.
    pub fn plain(&self) -> String {
        self.as_text().map_or_else(|| self.to_string(), str::to_owned)
    }

    /// The value in a message: bounded in length; texts have quotes where they would read as
    /// something else.
    pub fn shown(&self) -> String {
        let text = match self {
            Value::Text(text) if matches!(Value::read(text), Value::Text(_)) => text.clone(),
            other => other.to_string(),
        };
        if text.len() <= SHOWN {
            return text;
        }
        text.chars().take(SHOWN / 2).chain("...".chars()).collect()
    }
}

impl fmt::Display for Value {
    /// The text of a stack file; reading it back gives the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(number) => write!(f, "{number}"),
            Value::Float(number) => write!(f, "{number:?}"),
            Value::Bool(flag) => write!(f, "{flag}"),
            Value::Text(text) => write!(f, "\"{text}\""),
            Value::List(values) => {
                let texts: Vec<String> = values.iter().map(Value::to_string).collect();
                write!(f, "[{}]", texts.join(", "))
            }
            Value::Table(pairs) => {
                let texts: Vec<String> =
                    pairs.iter().map(|(key, value)| format!("{key} = {value}")).collect();
                write!(f, "{{ {} }}", texts.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Nanos, Size, choices, declare};

    choices! {
        /// Two words for the tests.
        pub enum Colour {
            /// One.
            Red = "red",
            /// Another.
            Blue = "blue",
        }
    }

    declare! {
        /// Keys of every kind, for the tests.
        pub struct Sample {
            "shape" {
                /// number of corners
                corners: u32 = 3, "corners", 3 ..= 8; "made up";
                /// size of the sheet
                sheet: Bytes = Bytes(8192), "bytes", 512 ..= 65_536; "made up";
                /// time to cut
                cut: Nanos = Nanos(1_500), "time", 0 ..= 1_000_000;
                    "made up"; applies "with a knife";
                /// what it looks like
                colour: Colour = Colour::Red, "-"; "made up";
            }
            "rest" {
                /// where it goes round
                r#loop: bool = false, "";
                /// part that is thrown away
                waste: Percent = Percent(0.07), "share", 0.01 ..= 0.5;
                /// its name, if it has one
                name: Option<String> = None, "text";
                /// what cuts it
                knife: Scheme = Scheme::named("plain"), "scheme";
                /// what it
                /// is cut from
                stock: Option<Size> = None, "size";
                /// places of holes
                holes: Vec<u32> = Vec::new(), "corners";
            }
        }
    }

    declare! {
        /// Keys without groups.
        pub struct Flat {
            /// share of something
            share: f64 = 0.1, "ratio", 0.0 ..= 1.0;
            /// number of levels
            levels: u32 = 64, "levels", 1 ..= 256; shares "table";
        }
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    fn refusal(key: &str, value: Value) -> String {
        Sample::default().set(key, &value).unwrap_err().to_string()
    }

    #[test]
    fn values_out_of_range_and_of_another_kind_are_refused_in_words() {
        let expected = "`corners`: found `2`, expected a whole number from 3 to 8 (corners)";
        assert_eq!(refusal("corners", Value::Int(2)), expected);
        let expected = "`sheet`: found `1KiB?`, expected a number with a unit: B, KiB, MiB, GiB, \
                        TiB, kB, MB, GB or TB (as in `16MiB`)";
        assert_eq!(refusal("sheet", text("1KiB?")), expected);
        let expected = "`cut`: found `2ms`, expected a number with a unit (`75us`) from 0s to 1ms";
        assert_eq!(refusal("cut", text("2ms")), expected);
        let expected = "`colour`: found `blu`, expected one of red, blue; nearest is `blue`";
        assert_eq!(refusal("colour", text("blu")), expected);
        let expected = "`waste`: found `90%`, expected a percentage such as `7%` from 1% to 50%";
        assert_eq!(refusal("waste", text("90%")), expected);
        assert!(refusal("corner", Value::Int(4)).contains("nearest is `corners`"));
        assert!(refusal("loop", Value::Int(1)).ends_with("expected true or false"));
        assert!(refusal("holes", Value::Int(1)).contains("a list, each entry a whole number"));
        let holes = Value::List(vec![Value::Int(1), text("x")]);
        let expected = "`holes`: found `x`, expected a list, each entry a whole number";
        assert_eq!(refusal("holes", holes), expected);
        assert!(refusal("name", Value::Int(1)).ends_with("found `1`, expected text in quotes"));
    }

    #[test]
    fn values_read_back_as_themselves() {
        let pairs = [
            ("corners", Value::Int(5)),
            ("sheet", text("8640B")),
            ("cut", text("21814ns")),
            ("colour", text("blue")),
            ("loop", Value::Bool(true)),
            ("waste", text("12.5%")),
            ("name", text("a")),
            ("stock", text("10%wss")),
            ("holes", Value::List(vec![Value::Int(1), Value::Int(2)])),
            ("knife.d", Value::Int(9)),
        ];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value));
        let sample = Sample::from_pairs(&pairs).unwrap();
        assert_eq!((sample.corners, sample.r#loop, sample.waste), (5, true, Percent(0.125)));
        assert_eq!(sample.knife.pairs, [("d".to_owned(), Value::Int(9))]);
        let values = sample.values();
        let again = values.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        assert_eq!(Sample::from_pairs(&again.collect::<Vec<_>>()), Ok(sample));
    }

    #[test]
    fn texts_of_options_are_read_by_the_kind_of_their_key() {
        let mut sample = Sample::default();
        for (key, text) in [("corners", "4"), ("name", "4"), ("loop", "true"), ("sheet", "4KiB")] {
            sample.set_text(key, text).unwrap();
        }
        assert_eq!((sample.corners, sample.name.as_deref(), sample.r#loop), (4, Some("4"), true));
        assert_eq!(
            (sample.sheet, Sample::keys()[3].default_text()),
            (Bytes(4096), "\"red\"".into())
        );
        let refused = sample.set_text("corners", "9").unwrap_err();
        assert_eq!((refused.found.as_str(), refused.key.as_str()), ("`9`", "corners"));
        assert_eq!(text("red").plain(), "red");
    }

    #[test]
    fn fields_set_by_hand_are_checked_like_keys() {
        assert_eq!(Sample::default().check_ranges(), Ok(()));
        let refused = Sample { corners: 9, ..Sample::default() }.check_ranges().unwrap_err();
        assert_eq!((refused.found.as_str(), refused.key.as_str()), ("`9`", "corners"));
        assert!(Flat { share: f64::NAN, levels: 64 }.check_ranges().is_err());
    }

    #[test]
    fn a_scheme_is_a_name_or_a_table() {
        let table = Value::Table(vec![
            ("name".to_owned(), text("saw")),
            ("teeth".to_owned(), Value::Float(0.5)),
        ]);
        assert_eq!(table.to_string(), "{ name = \"saw\", teeth = 0.5 }");
        let mut sample = Sample::default();
        sample.set("knife", &table).unwrap();
        assert_eq!(sample.knife.value(), Some(table));
        assert!(
            refusal("knife", Value::Table(Vec::new())).ends_with("expected a table with `name`")
        );
        assert!(refusal("knife", Value::Int(1)).contains("a name, or a table with `name`"));
        assert!(sample.set("corners.x", &Value::Int(1)).is_err(), "a number has no parts");
    }

    #[test]
    fn keys_say_what_a_user_can_know() {
        let keys = Sample::keys();
        assert_eq!(keys.len(), 10);
        let cut = &keys[2];
        assert_eq!((cut.name, cut.group, cut.doc), ("cut", "shape", "time to cut"));
        assert_eq!((cut.accepted.as_str(), cut.applies), ("0s..=1ms", "with a knife"));
        assert_eq!(cut.default_text(), "\"1.5us\"");
        assert_eq!((keys[4].name, keys[4].source, keys[6].default.clone()), ("loop", "", None));
        assert_eq!(keys[8].doc, "what it is cut from");
        assert_eq!(keys[0].extremes(), [Value::Int(3), Value::Int(8)]);
        assert_eq!(keys[3].extremes(), [text("red"), text("blue")]);
        assert_eq!(Flat::keys()[0].extremes(), [Value::Float(0.0), Value::Float(1.0)]);
        assert_eq!(Flat::keys()[1].default_number(), 64.0);
        assert!(NoSettings::keys().is_empty());
    }

    #[test]
    fn keys_that_differ_say_what_can_be_shared() {
        let (flat, deep) = (Flat::default(), Flat { levels: 8, ..Flat::default() });
        assert_eq!(flat.differences(&flat), [""; 0]);
        assert_eq!(flat.differences(&deep), ["table"]);
        assert_eq!(deep.differences(&Flat { share: 0.2, ..flat }), ["", "table"]);
    }

    #[test]
    fn absent_keys_keep_their_defaults() {
        let flat = Flat::from_pairs(&[("levels".into(), Value::Int(8))]);
        assert_eq!(flat, Ok(Flat { share: 0.1, levels: 8 }));
        let error = NoSettings::default().set("x", &Value::Int(1)).unwrap_err().to_string();
        assert_eq!(error, "`x`: found an unknown key, expected no settings here");
    }
}
