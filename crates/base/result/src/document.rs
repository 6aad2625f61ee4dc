//! What all documents share: the versions that they begin with, and tables that keep their order.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Version of the keys of all documents and of what they mean. It rises when a key goes or changes
/// its meaning; a new key alone keeps it.
pub const SCHEMA_VERSION: u32 = 1;

/// The first keys of every document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    /// Version of Cachewright that wrote the document.
    pub cachewright: String,
    /// Version of the keys of all documents; a reader of another version refuses the document.
    #[schemars(extend("const" = SCHEMA_VERSION))]
    pub schema_version: u32,
}

impl Written {
    /// Written by this program.
    pub fn here() -> Written {
        let cachewright = env!("CARGO_PKG_VERSION").to_owned();
        Written { cachewright, schema_version: SCHEMA_VERSION }
    }
}

/// Names and values, written as one JSON object in this order. Each name stands once.
#[derive(Clone, Debug, PartialEq)]
pub struct Entries<T>(Vec<(String, T)>);

impl<T> Entries<T> {
    /// Sets the value of a name. A name that is already there keeps its place.
    pub fn insert(&mut self, name: impl Into<String>, value: T) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Entries(Vec::new())
    }
}

impl<T, N: Into<String>> FromIterator<(N, T)> for Entries<T> {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(pairs: I) -> Self {
        let mut entries = Entries::default();
        pairs.into_iter().for_each(|(name, value)| entries.insert(name, value));
        entries
    }
}

impl<T: Serialize> Serialize for Entries<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
    type Value = Entries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<T>, A::Error> {
        let mut entries = Entries::default();
        while let Some((name, value)) = map.next_entry::<String, T>()? {
            entries.insert(name, value);
        }
        Ok(entries)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Entries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Entries_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "additionalProperties": generator.subschema_for::<T>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_order_and_stand_once() {
        let mut entries: Entries<u32> = [("b", 1), ("a", 2)].into_iter().collect();
        entries.insert("b", 3);
        let text = serde_json::to_string(&entries).unwrap();
        assert_eq!(text, r#"{"b":3,"a":2}"#);
        assert_eq!(serde_json::from_str::<Entries<u32>>(&text).unwrap(), entries);
        assert_eq!((entries.get("a"), entries.get("c")), (Some(&2), None));
    }
}
