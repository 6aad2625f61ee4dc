//! Training data of models of demand: features by step, responses by cache size.
//!
//! For: handing each tenant's over as numpy arrays. Must never know: how anything is measured or
//! learned. Arrays by size begin with the cache off.

use crate::errors::of_experiment;
use crate::options::declared;
use crate::work;
use cachewright_experiment::{SegmentOptions, TenantSegments};
use cachewright_system::event_loop::StepSums;
use numpy::IntoPyArray;
use numpy::ndarray::Array2;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(segments, module)?)
}

/// Every tenant of a stack alone with each number of granules, by step.
#[pyfunction]
#[pyo3(signature = (stack, origin, settings, options, *, threads, progress))]
fn segments<'py>(
    py: Python<'py>,
    stack: &str,
    origin: PathBuf,
    settings: Vec<(String, String)>,
    options: &Bound<'py, PyDict>,
    threads: usize,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let step = declared(options)?;
    let options = SegmentOptions { step, set: settings, threads };
    let done = work::run(py, progress, |note| {
        cachewright_experiment::segments(stack, &origin, &options, note)
    })?;
    let found = done.map_err(of_experiment)?;
    let tenants: PyResult<Vec<_>> = found.tenants.iter().map(|one| tenant(py, one)).collect();
    let dict = PyDict::new(py);
    dict.set_item("interval_ns", found.interval_ns)?;
    dict.set_item("step_ns", found.step_ns)?;
    dict.set_item("capacity_blocks", found.capacity_blocks)?;
    dict.set_item("tenants", tenants?)?;
    Ok(dict)
}

fn tenant<'py>(py: Python<'py>, found: &TenantSegments) -> PyResult<Bound<'py, PyDict>> {
    let features = matrix(found.steps.iter().map(|step| step.features().to_vec()));
    let of = |values: fn(&StepSums) -> Vec<u32>| found.alone.iter().map(values);
    let first = |values: fn(&StepSums) -> Vec<u32>| of(values).next().unwrap_or_default();
    let responses = found
        .alone
        .iter()
        .map(|sums| sums.response_ns.iter().map(|sum| *sum as f64).collect::<Vec<f64>>());
    let dict = PyDict::new(py);
    dict.set_item("name", &found.name)?;
    dict.set_item("features", features.into_pyarray(py))?;
    dict.set_item("requests", first(|sums| sums.requests.clone()).into_pyarray(py))?;
    dict.set_item("response_ns", matrix(responses).into_pyarray(py))?;
    dict.set_item("hits", matrix(of(|sums| sums.hits.clone())).into_pyarray(py))?;
    dict.set_item("accesses", first(|sums| sums.accesses.clone()).into_pyarray(py))?;
    let reuse = matrix(found.reuse.iter().map(|bins| bins.to_vec()));
    dict.set_item("reuse", reuse.into_pyarray(py))?;
    Ok(dict)
}

/// Rows of one length as a matrix.
fn matrix<T: Clone + Default>(rows: impl ExactSizeIterator<Item = Vec<T>>) -> Array2<T> {
    let count = rows.len();
    let all: Vec<Vec<T>> = rows.collect();
    let width = all.first().map_or(0, Vec::len);
    Array2::from_shape_vec((count, width), all.concat()).unwrap_or_default()
}
