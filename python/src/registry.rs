//! What can stand in a stack file, by stage, as JSON; and the readers of quantities.
//!
//! For: `list` commands, and checks that need no run. Must never know: any name.

use crate::errors::{SpecError, of_experiment};
use cachewright_experiment::{json, setting, spec};
use cachewright_result::registry::{FormatEntry, NamedSchemeEntry, SchemeEntry, SettingEntry};
use cachewright_stack::cache::{AUTO, StackFacts, auto_partition, auto_policy};
use cachewright_stack::{NamedScheme, SCHEMES};
use cachewright_trace::formats::CommonOptions;
use cachewright_trace::write::WRITE_FORMATS;
use cachewright_types::declare::{Declared, Scheme, Value, ValueKind};
use cachewright_types::registry::Entry;
use cachewright_types::{Key, nearest};
use pyo3::prelude::*;
use serde::Serialize;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(entries, module)?)?;
    module.add_function(wrap_pyfunction!(stages, module)?)?;
    module.add_function(wrap_pyfunction!(auto_schemes, module)?)?;
    module.add_function(wrap_pyfunction!(parse_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(parse_duration, module)?)
}

/// All schemes of one registry, as text; `$word` names a need.
macro_rules! schemes {
    ($($registry:tt)::+, $word:expr) => {{
        use $($registry)::+ as registry;
        let one = |entry| scheme(entry, $word, registry::keys(entry.name));
        text(&registry::entries().into_iter().map(one).collect::<Vec<_>>())
    }};
}

/// A stage: its name, what it lists, and its entries as text.
type Stage = (&'static str, &'static str, fn() -> PyResult<String>);

const STAGES: [Stage; 9] = [
    ("policies", "the replacement policies", || {
        schemes!(cachewright_policy::registry, cachewright_policy::Need::as_str)
    }),
    ("partitions", "the ways to split a cache between tenants", || {
        schemes!(cachewright_partition::registry, cachewright_partition::Need::word)
    }),
    ("layouts", "which channels of a drive hold which tenant's blocks", || {
        schemes!(cachewright_partition::layout, cachewright_partition::layout::Need::word)
    }),
    ("characterizers", "the ways to classify workloads", || {
        schemes!(cachewright_policy::characterize, cachewright_policy::characterize::Need::word)
    }),
    ("separations", "the ways to choose which flash pages share a superblock", || {
        schemes!(cachewright_ftl::separation, of_flash)
    }),
    ("reclaims", "the ways to pick the superblock to clean", || {
        schemes!(cachewright_ftl::reclaim, of_flash)
    }),
    ("devices", "the device models and the settings of a machine", || {
        text(&cachewright_experiment::devices())
    }),
    ("formats", "the trace formats", formats),
    ("schemes", "the schemes of the papers and ours, with the keys that select them", named),
];

/// What can stand in a stack file, or names a part of it, as a JSON list. Errors: a stage that is
/// not known.
#[pyfunction]
fn entries(stage: &str) -> PyResult<String> {
    if let Some((_, _, list)) = STAGES.iter().find(|(name, ..)| *name == stage) {
        return list();
    }
    let names = STAGES.map(|(name, ..)| name);
    let near = nearest(stage, names).map(|near| format!("; nearest is `{near}`"));
    let (shown, near) = (Value::read(stage).shown(), near.unwrap_or_default());
    let known = names.join(", ");
    Err(SpecError::new_err(format!("`stage`: found `{shown}`, expected one of {known}{near}")))
}

/// The stages of `entries`, each with what it lists.
#[pyfunction]
fn stages() -> Vec<(&'static str, &'static str)> {
    STAGES.map(|(name, what, _)| (name, what)).to_vec()
}

/// What `auto` stands for as the policy and as the partition of a stack, each a JSON value of a
/// stack file: a name, or a table with `name` and settings. `responses` says whether requests have
/// response times: on simulated devices, or on a live server.
#[pyfunction]
fn auto_schemes(tenants: usize, goals: bool, responses: bool) -> PyResult<(String, String)> {
    let facts = StackFacts { tenants, goals, responses };
    let named = Scheme::named(AUTO);
    let chosen = |scheme: Result<Scheme, String>| {
        let scheme = scheme.map_err(SpecError::new_err)?;
        text(&scheme.value().as_ref().map(spec::json))
    };
    Ok((chosen(auto_policy(&named, facts))?, chosen(auto_partition(&named, facts))?))
}

fn text(list: &impl Serialize) -> PyResult<String> {
    json::text(list).map_err(of_experiment)
}

fn scheme<N: Copy>(
    entry: &Entry<N>,
    word: fn(N) -> &'static str,
    keys: Option<Vec<Key>>,
) -> SchemeEntry {
    SchemeEntry {
        name: entry.name.to_owned(),
        doc: entry.doc.to_owned(),
        source: entry.source.to_owned(),
        needs: entry.needs.iter().map(|need| word(*need).to_owned()).collect(),
        settings: settings(&keys.unwrap_or_default()),
    }
}

fn of_flash(need: cachewright_ftl::Need) -> &'static str {
    match need {
        cachewright_ftl::Need::Future => "future",
        cachewright_ftl::Need::Model => "model",
    }
}

/// The schemes that papers describe, and ours.
fn named() -> PyResult<String> {
    let one = |scheme: NamedScheme| NamedSchemeEntry {
        name: scheme.name.to_owned(),
        doc: scheme.doc.to_owned(),
        source: scheme.source.to_owned(),
        keys: scheme.keys.iter().map(|(key, value)| (*key, (*value).to_owned())).collect(),
        spec: scheme.spec.to_owned(),
    };
    text(&SCHEMES.map(one))
}

/// The trace formats; `writes` says whether files of a format can be written too, `suffixes` how
/// their names end.
fn formats() -> PyResult<String> {
    let list = cachewright_trace::FORMATS.iter().map(|entry| {
        let writer = WRITE_FORMATS.iter().find(|writer| writer.name == entry.name);
        let suffixes = writer.map_or(&[][..], |writer| writer.suffixes);
        FormatEntry {
            name: entry.name.to_owned(),
            doc: entry.doc.to_owned(),
            source: entry.source.to_owned(),
            needs: Vec::new(),
            settings: settings(&[(entry.options)(), CommonOptions::keys()].concat()),
            writes: writer.is_some(),
            suffixes: suffixes.iter().map(ToString::to_string).collect(),
            write_settings: writer.map_or_else(Vec::new, |writer| settings(&(writer.options)())),
        }
    });
    text(&list.collect::<Vec<_>>())
}

fn settings(keys: &[Key]) -> Vec<SettingEntry> {
    keys.iter().map(|key| setting(key, None)).collect()
}

/// Bytes of a size with a unit, such as `4KiB`.
#[pyfunction]
fn parse_bytes(text: &str) -> PyResult<u64> {
    let bytes = cachewright_types::parse_bytes(text);
    bytes.map(|bytes| bytes.0).map_err(|error| SpecError::new_err(error.to_string()))
}

/// Nanoseconds of a duration with a unit, such as `250us`.
#[pyfunction]
fn parse_duration(text: &str) -> PyResult<u64> {
    let time = cachewright_types::parse_duration(text);
    time.map(|time| time.0).map_err(|error| SpecError::new_err(error.to_string()))
}
