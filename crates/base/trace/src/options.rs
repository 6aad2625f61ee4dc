//! Texts of options, read as their keys are declared, and how refused texts are shown.
//!
//! For: readers and writers of all formats. Must never know: any format.

use crate::TraceError;
use cachewright_types::declare::Declared;
use std::collections::BTreeMap;

/// Options as they are declared, from their texts. Errors: a value that its key does not accept.
pub(crate) fn declared<T: Declared>(texts: &BTreeMap<String, String>) -> Result<T, TraceError> {
    let mut declared = T::default();
    for (key, text) in texts {
        let set = declared.set_text(key, text);
        set.map_err(|error| bad_option(&error.key, text, error.expected))?;
    }
    Ok(declared)
}

/// The refusal of the value `found` of option `key`.
pub(crate) fn bad_option(key: &str, found: &str, expected: impl Into<String>) -> TraceError {
    let (key, found) = (shown(key.as_bytes()), shown(found.as_bytes()));
    TraceError::Option { key, found, expected: expected.into() }
}

/// `bytes` as shown in messages: at most 60 characters, all harmless.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const LONGEST: usize = 60;
    let text = harmless(&String::from_utf8_lossy(&bytes[..bytes.len().min(4 * LONGEST)]));
    if text.chars().count() <= LONGEST && bytes.len() <= 4 * LONGEST {
        return text;
    }
    text.chars().take(LONGEST - 3).chain("...".chars()).collect()
}

/// `text` with whatever controls a terminal or turns the direction of text escaped.
pub(crate) fn harmless(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric();
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match is_plain(c) {
            true => escaped.push(c),
            false => escaped.extend(c.escape_default()),
        }
    }
    escaped
}
