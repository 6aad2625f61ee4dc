//! The registries as JSON: policies, partitions, layouts, characterizers, separations, reclaims,
//! devices, formats; and the readers of quantities.
//!
//! For: `list` commands, and checks that need no run. Must never know: any name. Each entry is
//! `{name, doc, source, needs, settings: [{name, doc, unit, default, low, high}]}`.

use crate::errors::SpecError;
use cachewright_types::Key;
use pyo3::prelude::*;
use serde_json::{Value, json};

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

/// The replacement policies.
#[pyfunction]
fn policies() -> String {
    use cachewright_policy::registry::{entries, keys};
    let list = entries().into_iter().map(|entry| {
        let needs: Vec<&str> = entry.needs.iter().map(|need| need.word()).collect();
        let specs = keys(entry.name).unwrap_or_default();
        json!({"name": entry.name, "doc": entry.doc, "source": entry.source, "needs": needs,
               "settings": settings(&specs)})
    });
    Value::from_iter(list).to_string()
}

/// The partitioners.
#[pyfunction]
fn partitions() -> String {
    use cachewright_partition::registry::{entries, keys};
    let list = entries().into_iter().map(|entry| {
        let needs: Vec<&str> = entry.needs.iter().map(|need| need.word()).collect();
        let specs = keys(entry.name).unwrap_or_default();
        json!({"name": entry.name, "doc": entry.doc, "source": entry.source, "needs": needs,
               "settings": settings(&specs)})
    });
    Value::from_iter(list).to_string()
}

/// The layouts of tenants on a drive's channels.
#[pyfunction]
fn layouts() -> String {
    use cachewright_layout::registry::{entries, keys};
    let list = entries().into_iter().map(|entry| {
        let needs: Vec<&str> = entry.needs.iter().map(|need| need.word()).collect();
        let specs = keys(entry.name).unwrap_or_default();
        json!({"name": entry.name, "doc": entry.doc, "source": entry.source, "needs": needs,
               "settings": settings(&specs)})
    });
    Value::from_iter(list).to_string()
}

/// The characterizers of workloads.
#[pyfunction]
fn characterizers() -> String {
    use cachewright_characterize::registry::{entries, keys};
    let list = entries().into_iter().map(|entry| {
        let needs: Vec<&str> = entry.needs.iter().map(|need| need.word()).collect();
        let specs = keys(entry.name).unwrap_or_default();
        json!({"name": entry.name, "doc": entry.doc, "source": entry.source, "needs": needs,
               "settings": settings(&specs)})
    });
    Value::from_iter(list).to_string()
}

/// The separations of flash pages by lifetime.
#[pyfunction]
fn separations() -> String {
    use cachewright_ftl::separation::{entries, keys};
    let list = entries().into_iter();
    Value::from_iter(list.map(|entry| flash(entry, keys(entry.name)))).to_string()
}

/// The policies that pick the superblock to clean.
#[pyfunction]
fn reclaims() -> String {
    use cachewright_ftl::reclaim::{entries, keys};
    let list = entries().into_iter();
    Value::from_iter(list.map(|entry| flash(entry, keys(entry.name)))).to_string()
}

fn flash(entry: &cachewright_ftl::Entry, specs: Option<Vec<Key>>) -> Value {
    use cachewright_ftl::Need;
    let word = |need: &Need| match need {
        Need::Future => "future",
        Need::Model => "model",
    };
    let needs: Vec<&str> = entry.needs.iter().map(word).collect();
    json!({"name": entry.name, "doc": entry.doc, "source": entry.source, "needs": needs,
           "settings": settings(&specs.unwrap_or_default())})
}

/// The device models and the settings of a machine.
#[pyfunction]
fn devices() -> String {
    cachewright_experiment::devices().to_string()
}

/// The trace formats; `writes` says whether files of a format can be written too, `suffixes` how
/// their names end.
#[pyfunction]
fn formats() -> String {
    use cachewright_trace::formats::{COMMON_OPTIONS, OptionSpec};
    use cachewright_trace::write::WRITE_FORMATS;
    let options = |specs: &[OptionSpec]| {
        Value::from_iter(
            specs
                .iter()
                .map(|spec| json!({"name": spec.key, "doc": spec.doc, "default": spec.default})),
        )
    };
    let list = cachewright_trace::FORMATS.iter().map(|entry| {
        let writer = WRITE_FORMATS.iter().find(|writer| writer.name == entry.name);
        json!({"name": entry.name, "doc": entry.doc, "source": entry.source, "needs": [],
               "settings": options(&[entry.options, COMMON_OPTIONS].concat()),
               "writes": writer.is_some(),
               "suffixes": writer.map_or(&[][..], |writer| writer.suffixes),
               "write_settings": options(writer.map_or(&[], |writer| writer.options))})
    });
    Value::from_iter(list).to_string()
}

fn settings(specs: &[Key]) -> Value {
    Value::from_iter(specs.iter().map(|spec| {
        let (low, high) = spec.range.unwrap_or((0.0, 1.0));
        json!({"name": spec.name, "doc": spec.doc, "unit": spec.unit,
               "default": spec.default_number(), "low": low, "high": high})
    }))
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
