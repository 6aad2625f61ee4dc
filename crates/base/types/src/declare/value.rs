//! A value as a stack file, the command line or Python gives it, before it is checked.
//!
//! For: what declared keys are read from and written to. Must never know: files, formats of text.

use std::fmt;

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
