//! Checked reading of one TOML table.
//!
//! For: typed values with defaults, and errors that name the full key, what was found and what was
//! expected. Must never know: which settings exist.

use super::Named;
use cachewright_types::{
    Bytes, Nanos, Size, Value, nearest, parse_bytes, parse_duration, parse_size,
};
use std::ops::RangeInclusive;

/// The longest duration of a key, a hundred years.
const LONGEST: Nanos = Nanos(876_000 * 3_600_000_000_000);

/// Bytes of a value that a message shows.
const SHOWN_BYTES: usize = 100;

/// A table of a stack file and the path to it.
pub struct Section<'a> {
    path: String,
    table: Option<&'a toml::Table>,
}

impl<'a> Section<'a> {
    /// The table at `path` (empty for the whole file); keys not in `known` are refused.
    pub fn new(path: &str, table: &'a toml::Table, known: &[&str]) -> Result<Section<'a>, String> {
        let section = Section { path: path.to_owned(), table: Some(table) };
        for key in table.keys() {
            if !known.contains(&key.as_str()) {
                let hint = match nearest(key, known.iter().copied()) {
                    Some(near) => format!("; nearest is `{near}`"),
                    None => String::new(),
                };
                let (key, known) = (section.key(key), known.join(", "));
                return Err(format!("found unknown key `{key}`, expected one of {known}{hint}"));
            }
        }
        Ok(section)
    }

    /// The table `name` inside this one; an absent one has only defaults.
    pub fn table(&self, name: &str, known: &[&str]) -> Result<Section<'a>, String> {
        match self.get(name) {
            None => Ok(Section { path: self.key(name), table: None }),
            Some(toml::Value::Table(table)) => Section::new(&self.key(name), table, known),
            Some(other) => Err(self.refuse(name, other, "a table")),
        }
    }

    /// The table `name` inside this one, which must be there.
    pub fn required_table(&self, name: &str, known: &[&str]) -> Result<Section<'a>, String> {
        match self.get(name) {
            None => Err(format!("found no `[{}]` table, expected one", self.key(name))),
            Some(_) => self.table(name, known),
        }
    }

    /// The full key of `name`.
    pub fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// The raw value of `name`.
    pub fn get(&self, name: &str) -> Option<&'a toml::Value> {
        self.table.and_then(|table| table.get(name))
    }

    /// The refusal of a value.
    pub fn refuse(&self, name: &str, found: &toml::Value, expected: &str) -> String {
        format!("`{}`: found `{}`, expected {expected}", self.key(name), shown(found))
    }

    /// A text, or nothing.
    pub fn optional_text(&self, name: &str) -> Result<Option<String>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(toml::Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.refuse(name, other, "text in quotes")),
        }
    }

    /// A table of texts, in order of their keys; none where there is no table.
    pub fn texts(&self, name: &str) -> Result<Vec<(String, String)>, String> {
        let table = match self.get(name) {
            None => return Ok(Vec::new()),
            Some(toml::Value::Table(table)) => table,
            Some(other) => return Err(self.refuse(name, other, "a table of texts")),
        };
        let one = |(key, value): (&String, &toml::Value)| match value {
            toml::Value::String(text) => Ok((key.clone(), text.clone())),
            other => Err(self.refuse(&format!("{name}.{key}"), other, "text in quotes")),
        };
        table.iter().map(one).collect()
    }

    /// A text.
    pub fn text(&self, name: &str, default: &str) -> Result<String, String> {
        Ok(self.optional_text(name)?.unwrap_or_else(|| default.to_owned()))
    }

    /// A whole number in `range`.
    pub fn whole(
        &self,
        name: &str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, String> {
        let Some(value) = self.get(name) else { return Ok(default) };
        let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            let expected = format!("a whole number from {} to {}", range.start(), range.end());
            self.refuse(name, value, &expected)
        })
    }

    /// A number above zero, up to `high`.
    pub fn positive(&self, name: &str, default: f64, high: f64) -> Result<f64, String> {
        let Some(value) = self.get(name) else { return Ok(default) };
        let number = value.as_float().or(value.as_integer().map(|number| number as f64));
        number
            .filter(|number| *number > 0.0 && *number <= high)
            .ok_or_else(|| self.refuse(name, value, &format!("a number above 0, to {high}")))
    }

    /// A ratio from 0 to 1.
    pub fn share(&self, name: &str, default: f64) -> Result<f64, String> {
        let Some(value) = self.get(name) else { return Ok(default) };
        let number = value.as_float().or(value.as_integer().map(|number| number as f64));
        number
            .filter(|ratio| (0.0..=1.0).contains(ratio))
            .ok_or_else(|| self.refuse(name, value, "a ratio from 0 to 1"))
    }

    /// true or false.
    pub fn boolean(&self, name: &str, default: bool) -> Result<bool, String> {
        let Some(value) = self.get(name) else { return Ok(default) };
        value.as_bool().ok_or_else(|| self.refuse(name, value, "true or false"))
    }

    /// The index of one of `words`.
    pub fn choice(&self, name: &str, words: &[&str], default: usize) -> Result<usize, String> {
        let Some(value) = self.get(name) else { return Ok(default) };
        let found = value.as_str().and_then(|text| words.iter().position(|word| *word == text));
        found.ok_or_else(|| {
            let near = value.as_str().and_then(|text| nearest(text, words.iter().copied()));
            let hint = near.map_or(String::new(), |near| format!("; nearest is `{near}`"));
            self.refuse(name, value, &format!("one of {}{hint}", words.join(", ")))
        })
    }

    fn quantity<T>(
        &self,
        name: &str,
        value: &toml::Value,
        parse: impl Fn(&str) -> Result<T, cachewright_types::UnitError>,
    ) -> Result<T, String> {
        let parsed = match value {
            toml::Value::String(text) if text.len() <= SHOWN_BYTES => parse(text),
            other => parse(&shown(other)),
        };
        parsed.map_err(|error| format!("`{}`: {error}", self.key(name)))
    }

    /// A number of bytes.
    pub fn bytes(&self, name: &str, default: Bytes) -> Result<Bytes, String> {
        match self.get(name) {
            None => Ok(default),
            Some(value) => self.quantity(name, value, parse_bytes),
        }
    }

    /// A duration, not so long that sums of a few could not be counted.
    pub fn duration(&self, name: &str, default: Nanos) -> Result<Nanos, String> {
        match self.get(name) {
            None => Ok(default),
            Some(value) => match self.quantity(name, value, parse_duration)? {
                long if long > LONGEST => {
                    Err(self.refuse(name, value, &format!("at most {LONGEST}")))
                }
                time => Ok(time),
            },
        }
    }

    /// A cache size, which must be there.
    pub fn size(&self, name: &str) -> Result<Size, String> {
        match self.get(name) {
            None => Err(format!(
                "found no `{}`, expected a size such as `64MiB` or `10%wss`",
                self.key(name)
            )),
            Some(value) => self.quantity(name, value, parse_size),
        }
    }

    /// A scheme: its name, or a table with `name` and its settings.
    pub fn named(&self, name: &str, default: &str) -> Result<Named, String> {
        match self.get(name) {
            None => Ok(Named { name: default.to_owned(), pairs: Vec::new() }),
            Some(toml::Value::String(text)) => Ok(Named { name: text.clone(), pairs: Vec::new() }),
            Some(toml::Value::Table(table)) => {
                let scheme = table.get("name").and_then(toml::Value::as_str).ok_or_else(|| {
                    format!("`{}`: found a table without `name`, expected one", self.key(name))
                })?;
                let pairs = table.iter().filter(|(key, _)| *key != "name");
                let pairs: Result<Vec<_>, String> = pairs
                    .map(|(key, value)| {
                        let value = setting(value).ok_or_else(|| {
                            let expected = "a number, true, false or text";
                            format!(
                                "`{}.{key}`: found `{value}`, expected {expected}",
                                self.key(name)
                            )
                        })?;
                        Ok((key.clone(), value))
                    })
                    .collect();
                Ok(Named { name: scheme.to_owned(), pairs: pairs? })
            }
            Some(other) => {
                Err(self.refuse(name, other, "a name, or a table with `name` and settings"))
            }
        }
    }
}

/// A value in a message: short, and numbers as they are written.
fn shown(value: &toml::Value) -> String {
    let text = match value {
        toml::Value::Float(number) => format!("{number:?}"),
        other => other.to_string(),
    };
    if text.len() <= SHOWN_BYTES {
        return text;
    }
    text.chars().take(SHOWN_BYTES / 2).chain("...".chars()).collect()
}

/// A value that a scheme's or device's setting can have.
pub fn setting(value: &toml::Value) -> Option<Value> {
    match value {
        toml::Value::Integer(number) => Some(Value::Int(*number)),
        toml::Value::Float(number) => Some(Value::Float(*number)),
        toml::Value::Boolean(flag) => Some(Value::Bool(*flag)),
        toml::Value::String(text) => Some(Value::Text(text.clone())),
        _ => None,
    }
}
