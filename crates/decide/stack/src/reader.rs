//! Checked reading of one table of a stack file.
//!
//! For: declared keys from a table's values, with errors that name the full key, what was found and
//! what was expected. Must never know: which keys exist.

use cachewright_types::declare::Declared;
use cachewright_types::{SettingError, Value, nearest};

/// A table of a stack file and the path to it; an absent table has only defaults.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    path: String,
    table: Option<&'a Value>,
}

impl<'a> Reader<'a> {
    /// The table at `path`, which is empty for the whole file.
    pub fn new(path: &str, table: Option<&'a Value>) -> Reader<'a> {
        Reader { path: path.to_owned(), table }
    }

    /// The table under `name` in this one. Errors: the key holds something else.
    pub fn table(&self, name: &str) -> Result<Reader<'a>, String> {
        let path = self.key(name);
        match self.get(name) {
            None | Some(Value::Table(_)) => Ok(Reader { path, table: self.get(name) }),
            Some(other) => Err(self.refuse(name, other, "a table")),
        }
    }

    /// The full key of `name`.
    pub fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// The value of a key as it stands in the file.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.table.and_then(|table| table.get(name))
    }

    /// Whether the table is in the file.
    pub fn is_there(&self) -> bool {
        self.table.is_some()
    }

    /// Keys and values in the order of the file.
    pub fn pairs(&self) -> &'a [(String, Value)] {
        match self.table {
            Some(Value::Table(pairs)) => pairs,
            _ => &[],
        }
    }

    /// The declared keys of the table, set over their defaults. Errors: an unknown key, or a value
    /// that is refused.
    pub fn read<T: Declared>(&self) -> Result<T, String> {
        let known: Vec<&str> = T::keys().iter().map(|key| key.name).collect();
        self.check_known(&known)?;
        let mut declared = T::default();
        for (key, value) in self.pairs() {
            declared.set(key, value).map_err(|error| self.refusal(&error))?;
        }
        Ok(declared)
    }

    /// Refuses a key that is not `known`, with the nearest one.
    pub fn check_known(&self, known: &[&str]) -> Result<(), String> {
        for (key, _) in self.pairs() {
            if !known.contains(&key.as_str()) {
                let hint = match nearest(key, known.iter().copied()) {
                    Some(near) => format!("; nearest is `{near}`"),
                    None => String::new(),
                };
                let (key, known) = (self.key(key), known.join(", "));
                return Err(format!("found unknown key `{key}`, expected one of {known}{hint}"));
            }
        }
        Ok(())
    }

    /// The refusal of a value.
    pub fn refuse(&self, name: &str, found: &Value, expected: &str) -> String {
        format!("`{}`: found `{}`, expected {expected}", self.key(name), found.shown())
    }

    /// A refusal under the full key.
    pub fn refusal(&self, error: &SettingError) -> String {
        let SettingError { key, found, expected } = error;
        format!("`{}`: found {found}, expected {expected}", self.key(key))
    }
}
