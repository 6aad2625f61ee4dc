//! Characterisation: what runs on a trace over time, and rows for those who train.
//!
//! For: passing options in, documents and numpy arrays out. Must never know: any characterizer.

use crate::errors::{SpecError, of_experiment};
use crate::trace::{TracePaths, open_options};
use crate::work;
use cachewright_experiment::{CharacterizeOptions, TraceChoice};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

type Options = BTreeMap<String, String>;
type WindowRows<'py> = Vec<(String, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray2<f32>>)>;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(characterize, module)?)?;
    module.add_function(wrap_pyfunction!(characterizer_rows, module)?)?;
    module.add_function(wrap_pyfunction!(characterizer_features, module)?)
}

/// What ran in each period of a trace.
#[pyfunction]
#[pyo3(signature = (path, format, on_bad_record, options, *, volume, every, model, progress))]
fn characterize(
    py: Python<'_>,
    path: TracePaths,
    format: Option<String>,
    on_bad_record: &str,
    options: Options,
    volume: Option<String>,
    every: String,
    model: Option<Vec<u8>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let (path, open) = path.open(open_options(format, on_bad_record, options)?)?;
    let choice = TraceChoice { open, volume };
    let options = CharacterizeOptions { choice, every, model };
    let path: &Path = &path;
    let done =
        work::run(py, progress, |note| cachewright_experiment::characterize(path, &options, note))?;
    done.map(|document| document.to_string()).map_err(of_experiment)
}

/// Per volume: its name, when each read and write came, and what a characterizer sees of it.
#[pyfunction]
#[pyo3(signature = (path, format, on_bad_record, options, *, volume, by, progress))]
fn characterizer_rows<'py>(
    py: Python<'py>,
    path: TracePaths,
    format: Option<String>,
    on_bad_record: &str,
    options: Options,
    volume: Option<String>,
    by: &str,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<WindowRows<'py>> {
    let (path, open) = path.open(open_options(format, on_bad_record, options)?)?;
    let choice = TraceChoice { open, volume };
    let path: &Path = &path;
    let done = work::run(py, progress, |note| {
        cachewright_experiment::characterize::rows(path, &choice, by, note)
    })?;
    let (volumes, width) = done.map_err(of_experiment)?;
    let arrays = volumes.into_iter().map(|volume| {
        let rows = volume.rows.into_pyarray(py).reshape([volume.time_ns.len(), width])?;
        Ok((volume.name, volume.time_ns.into_pyarray(py), rows))
    });
    arrays.collect()
}

/// Names of what a characterizer sees of each request.
#[pyfunction]
fn characterizer_features(by: &str) -> PyResult<Vec<&'static str>> {
    let found = cachewright_policy::characterize::features(by, &[]);
    let found = found.map_err(|error| SpecError::new_err(error.to_string()))?;
    Ok(found.names().to_vec())
}
