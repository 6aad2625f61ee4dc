//! The kinds of value that a declared key can have; sizes and times are texts with a unit (`8KiB`).

use super::{Declared, SettingError, Value};
use crate::units::{Bytes, Nanos, Size, UnitError, parse_bytes, parse_duration, parse_size};

/// Digits of a number beyond which it is written with an exponent.
const LONG_NUMBER: usize = 8;
/// Longest duration of a key, a hundred years, so that sums of a few can be counted.
const LONGEST: Nanos = Nanos(876_000 * 3_600_000_000_000);

/// Why a value is not of a kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Mismatch {
    /// It is of another kind.
    Kind,
    /// What would have been accepted instead.
    Expected(String),
    /// An entry of the list that the value is was refused: what was found, what was expected.
    Item(Value, String),
    /// A key of the table that the value is was refused.
    Key(SettingError),
}

/// A kind of value that a key can have.
pub trait ValueKind: Clone {
    /// The kind in words, for messages.
    const KIND: &'static str;
    /// The value read.
    fn read(value: &Value) -> Result<Self, Mismatch>;
    /// The value as it is written in a stack file; nothing where there is none.
    fn value(&self) -> Option<Value>;
    /// The value as a number, for ranges; nothing for kinds without an order.
    fn number(&self) -> Option<f64> {
        None
    }
    /// A bound of a range in words.
    fn bound(number: f64) -> String {
        number.to_string()
    }
    /// The words of a choice; empty for other kinds.
    fn words() -> Vec<&'static str> {
        Vec::new()
    }
    /// Sets what stands under the key with `.part` behind it; false when there is no such thing.
    fn set_part(&mut self, _part: &str, _value: &Value) -> bool {
        false
    }
}

macro_rules! whole {
    ($($kind:ty),*) => { $(
        impl ValueKind for $kind {
            const KIND: &'static str = "a whole number";

            fn read(value: &Value) -> Result<$kind, Mismatch> {
                match value {
                    Value::Int(number) => <$kind>::try_from(*number).map_err(|_| Mismatch::Kind),
                    _ => Err(Mismatch::Kind),
                }
            }

            fn value(&self) -> Option<Value> {
                Some(Value::Int(i64::try_from(*self).unwrap_or(i64::MAX)))
            }

            fn number(&self) -> Option<f64> {
                Some(*self as f64)
            }

            fn bound(number: f64) -> String {
                (number as u64).to_string()
            }
        }
    )* };
}

whole!(u32, u64);

impl ValueKind for f64 {
    const KIND: &'static str = "a number";

    fn read(value: &Value) -> Result<f64, Mismatch> {
        match value {
            Value::Float(number) => Ok(*number),
            Value::Int(number) => Ok(*number as f64),
            _ => Err(Mismatch::Kind),
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Float(*self))
    }

    fn number(&self) -> Option<f64> {
        Some(*self)
    }

    fn bound(number: f64) -> String {
        let text = number.to_string();
        if text.len() > LONG_NUMBER { format!("{number:e}") } else { text }
    }
}

impl ValueKind for bool {
    const KIND: &'static str = "true or false";

    fn read(value: &Value) -> Result<bool, Mismatch> {
        match value {
            Value::Bool(flag) => Ok(*flag),
            _ => Err(Mismatch::Kind),
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Bool(*self))
    }

    fn number(&self) -> Option<f64> {
        Some(f64::from(u8::from(*self)))
    }

    fn words() -> Vec<&'static str> {
        vec!["true", "false"]
    }
}

impl ValueKind for String {
    const KIND: &'static str = "text in quotes";

    fn read(value: &Value) -> Result<String, Mismatch> {
        value.as_text().map(str::to_owned).ok_or(Mismatch::Kind)
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.clone()))
    }
}

/// A quantity from its text with a unit.
fn quantity<T>(value: &Value, parse: fn(&str) -> Result<T, UnitError>) -> Result<T, Mismatch> {
    let text = match value {
        Value::Text(text) => text.clone(),
        other => other.to_string(),
    };
    parse(&text).map_err(|error| Mismatch::Expected(error.expected.to_owned()))
}

impl ValueKind for Bytes {
    const KIND: &'static str = "a number with a unit (`8KiB`)";

    fn read(value: &Value) -> Result<Bytes, Mismatch> {
        quantity(value, parse_bytes)
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.exact()))
    }

    fn number(&self) -> Option<f64> {
        Some(self.0 as f64)
    }

    fn bound(number: f64) -> String {
        Bytes(number as u64).exact()
    }
}

impl ValueKind for Nanos {
    const KIND: &'static str = "a number with a unit (`75us`)";

    fn read(value: &Value) -> Result<Nanos, Mismatch> {
        match quantity(value, parse_duration)? {
            long if long > LONGEST => Err(Mismatch::Expected(format!("at most {LONGEST}"))),
            time => Ok(time),
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.exact()))
    }

    fn number(&self) -> Option<f64> {
        Some(self.0 as f64)
    }

    fn bound(number: f64) -> String {
        Nanos(number as u64).exact()
    }
}

impl ValueKind for Size {
    const KIND: &'static str = "a size such as `64MiB`, `4096 blocks` or `10%wss`";

    fn read(value: &Value) -> Result<Size, Mismatch> {
        quantity(value, parse_size)
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.exact()))
    }
}

impl<T: ValueKind> ValueKind for Option<T> {
    const KIND: &'static str = T::KIND;

    fn read(value: &Value) -> Result<Option<T>, Mismatch> {
        T::read(value).map(Some)
    }

    fn value(&self) -> Option<Value> {
        self.as_ref().and_then(T::value)
    }

    fn number(&self) -> Option<f64> {
        self.as_ref().and_then(T::number)
    }

    fn bound(number: f64) -> String {
        T::bound(number)
    }

    fn words() -> Vec<&'static str> {
        T::words()
    }
}

impl<T: ValueKind> ValueKind for Vec<T> {
    const KIND: &'static str = "a list";

    fn read(value: &Value) -> Result<Vec<T>, Mismatch> {
        let expected = || format!("a list, each entry {}", T::KIND);
        let item = |value: &Value| {
            T::read(value).map_err(|mismatch| match mismatch {
                Mismatch::Expected(words) => Mismatch::Item(value.clone(), words),
                _ => Mismatch::Item(value.clone(), expected()),
            })
        };
        match value {
            Value::List(values) => values.iter().map(item).collect(),
            _ => Err(Mismatch::Expected(expected())),
        }
    }

    fn value(&self) -> Option<Value> {
        (!self.is_empty()).then(|| Value::List(self.iter().filter_map(T::value).collect()))
    }
}

/// A part of a whole, written as a percentage (`7%`); the value is the ratio (0.07).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(pub f64);

impl Percent {
    /// The ratio as its percentage.
    pub fn text(self) -> String {
        let text = format!("{:.6}", 100.0 * self.0);
        format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl ValueKind for Percent {
    const KIND: &'static str = "a percentage such as `7%`";

    fn read(value: &Value) -> Result<Percent, Mismatch> {
        let number = value.as_text().and_then(|text| text.trim().strip_suffix('%'));
        let percent: Option<f64> = number.and_then(|number| number.trim().parse().ok());
        percent.map(|percent| Percent(percent / 100.0)).ok_or(Mismatch::Kind)
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.text()))
    }

    fn number(&self) -> Option<f64> {
        Some(self.0)
    }

    fn bound(number: f64) -> String {
        Percent(number).text()
    }
}

/// A scheme: its registered name, and the settings that are given over its defaults. Written as the
/// name alone, or as a table with `name` and the settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheme {
    /// The registered name.
    pub name: String,
    /// Settings given; the others keep their defaults.
    pub pairs: Vec<(String, Value)>,
}

impl Scheme {
    /// A scheme with its default settings.
    pub fn named(name: &str) -> Scheme {
        Scheme { name: name.to_owned(), pairs: Vec::new() }
    }
}

impl ValueKind for Scheme {
    const KIND: &'static str = "a name, or a table with `name` and settings";

    fn read(value: &Value) -> Result<Scheme, Mismatch> {
        let pairs = match value {
            Value::Text(name) => return Ok(Scheme::named(name)),
            Value::Table(pairs) => pairs,
            _ => return Err(Mismatch::Kind),
        };
        let Some(name) = value.get("name").and_then(Value::as_text) else {
            return Err(Mismatch::Expected("a table with `name`".to_owned()));
        };
        let given = pairs.iter().filter(|(key, _)| key != "name");
        let mut scheme = Scheme::named(name);
        for (key, value) in given {
            if let Value::List(_) | Value::Table(_) = value {
                let expected = format!("a number, true, false or text as `{key}`");
                return Err(Mismatch::Expected(expected));
            }
            scheme.pairs.push((key.clone(), value.clone()));
        }
        Ok(scheme)
    }

    fn value(&self) -> Option<Value> {
        if self.pairs.is_empty() {
            return Some(Value::Text(self.name.clone()));
        }
        let name = ("name".to_owned(), Value::Text(self.name.clone()));
        Some(Value::Table([name].into_iter().chain(self.pairs.iter().cloned()).collect()))
    }

    fn set_part(&mut self, part: &str, value: &Value) -> bool {
        match (part, value) {
            ("name", Value::Text(name)) => name.clone_into(&mut self.name),
            ("name", _) => return false,
            _ => {
                self.pairs.retain(|(key, _)| key != part);
                self.pairs.push((part.to_owned(), value.clone()));
            }
        }
        true
    }
}

/// A table inside a table, with keys of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nested<T>(pub T);

impl<T: Declared> ValueKind for Nested<T> {
    const KIND: &'static str = "a table";

    fn read(value: &Value) -> Result<Nested<T>, Mismatch> {
        let Value::Table(pairs) = value else { return Err(Mismatch::Kind) };
        T::from_pairs(pairs).map(Nested).map_err(Mismatch::Key)
    }

    fn value(&self) -> Option<Value> {
        let given = self.0.values().into_iter();
        let pairs = given.filter_map(|(key, value)| Some((key.to_owned(), value?)));
        Some(Value::Table(pairs.collect()))
    }
}
