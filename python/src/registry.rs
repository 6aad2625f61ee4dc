//! The registries as JSON: policies, partitions, layouts, characterizers, separations, reclaims,
//! devices, formats; and the readers of quantities.
//!
//! For: `list` commands, and checks that need no run. Must never know: any name.

use crate::errors::{SpecError, of_experiment};
use cachewright_experiment::{json, setting};
use cachewright_result::registry::{FormatEntry, SchemeEntry, SettingEntry};
use cachewright_trace::formats::CommonOptions;
use cachewright_trace::write::WRITE_FORMATS;
use cachewright_types::Key;
use cachewright_types::declare::Declared;
use cachewright_types::registry::Entry;
use pyo3::prelude::*;
use serde::Serialize;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(policies, module)?)?;
    module.add_function(wrap_pyfunction!(partitions, module)?)?;
    module.add_function(wrap_pyfunction!(layouts, module)?)?;
    module.add_function(wrap_pyfunction!(characterizers, module)?)?;
    module.add_function(wrap_pyfunction!(separations, module)?)?;
    module.add_function(wrap_pyfunction!(reclaims, module)?)?;
    module.add_function(wrap_pyfunction!(devices, module)?)?;
    module.add_function(wrap_pyfunction!(formats, module)?)?;
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

/// The replacement policies.
#[pyfunction]
fn policies() -> PyResult<String> {
    schemes!(cachewright_policy::registry, cachewright_policy::Need::word)
}

/// The partitioners.
#[pyfunction]
fn partitions() -> PyResult<String> {
    schemes!(cachewright_partition::registry, cachewright_partition::Need::word)
}

/// The layouts of tenants on a drive's channels.
#[pyfunction]
fn layouts() -> PyResult<String> {
    schemes!(cachewright_layout::registry, cachewright_layout::Need::word)
}

/// The characterizers of workloads.
#[pyfunction]
fn characterizers() -> PyResult<String> {
    schemes!(cachewright_characterize::registry, cachewright_characterize::Need::word)
}

/// The separations of flash pages by lifetime.
#[pyfunction]
fn separations() -> PyResult<String> {
    schemes!(cachewright_ftl::separation, of_flash)
}

/// The policies that pick the superblock to clean.
#[pyfunction]
fn reclaims() -> PyResult<String> {
    schemes!(cachewright_ftl::reclaim, of_flash)
}

/// The device models and the settings of a machine.
#[pyfunction]
fn devices() -> PyResult<String> {
    text(&cachewright_experiment::devices())
}

/// The trace formats; `writes` says whether files of a format can be written too, `suffixes` how
/// their names end.
#[pyfunction]
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
