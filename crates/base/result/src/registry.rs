//! The answers of `list`: what can stand in a stack file.

use crate::Entries;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A policy, partitioner, layout, characterizer, separation or reclaim policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SchemeEntry {
    /// Its name in a stack file.
    pub name: String,
    /// What it does, in one sentence.
    pub doc: String,
    /// Where it comes from.
    pub source: String,
    /// What it requires beside the requests.
    pub needs: Vec<String>,
    /// Its settings.
    pub settings: Vec<SettingEntry>,
}

/// A setting of a scheme, device or machine, or an option of a trace format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingEntry {
    /// Its key, in a stack file or among the options of a format.
    pub name: String,
    /// What it means, in one sentence.
    pub doc: String,
    /// Unit of the value; `bytes` and `time` are written with their own.
    pub unit: String,
    /// Value where the key is absent, as text of a stack file; empty where there is none.
    pub default: String,
    /// What is accepted, in words.
    pub accepted: String,
    /// Where the default or the meaning comes from.
    pub source: String,
}

/// A scheme of a paper, or one of ours, and how a stack file asks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedSchemeEntry {
    /// The name that people use.
    pub name: String,
    /// What it does, in one sentence.
    pub doc: String,
    /// The paper that describes it, or `ours`.
    pub source: String,
    /// Keys of a stack file and the value of each, as after `--set`.
    pub keys: Entries<String>,
    /// The stack file that runs it; empty where there is none.
    pub spec: String,
}

/// A trace format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FormatEntry {
    /// Its name.
    pub name: String,
    /// Its records and their units, in one sentence.
    pub doc: String,
    /// Where it comes from.
    pub source: String,
    /// Always empty: a format requires nothing.
    pub needs: Vec<String>,
    /// Options of reading.
    pub settings: Vec<SettingEntry>,
    /// Whether files of the format can be written too.
    pub writes: bool,
    /// How the names of written files end.
    pub suffixes: Vec<String>,
    /// Options of writing.
    pub write_settings: Vec<SettingEntry>,
}
