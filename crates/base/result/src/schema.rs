//! The JSON schemas of all documents. Descriptions are the comments of types and fields.

use crate::curves::CurvesAnswer;
use crate::fleet::{FleetPlanAnswer, StudyAnswer};
use crate::live::{ExplainAnswer, LoadAnswer};
use crate::live::{
    LiveCalibrateAnswer, LiveChangeAnswer, LiveCheckAnswer, LiveDumpAnswer, LiveFormatAnswer,
};
use crate::plan::AdviseAnswer;
use crate::plan::PlanAnswer;
use crate::registry::{FormatEntry, NamedSchemeEntry, SchemeEntry};
use crate::rehearsal::RehearsalAnswer;
use crate::run::RunAnswer;
use crate::status::LiveHistory;
use crate::status::LiveStatus;
use crate::trace::CharacterizeAnswer;
use crate::trace::TraceInfo;
use crate::training::{ModelDescription, TrainAnswer};
use crate::wa::AmplificationAnswer;
use crate::workload::WorkloadAnswer;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// Makes the schema of one document.
type Make = fn(&mut SchemaGenerator) -> Schema;

/// The name of each document and how its schema is made.
const DOCUMENTS: [(&str, Make); 27] = [
    ("run", schema_of::<RunAnswer>),
    ("mrc", schema_of::<CurvesAnswer>),
    ("wa", schema_of::<AmplificationAnswer>),
    ("plan", schema_of::<PlanAnswer>),
    ("plan --fleet", schema_of::<FleetPlanAnswer>),
    ("fleet study", schema_of::<StudyAnswer>),
    ("advise", schema_of::<AdviseAnswer>),
    ("explain", schema_of::<ExplainAnswer>),
    ("trace info", schema_of::<TraceInfo>),
    ("trace report", schema_of::<WorkloadAnswer>),
    ("characterize", schema_of::<CharacterizeAnswer>),
    ("train", schema_of::<TrainAnswer>),
    ("model", schema_of::<ModelDescription>),
    ("live format", schema_of::<LiveFormatAnswer>),
    ("live check", schema_of::<LiveCheckAnswer>),
    ("live dump", schema_of::<LiveDumpAnswer>),
    ("live writeback", schema_of::<LiveChangeAnswer>),
    ("live repair", schema_of::<LiveChangeAnswer>),
    ("live calibrate", schema_of::<LiveCalibrateAnswer>),
    ("live load", schema_of::<LoadAnswer>),
    ("rehearse", schema_of::<RehearsalAnswer>),
    ("live status", schema_of::<LiveStatus>),
    ("live history", schema_of::<LiveHistory>),
    ("list", schema_of::<Vec<SchemeEntry>>),
    ("list schemes", schema_of::<Vec<NamedSchemeEntry>>),
    ("list devices", schema_of::<Vec<SchemeEntry>>),
    ("list formats", schema_of::<Vec<FormatEntry>>),
];

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

/// Every document and its schema, complete in itself.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    let document = |(name, make): (&'static str, Make)| {
        let mut generator = generator();
        let mut schema = make(&mut generator);
        let definitions = generator.take_definitions(true);
        schema.insert("$defs".to_owned(), Value::Object(definitions));
        (name, schema)
    };
    DOCUMENTS.map(document).into()
}

/// Every document and the schema that refers to its type in [`definitions`].
pub fn documents() -> Vec<(&'static str, Schema)> {
    let mut generator = generator();
    DOCUMENTS.map(|(name, make)| (name, make(&mut generator))).into()
}

/// The schemas of all types, by name, in the order in which documents use them first.
pub fn definitions() -> Map<String, Value> {
    let mut generator = generator();
    DOCUMENTS.iter().for_each(|(_, make)| {
        make(&mut generator);
    });
    generator.take_definitions(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every object with properties inside a schema.
    fn objects<'a>(name: &str, schema: &'a Value, found: &mut Vec<(String, &'a Value)>) {
        if schema.get("properties").is_some() {
            found.push((name.to_owned(), schema));
        }
        match schema {
            Value::Object(map) => map.values().for_each(|inner| objects(name, inner, found)),
            Value::Array(list) => list.iter().for_each(|inner| objects(name, inner, found)),
            _ => {}
        }
    }

    #[test]
    fn every_type_and_field_has_a_description() {
        let definitions = definitions();
        assert!(definitions.len() > 50, "found {}", definitions.len());
        for (name, schema) in &definitions {
            assert!(schema["description"].is_string(), "{name} has no description");
            let mut found = Vec::new();
            objects(name, schema, &mut found);
            for (name, object) in found {
                for (field, schema) in object["properties"].as_object().unwrap() {
                    assert!(schema["description"].is_string(), "{name}.{field} has no description");
                }
            }
        }
    }

    /// A second type of the same name would get a number at its end.
    #[test]
    fn names_are_unique() {
        let definitions = definitions();
        let numbered = definitions.keys().filter(|name| name.ends_with(|c: char| c.is_numeric()));
        assert_eq!(numbered.collect::<Vec<_>>(), [""; 0]);
        let documents: BTreeSet<&str> = documents().iter().map(|(name, _)| *name).collect();
        assert_eq!(documents.len(), DOCUMENTS.len());
    }

    /// Lists have no keys, and a model file has a version of its own.
    #[test]
    fn every_document_begins_with_its_versions() {
        for (name, schema) in schemas() {
            let types = schema.get("$defs").unwrap();
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { continue };
            let document = &types[reference.trim_start_matches("#/$defs/")];
            let keys: Vec<&str> = document["properties"]
                .as_object()
                .unwrap()
                .keys()
                .map(|key| &**key)
                .take(2)
                .collect();
            if name != "model" {
                assert_eq!(keys, ["cachewright", "schema_version"], "{name}");
            }
        }
    }

    #[test]
    fn a_schema_is_complete_in_itself() {
        for (name, schema) in schemas() {
            let text = schema.as_value().to_string();
            let definitions = schema.get("$defs").and_then(Value::as_object).unwrap();
            for part in text.split("\"#/$defs/").skip(1) {
                let used = part.split('"').next().unwrap_or_default();
                assert!(definitions.contains_key(used), "{name} lacks {used}");
            }
        }
    }
}
