//! Texts of options, read as their keys are declared, and how refused texts are shown.
//!
//! For: readers and writers of all formats. Must never know: any format.

use crate::TraceError;
use cachewright_types::declare::Declared;
use cachewright_types::visible;
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

/// `bytes` as shown in messages: at most 60 characters, none of them hidden.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const LONGEST: usize = 60;
    let text = visible(&String::from_utf8_lossy(&bytes[..bytes.len().min(4 * LONGEST)]));
    if text.chars().count() <= LONGEST && bytes.len() <= 4 * LONGEST {
        return text;
    }
    text.chars().take(LONGEST - 3).chain("...".chars()).collect()
}
