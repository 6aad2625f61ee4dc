//! The JSON schema of one declared key.
//!
//! For: the schema of stack files. Must never know: any key. Ranges of texts with a unit stand in
//! the description, because a schema compares numbers alone.

use cachewright_stack::kinds::{ChannelWish, FormatOptions, Label, Texts};
use cachewright_types::declare::{Nested, NoSettings, Percent, Value, ValueKind};
use cachewright_types::{Bytes, Key, Nanos, Size};
use serde_json::{Map, Value as Json, json};

const BYTES: &str = r"^\s*[0-9._]+\s*(B|KiB|MiB|GiB|TiB|kB|KB|MB|GB|TB)\s*$";
const TIME: &str = r"^\s*[0-9._]+\s*(ns|us|ms|s|min|h)\s*$";
const SIZE: &str = r"^\s*[0-9._]+\s*(B|KiB|MiB|GiB|TiB|kB|KB|MB|GB|TB|blocks?|%wss)\s*$";
const PERCENT: &str = r"^\s*[0-9.]+\s*%$";

/// The schema of a key: its values, what it means, its default.
pub fn schema(key: &Key) -> Json {
    described(values(key), key)
}

/// A schema of values with the key's description.
pub fn described(values: Json, key: &Key) -> Json {
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!(description(key)));
    if let Json::Object(values) = values {
        schema.extend(values);
    }
    if let Some(default) = &key.default {
        schema.insert("default".to_owned(), json(default));
    }
    Json::Object(schema)
}

fn description(key: &Key) -> String {
    let mut text = key.doc.to_owned();
    let facts = [
        ("unit", key.unit.trim_matches('-')),
        ("accepted", key.accepted.as_str()),
        ("applies", key.applies),
        ("needs", key.needs),
        ("source", key.source),
    ];
    for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        text.push_str(&format!("; {name}: {fact}"));
    }
    text
}

/// What a key of that kind accepts.
fn values(key: &Key) -> Json {
    let is = |kind: &str| key.kind == kind;
    if is(bool::KIND) {
        return json!({ "type": "boolean" });
    }
    if !key.words.is_empty() {
        return json!({ "enum": key.words });
    }
    if is(u32::KIND) || is(f64::KIND) {
        return number(key, is(u32::KIND));
    }
    let pattern = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    match key.kind {
        kind if kind == Bytes::KIND => pattern(BYTES),
        kind if kind == Nanos::KIND => pattern(TIME),
        kind if kind == Size::KIND => pattern(SIZE),
        kind if kind == Percent::KIND => pattern(PERCENT),
        kind if kind == Label::KIND => json!({ "type": ["string", "integer"] }),
        kind if kind == Texts::KIND => of_each(&["string"]),
        kind if kind == FormatOptions::KIND => of_each(&["string", "number", "boolean"]),
        kind if kind == Vec::<String>::KIND => json!({ "type": "array" }),
        kind if kind == Nested::<NoSettings>::KIND => json!({ "type": "object" }),
        kind if kind == ChannelWish::KIND => {
            let count = json!({ "type": "integer", "minimum": 0 });
            json!({ "anyOf": [count, { "type": "array", "items": count }] })
        }
        _ => json!({ "type": "string" }),
    }
}

fn of_each(types: &[&str]) -> Json {
    json!({ "type": "object", "additionalProperties": { "type": types } })
}

fn number(key: &Key, whole: bool) -> Json {
    let mut schema = json!({ "type": if whole { "integer" } else { "number" } });
    let bound = |bound: f64| if whole { json!(bound as i64) } else { json!(bound) };
    if let Some((low, high)) = key.range {
        schema["minimum"] = bound(low);
        schema["maximum"] = bound(high);
    }
    schema
}

fn json(value: &Value) -> Json {
    match value {
        Value::Int(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::Bool(flag) => json!(flag),
        Value::Text(text) => json!(text),
        Value::List(values) => values.iter().map(json).collect(),
        Value::Table(pairs) => {
            Json::Object(pairs.iter().map(|(key, value)| (key.clone(), json(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::declare;
    use cachewright_types::declare::Declared;

    declare! {
        /// Keys for the tests.
        pub struct Sample {
            /// how many
            count: u32 = 3, "blocks", 1 ..= 8; "a paper";
            /// how large
            size: Option<Bytes> = None, "bytes";
            /// whether
            flag: bool = false, "-";
        }
    }

    #[test]
    fn a_key_is_described_and_bounded() {
        let [count, size, flag] = &Sample::keys()[..] else { unreachable!() };
        let expected = json!({
            "description": "how many; unit: blocks; accepted: 1..=8; source: a paper",
            "type": "integer", "minimum": 1, "maximum": 8, "default": 3,
        });
        assert_eq!(schema(count), expected);
        assert_eq!(schema(size)["pattern"], BYTES);
        assert_eq!(schema(size).get("default"), None);
        assert_eq!(
            (&schema(flag)["type"], &schema(flag)["default"]),
            (&json!("boolean"), &json!(false))
        );
    }
}
