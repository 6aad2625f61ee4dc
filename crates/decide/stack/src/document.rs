//! The text of a stack file, and `key=value` pairs set over it.

use cachewright_types::declare::Declared;
use cachewright_types::{SettingError, Value, nearest};

/// Short names and the keys they stand for.
const SHORT: [(&str, &str); 8] = [
    ("policy", "cache.policy"),
    ("partition", "cache.partition"),
    ("layout", "cache.layout"),
    ("capacity", "cache.capacity"),
    ("block", "cache.block"),
    ("write", "cache.write"),
    ("separation", "flash.separation"),
    ("reclaim", "flash.reclaim"),
];

/// Names in a dotted key at most.
const MAX_DEPTH: usize = 16;

/// Keys and values of a table.
type Pairs = Vec<(String, Value)>;

/// The whole text as a table. Errors: no TOML, with line and column.
pub fn parse(text: &str) -> Result<Value, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| syntax(text, &error))?;
    Ok(value(toml::Value::Table(table)))
}

fn value(found: toml::Value) -> Value {
    match found {
        toml::Value::Integer(number) => Value::Int(number),
        toml::Value::Float(number) => Value::Float(number),
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::String(text) => Value::Text(text),
        toml::Value::Datetime(time) => Value::Text(time.to_string()),
        toml::Value::Array(list) => Value::List(list.into_iter().map(value).collect()),
        toml::Value::Table(table) => {
            Value::Table(table.into_iter().map(|(key, found)| (key, value(found))).collect())
        }
    }
}

/// What is wrong with a text that is no TOML, and where, in one line of bounded length.
fn syntax(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().lines().collect::<Vec<_>>().join("; ");
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return message;
    };
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
    format!("line {line}, column {column}: {message}")
}

/// The full key of a short one.
pub fn full_key(key: &str) -> String {
    let (head, rest) = key.split_once('.').unwrap_or((key, ""));
    match SHORT.iter().find(|(short, _)| *short == head) {
        Some((_, full)) if rest.is_empty() => (*full).to_owned(),
        Some((_, full)) => format!("{full}.{rest}"),
        None => key.to_owned(),
    }
}

/// A value as TOML, or as the text it is.
pub fn read(text: &str) -> Value {
    match parse(&format!("value = {text}")) {
        Ok(Value::Table(mut pairs)) if pairs.len() == 1 => pairs.swap_remove(0).1,
        _ => Value::Text(text.to_owned()),
    }
}

/// Sets `key` (dotted, or a short name) to `value`: TOML where it reads as such, else text.
pub fn apply(document: &mut Value, key: &str, value: &str) -> Result<(), String> {
    let full = full_key(key);
    let parts: Vec<&str> = full.split('.').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(format!("found key `{key}`, expected names joined by dots"));
    }
    if parts.len() > MAX_DEPTH {
        let found = parts.len();
        return Err(format!("found a key of {found} names, expected at most {MAX_DEPTH}"));
    }
    let Value::Table(pairs) = document else { return Ok(()) };
    match parts.as_slice() {
        ["tenant", name, rest @ ..] if !rest.is_empty() => {
            set(tenant_table(pairs, name)?, rest, read(value), key)
        }
        parts => set(pairs, parts, read(value), key),
    }
}

fn tenant_table<'a>(pairs: &'a mut Pairs, wanted: &str) -> Result<&'a mut Pairs, String> {
    let tenants = pairs.iter_mut().find(|(key, _)| key == "tenant").map(|(_, found)| found);
    let tables = match tenants {
        Some(Value::List(tables)) => tables.as_mut_slice(),
        _ => &mut [],
    };
    let mut names = Vec::new();
    for table in tables {
        let name = table.get("name").and_then(Value::as_text).map(str::to_owned);
        match (table, name) {
            (Value::Table(own), Some(name)) if name == wanted => return Ok(own),
            (_, name) => names.extend(name),
        }
    }
    Err(format!("found tenant `{wanted}`, expected one of {}", names.join(", ")))
}

fn set(pairs: &mut Pairs, parts: &[&str], value: Value, key: &str) -> Result<(), String> {
    let [first, rest @ ..] = parts else { return Ok(()) };
    let index = match pairs.iter().position(|(name, _)| name == first) {
        Some(index) => index,
        None => {
            pairs.push(((*first).to_owned(), Value::Table(Vec::new())));
            pairs.len() - 1
        }
    };
    let inner = &mut pairs[index].1;
    if rest.is_empty() {
        *inner = value;
        return Ok(());
    }
    // A scheme given by its bare name grows a table when one of its settings is set.
    if let Value::Text(name) = inner {
        *inner = Value::Table(vec![("name".to_owned(), Value::Text(name.clone()))]);
    }
    match inner {
        Value::Table(inner) => set(inner, rest, value, key),
        other => Err(format!("`{key}`: found `{other}` at `{first}`, expected a table")),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(key: &str, value: &str) -> Result<Value, String> {
        let text = "[cache]\npolicy = \"s3-fifo\"\n[[tenant]]\nname = \"a\"\n";
        let mut document = parse(text).unwrap();
        apply(&mut document, key, value).map(|()| document)
    }

    fn cache(document: &Value, key: &str) -> Option<Value> {
        document.get("cache")?.get(key).cloned()
    }

    #[test]
    fn short_names_settings_and_tenants_are_reached() {
        let document = changed("capacity", "64MiB").unwrap();
        assert_eq!(cache(&document, "capacity"), Some(Value::Text("64MiB".into())));
        let document = changed("policy.small_share", "0.2").unwrap();
        let policy = cache(&document, "policy").unwrap();
        assert_eq!(policy.get("name"), Some(&Value::Text("s3-fifo".into())));
        assert_eq!(policy.get("small_share"), Some(&Value::Float(0.2)));
        let document = changed("tenant.a.time_scale", "2").unwrap();
        let Some(Value::List(tenants)) = document.get("tenant") else { panic!("{document}") };
        assert_eq!(tenants[0].get("time_scale"), Some(&Value::Int(2)));
        let error = changed("tenant.b.time_scale", "2").unwrap_err();
        assert_eq!(error, "found tenant `b`, expected one of a");
        assert!(changed("cache..x", "1").is_err());
    }

    #[test]
    fn a_text_that_is_no_toml_is_refused_with_its_place() {
        let error = parse("[cache]\nblock = = 1").unwrap_err();
        assert!(error.starts_with("line 2, column 9: "), "{error}");
    }
}
