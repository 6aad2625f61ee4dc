//! What names and other texts of a stack file may hold.
//!
//! For: names that become file names, columns, labels of charts and lines of a terminal. Must never
//! know: where they are shown. Control characters move a terminal's cursor and break charts; those
//! that turn the direction of text make a name look like another one.

use cachewright_types::{Value, is_hidden, visible as shown};

/// Bytes of a name at most: a file name of 255 bytes leaves some for what stands beside it.
const MAX_NAME_BYTES: usize = 200;
/// The row of all tenants together in every table.
pub const ALL_TENANTS: &str = "all";
/// The table of a tenant whose values are the trace format's: a delimiter may be a tab.
const FORMAT_OPTIONS: &str = "options";

/// Checks a stack's name, which is the name of its result folder. Errors: no file name.
pub fn stack(name: &str) -> Result<(), String> {
    check("name", name)?;
    let expected = match name {
        "." | ".." => "a name that is not a folder of its own",
        path if path.contains(['/', '\\']) => "a name without `/` and `\\`",
        _ => return Ok(()),
    };
    Err(format!("`name`: found `{name}`, expected {expected}, since results lie under it"))
}

/// Checks a tenant's name. Errors: a name that no table can show, or that stands for all tenants.
pub fn tenant(key: &str, name: &str) -> Result<(), String> {
    check(key, name)?;
    if name == ALL_TENANTS {
        let expected = "another name: `all` is the row of all tenants together";
        return Err(format!("`{key}`: found `{name}`, expected {expected}"));
    }
    Ok(())
}

/// Checks the name of an export. Errors: none that clients can ask for.
pub fn export(key: &str, name: &str) -> Result<(), String> {
    check(key, name)
}

fn check(key: &str, name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err(format!("`{key}`: found `{name}`, expected a name that is not empty"));
    }
    if name.len() > MAX_NAME_BYTES {
        let found = name.len();
        return Err(format!(
            "`{key}`: found a name of {found} bytes, expected at most {MAX_NAME_BYTES}"
        ));
    }
    visible(key, name)
}

/// Refuses keys and texts with a character that cannot be shown, anywhere in a stack file but in
/// the options of trace formats.
pub fn check_texts(document: &Value) -> Result<(), String> {
    check_value("", document)
}

fn check_table(path: &str, pairs: &[(String, Value)]) -> Result<(), String> {
    for (key, value) in pairs {
        if let Some(character) = hidden(key) {
            let (table, found) = (if path.is_empty() { "the file" } else { path }, shown(key));
            return Err(format!("found the key `{found}` in `{table}` {}", wanted(character)));
        }
        if key != FORMAT_OPTIONS {
            let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            check_value(&full, value)?;
        }
    }
    Ok(())
}

fn check_value(path: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) => visible(path, text),
        Value::Table(pairs) => check_table(path, pairs),
        Value::List(values) => values
            .iter()
            .enumerate()
            .try_for_each(|(index, value)| check_value(&format!("{path}[{}]", index + 1), value)),
        _ => Ok(()),
    }
}

/// Refuses a text with a character that cannot be shown.
pub fn visible(key: &str, text: &str) -> Result<(), String> {
    match hidden(text) {
        None => Ok(()),
        Some(character) => Err(format!("`{key}`: found `{}` {}", shown(text), wanted(character))),
    }
}

fn wanted(character: char) -> String {
    let found = character.escape_default();
    format!("with the character {found}, expected text without control characters")
}

/// The first character that cannot be shown.
fn hidden(text: &str) -> Option<char> {
    text.chars().find(|character| is_hidden(*character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        check_texts(&crate::document::parse(text).unwrap()).unwrap_err()
    }

    #[test]
    fn hidden_characters_are_named_with_their_key() {
        let error = refusal("[[tenant]]\nname = \"a\\u0007b\"");
        let expected = "`tenant[1].name`: found `a\\u{7}b` with the character \\u{7}, expected \
                        text without control characters";
        assert_eq!(error, expected);
        assert!(refusal("[cache]\n\"po\\u202elicy\" = 1").contains("in `cache`"));
        assert!(refusal("a = [{ b = \"\\u001b[2J\" }]").starts_with("`a[1].b`: found"));
        let tab = "[[tenant]]\noptions = { delimiter = \"\\t\" }\n";
        assert_eq!(check_texts(&crate::document::parse(tab).unwrap()), Ok(()));
    }

    #[test]
    fn letters_of_any_language_are_shown() {
        for name in ["mail", "späť", "数据库", "a b", "x-1_2.3", "🗄"] {
            assert_eq!(check("name", name), Ok(()), "{name}");
        }
        for name in ["", " ", "a\nb", "a\u{0}", "a\u{85}", "\u{ffff}", &"x".repeat(201)] {
            assert!(check("name", name).is_err(), "{name:?}");
        }
    }
}
