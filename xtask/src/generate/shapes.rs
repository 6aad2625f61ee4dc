//! The types of answers, read from their JSON schema.
//!
//! For: the page and the Python types, which both list records and fields. Must never know: how
//! they are written. Invariant: what the schema says in another way than expected is
//! [`Type::Any`].

use cachewright_result as result;
use serde_json::{Map, Value};

/// Where a schema refers to another type.
const REFERENCE: &str = "#/$defs/";

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Text,
    Integer,
    Number,
    Boolean,
    /// Any JSON value.
    Any,
    List(Box<Type>),
    /// A list of fixed length.
    Tuple(Vec<Type>),
    /// An object with names that depend on the run.
    Map(Box<Type>),
    /// The record of that name.
    Record(String),
    /// Null, or a value.
    Nullable(Box<Type>),
}

/// One key of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldShape {
    pub name: String,
    pub doc: String,
    pub shape: Type,
    /// Whether the key may be absent.
    pub absent: bool,
}

/// An object with known keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordShape {
    pub name: String,
    pub doc: String,
    pub fields: Vec<FieldShape>,
}

/// What a command returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentShape {
    pub name: &'static str,
    pub shape: Type,
}

/// Every document.
pub fn documents() -> Vec<DocumentShape> {
    let documents = result::documents().into_iter();
    documents
        .map(|(name, schema)| DocumentShape { name, shape: shape(&schema.to_value()) })
        .collect()
}

/// Every record that documents are made of, in the order of their first use. A record that stands
/// in others by its fields alone is left out.
pub fn records() -> Vec<RecordShape> {
    let definitions = result::definitions();
    let item = |(name, schema): (&String, &Value)| {
        let mut fields = Vec::new();
        add_fields(schema, false, &definitions, &mut fields);
        RecordShape { name: name.clone(), doc: description(schema), fields }
    };
    let all: Vec<RecordShape> = definitions.iter().map(item).collect();
    let used = used(&all);
    all.into_iter().filter(|record| used.contains(&record.name)).collect()
}

/// The records that documents and fields name.
fn used(records: &[RecordShape]) -> Vec<String> {
    let mut found = Vec::new();
    let mut left: Vec<Type> = documents().into_iter().map(|document| document.shape).collect();
    while let Some(shape) = left.pop() {
        match shape {
            Type::List(inner) | Type::Map(inner) | Type::Nullable(inner) => left.push(*inner),
            Type::Tuple(parts) => left.extend(parts),
            Type::Record(name) if !found.contains(&name) => {
                let record = records.iter().find(|record| record.name == name);
                let fields = record.into_iter().flat_map(|record| &record.fields);
                left.extend(fields.map(|field| field.shape.clone()));
                found.push(name);
            }
            _ => {}
        }
    }
    found
}

/// Adds the keys of an object. Of alternatives every key may be absent.
fn add_fields(
    schema: &Value,
    optional: bool,
    definitions: &Map<String, Value>,
    fields: &mut Vec<FieldShape>,
) {
    let required = |name: &str| {
        let names = schema["required"].as_array();
        names.is_some_and(|names| names.iter().any(|known| known == name))
    };
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let absent = optional || !required(name);
        match fields.iter_mut().find(|field| field.name == *name) {
            Some(known) => known.absent &= absent,
            None => fields.push(FieldShape {
                name: name.clone(),
                doc: description(property),
                shape: shape(property),
                absent,
            }),
        }
    }
    for (key, optional) in [("allOf", optional), ("anyOf", true)] {
        for part in schema[key].as_array().into_iter().flatten() {
            let part = referred(part).and_then(|name| definitions.get(name)).unwrap_or(part);
            add_fields(part, optional, definitions, fields);
        }
    }
}

fn description(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix(REFERENCE)
}

/// The type that a schema describes.
fn shape(schema: &Value) -> Type {
    if let Some(name) = referred(schema) {
        return Type::Record(name.to_owned());
    }
    if let Some([some, none]) = schema["anyOf"].as_array().map(Vec::as_slice)
        && none["type"] == "null"
    {
        return Type::Nullable(Box::new(shape(some)));
    }
    match &schema["type"] {
        Value::String(name) => plain(name, schema),
        Value::Array(names) => match names.as_slice() {
            [Value::String(name), none] if none == "null" => {
                Type::Nullable(Box::new(plain(name, schema)))
            }
            _ => Type::Any,
        },
        _ => Type::Any,
    }
}

fn plain(name: &str, schema: &Value) -> Type {
    let length = schema["minItems"].as_u64().filter(|_| schema["minItems"] == schema["maxItems"]);
    match name {
        "string" => Type::Text,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        "array" => match (schema["prefixItems"].as_array(), length) {
            (Some(parts), _) => Type::Tuple(parts.iter().map(shape).collect()),
            (None, Some(length)) => Type::Tuple(vec![shape(&schema["items"]); length as usize]),
            (None, None) => Type::List(Box::new(shape(&schema["items"]))),
        },
        "object" if schema["additionalProperties"].is_object() => {
            Type::Map(Box::new(shape(&schema["additionalProperties"])))
        }
        _ => Type::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field<'a>(records: &'a [RecordShape], record: &str, name: &str) -> &'a FieldShape {
        let record = records.iter().find(|found| found.name == record).unwrap();
        record.fields.iter().find(|field| field.name == name).unwrap()
    }

    #[test]
    fn parts_of_a_record_are_its_fields() {
        let records = records();
        let hits = field(&records, "CaseTotal", "hits");
        assert_eq!((&hits.shape, hits.absent), (&Type::Integer, false));
        let p99 = field(&records, "CaseTotal", "p99_response_ns");
        assert_eq!((&p99.shape, p99.absent), (&Type::Integer, true));
        assert!(field(&records, "TenantTiming", "slowdown").absent);
        assert!(!field(&records, "TenantTiming", "p99_ns").absent);
        assert!(records.iter().all(|record| record.name != "CacheCounts"));
    }

    #[test]
    fn null_and_absent_are_told_apart() {
        let records = records();
        let rated = field(&records, "Wear", "rated");
        let shape = Type::Nullable(Box::new(Type::Record("RatedLife".to_owned())));
        assert_eq!((&rated.shape, rated.absent), (&shape, false));
        let timing = field(&records, "Case", "timing");
        assert!(timing.absent, "{timing:?}");
    }

    /// Only the stack file itself is opaque, and the options of `wa` that a study passes on.
    #[test]
    fn no_other_field_is_of_any_type() {
        for record in records() {
            for field in &record.fields {
                let opaque = format!("{:?}", field.shape).contains("Any");
                let name = format!("{}.{}", record.name, field.name);
                let known = field.name == "spec" || name == "StudyPlan.drive";
                assert!(!opaque || known, "{name}");
            }
        }
    }
}
