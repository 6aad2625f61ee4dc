//! Options of commands: declared once in Rust, given by Python as one mapping.
//!
//! For: turning a mapping into declared options, and telling what is declared. Must never know: any
//! option. `None` stands for an option that was not given.

use crate::errors::{SpecError, of_experiment};
use cachewright_experiment::{COMMANDS, DeclaredCommand, ExperimentError, json, setting};
use cachewright_result::registry::SettingEntry;
use cachewright_stack::tables_of_file;
use cachewright_types::declare::{Declared, Key, Value};
use cachewright_types::nearest;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString, PyTuple};
use std::collections::BTreeMap;
use std::path::PathBuf;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(options, module)?)?;
    module.add_function(wrap_pyfunction!(stack_keys, module)?)
}

/// The declared options of a command, as a JSON list. Errors: a command without such.
#[pyfunction]
fn options(command: &str) -> PyResult<String> {
    let Some(DeclaredCommand { keys, .. }) = COMMANDS.iter().find(|one| one.name == command) else {
        let names = COMMANDS.map(|one| one.name);
        let near = nearest(command, names).map(|near| format!("; nearest is `{near}`"));
        let (shown, near) = (Value::read(command).shown(), near.unwrap_or_default());
        let message = format!("found `{shown}`, expected one of {}{near}", names.join(", "));
        return Err(SpecError::new_err(format!("`command`: {message}")));
    };
    let entries: Vec<SettingEntry> = keys().iter().map(|key| setting(key, None)).collect();
    json::text(&entries).map_err(of_experiment)
}

/// The keys of a stack file by table, as a JSON object of lists; the top's table has no name.
#[pyfunction]
fn stack_keys() -> PyResult<String> {
    let of = |(table, keys): (&'static str, Vec<Key>)| {
        (table, keys.iter().map(|key| setting(key, None)).collect())
    };
    let tables: BTreeMap<&str, Vec<SettingEntry>> = tables_of_file().into_iter().map(of).collect();
    json::text(&tables).map_err(of_experiment)
}

/// Options from a mapping. Errors: as `declare!` has them.
pub fn declared<T: Declared>(given: &Bound<'_, PyDict>) -> PyResult<T> {
    let mut pairs = Vec::new();
    for (key, found) in given {
        if !found.is_none() {
            let key: String = key.extract()?;
            let value = value(&found).map_err(|what| {
                SpecError::new_err(format!("`{key}`: found {what}, expected a plain value"))
            })?;
            pairs.push((key, value));
        }
    }
    T::from_pairs(&pairs).map_err(|error| of_experiment(ExperimentError::from(error)))
}

/// What Python gives as a value; numbers, texts, paths, and lists of them. Errors: what it is
/// instead.
fn value(found: &Bound<'_, PyAny>) -> Result<Value, String> {
    if let Ok(flag) = found.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if let Ok(number) = found.cast::<PyFloat>() {
        return Ok(Value::Float(number.value()));
    }
    if found.is_instance_of::<PyList>() || found.is_instance_of::<PyTuple>() {
        let items = found.try_iter().map_err(|error| error.to_string())?;
        let item =
            |item: PyResult<Bound<'_, PyAny>>| value(&item.map_err(|error| error.to_string())?);
        return items.map(item).collect::<Result<_, _>>().map(Value::List);
    }
    if found.is_instance_of::<PyString>() {
        let text = found.extract::<String>();
        return text.map(Value::Text).map_err(|_| "text that is not UTF-8".to_owned());
    }
    // Whole numbers of any kind, then such that are too large, then paths.
    let number = found.extract::<i64>().map(Value::Int);
    let number = number.or_else(|_| found.extract::<f64>().map(Value::Float));
    let path = |_| {
        let path = found.extract::<PathBuf>().ok()?;
        path.into_os_string().into_string().ok().map(Value::Text)
    };
    number.map_or_else(path, Some).ok_or_else(|| {
        let kind = found.get_type().name().map(|name| name.to_string());
        format!("`{}`", kind.unwrap_or_default())
    })
}
