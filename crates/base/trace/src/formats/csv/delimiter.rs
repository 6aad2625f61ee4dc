//! What separates the columns of a CSV.
//!
//! For: the option of that name. Must never know: columns.

use crate::fields::BLANKS;
use cachewright_types::Value;
use cachewright_types::declare::{Mismatch, ValueKind};

/// What separates columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// The commonest of the usual ones in the first line.
    Auto,
    /// This character; [`BLANKS`] are runs of blanks.
    Byte(u8),
}

const DELIMITERS: [(&str, Delimiter); 5] = [
    ("auto", Delimiter::Auto),
    ("comma", Delimiter::Byte(b',')),
    ("semicolon", Delimiter::Byte(b';')),
    ("tab", Delimiter::Byte(b'\t')),
    ("blanks", Delimiter::Byte(BLANKS)),
];

impl Delimiter {
    /// The separator of a file with this first line.
    pub(super) fn resolve(self, first_line: &[u8]) -> u8 {
        if let Delimiter::Byte(byte) = self {
            return byte;
        }
        let count = |byte: u8| first_line.iter().filter(|other| **other == byte).count();
        let commonest = [b',', b';', b'\t', b'|'].into_iter().rev().max_by_key(|b| count(*b));
        commonest.filter(|byte| count(*byte) > 0).unwrap_or(BLANKS)
    }
}

impl ValueKind for Delimiter {
    const KIND: &'static str = "auto, comma, semicolon, tab, blanks or one punctuation character";

    fn read(value: &Value) -> Result<Delimiter, Mismatch> {
        let text = value.as_text().ok_or(Mismatch::Kind)?;
        let named = DELIMITERS.iter().find(|(word, _)| *word == text);
        match (named, text.as_bytes()) {
            (Some((_, delimiter)), _) => Ok(*delimiter),
            (None, [byte]) if byte.is_ascii_punctuation() && !b"\"._-".contains(byte) => {
                Ok(Delimiter::Byte(*byte))
            }
            _ => Err(Mismatch::Kind),
        }
    }

    fn value(&self) -> Option<Value> {
        let named = DELIMITERS.iter().find(|(_, known)| known == self);
        let text = match (named, self) {
            (Some((word, _)), _) => (*word).to_owned(),
            (None, Delimiter::Byte(byte)) => char::from(*byte).to_string(),
            (None, Delimiter::Auto) => return None,
        };
        Some(Value::Text(text))
    }
}
