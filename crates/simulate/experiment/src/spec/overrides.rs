//! `key=value` pairs set over a stack file.
//!
//! For: `--set` and `--vary`. Must never know: what a key means, but for the short names of the
//! stages and the way to one tenant's keys (`tenant.NAME.key`).

use toml::{Table, Value};

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

/// The full key of a short one.
pub fn full_key(key: &str) -> String {
    let (head, rest) = key.split_once('.').unwrap_or((key, ""));
    match SHORT.iter().find(|(short, _)| *short == head) {
        Some((_, full)) if rest.is_empty() => (*full).to_owned(),
        Some((_, full)) => format!("{full}.{rest}"),
        None => key.to_owned(),
    }
}

/// Sets `key` (dotted, or a short name) to `value`: TOML where it reads as such, else text.
pub fn apply(table: &mut Table, key: &str, value: &str) -> Result<(), String> {
    let full = full_key(key);
    let parts: Vec<&str> = full.split('.').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(format!("found key `{key}`, expected names joined by dots"));
    }
    if parts.len() > MAX_DEPTH {
        let found = parts.len();
        return Err(format!("found a key of {found} names, expected at most {MAX_DEPTH}"));
    }
    let value = read(value);
    match parts.as_slice() {
        ["tenant", name, rest @ ..] if !rest.is_empty() => {
            set(tenant(table, name)?, rest, value, key)
        }
        parts => set(table, parts, value, key),
    }
}

/// A value as TOML, or as the text it is.
pub fn read(value: &str) -> Value {
    let line = format!("value = {value}");
    match line.parse::<Table>() {
        Ok(mut table) => table.remove("value").unwrap_or_else(|| Value::String(value.to_owned())),
        Err(_) => Value::String(value.to_owned()),
    }
}

fn tenant<'a>(table: &'a mut Table, name: &str) -> Result<&'a mut Table, String> {
    let tenants = table.get_mut("tenant").and_then(Value::as_array_mut);
    let mut names = Vec::new();
    for tenant in tenants.into_iter().flatten().filter_map(Value::as_table_mut) {
        match tenant.get("name").and_then(Value::as_str) {
            Some(found) if found == name => return Ok(tenant),
            Some(other) => names.push(other.to_owned()),
            None => {}
        }
    }
    Err(format!("found tenant `{name}`, expected one of {}", names.join(", ")))
}

fn set(table: &mut Table, parts: &[&str], value: Value, key: &str) -> Result<(), String> {
    match parts {
        [] => Ok(()),
        [last] => {
            table.insert((*last).to_owned(), value);
            Ok(())
        }
        [first, rest @ ..] => {
            let inner =
                table.entry((*first).to_owned()).or_insert_with(|| Value::Table(Table::new()));
            // A scheme given by its bare name grows a table when one of its settings is set.
            if let Value::String(name) = inner {
                let mut scheme = Table::new();
                scheme.insert("name".to_owned(), Value::String(name.clone()));
                *inner = Value::Table(scheme);
            }
            match inner {
                Value::Table(inner) => set(inner, rest, value, key),
                other => Err(format!("`{key}`: found `{other}` at `{first}`, expected a table")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(key: &str, value: &str) -> Result<Table, String> {
        let text = "[cache]\npolicy = \"s3-fifo\"\n[[tenant]]\nname = \"a\"\n";
        let mut table: Table = text.parse().unwrap();
        apply(&mut table, key, value).map(|()| table)
    }

    #[test]
    fn short_names_settings_and_tenants_are_reached() {
        let table = changed("capacity", "64MiB").unwrap();
        assert_eq!(table["cache"]["capacity"].as_str(), Some("64MiB"));
        let table = changed("policy.small_share", "0.2").unwrap();
        assert_eq!(table["cache"]["policy"]["name"].as_str(), Some("s3-fifo"));
        assert_eq!(table["cache"]["policy"]["small_share"].as_float(), Some(0.2));
        let table = changed("tenant.a.time_scale", "2").unwrap();
        assert_eq!(table["tenant"][0]["time_scale"].as_integer(), Some(2));
        let error = changed("tenant.b.time_scale", "2").unwrap_err();
        assert_eq!(error, "found tenant `b`, expected one of a");
        assert!(changed("cache..x", "1").is_err());
    }
}
