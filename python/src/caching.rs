//! Caching models for Python: what they learn from, and what they say of requests.
//!
//! For: trainers that learn from and judge with the very code that will run. Must never know: how
//! anyone trains. Rows are float32 [request, feature]; labels uint8 [request, 2]: whether it is
//! cached, and 0 soon, 1 mean, 2 late.

use crate::errors::{SpecError, of_experiment};
use crate::work;
use cachewright_experiment::LabelOptions;
use cachewright_policy::rc_rnn::features::Label;
use cachewright_policy::rc_rnn::model::Network;
use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(caching_lessons, module)?)?;
    module.add_function(wrap_pyfunction!(caching_labels, module)?)
}

/// The features and the oracle's labels of every request of a stack's only tenant.
#[pyfunction]
#[pyo3(signature = (stack, origin, settings, *, features, policy, threads, progress))]
#[allow(clippy::too_many_arguments)]
fn caching_lessons<'py>(
    py: Python<'py>,
    stack: &str,
    origin: PathBuf,
    settings: Vec<(String, String)>,
    features: &str,
    policy: String,
    threads: usize,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = LabelOptions { policy, set: settings, threads };
    let done = work::run(py, progress, |note| {
        cachewright_experiment::oracle::lessons(stack, &origin, &options, features, note)
    })?;
    let found = done.map_err(of_experiment)?;
    let (names, labels) = (found.set.features(), found.labels);
    let dict = PyDict::new(py);
    dict.set_item("capacity_blocks", labels.capacity_blocks)?;
    dict.set_item("names", names.to_vec())?;
    let rows = found.rows.into_pyarray(py).reshape([labels.cached.len(), names.len()])?;
    dict.set_item("rows", rows)?;
    let bytes = |values: Vec<u8>| values.into_pyarray(py);
    dict.set_item("cached", bytes(labels.cached.iter().map(|cached| u8::from(*cached)).collect()))?;
    let durations = labels.duration.iter().map(|duration| *duration as u8);
    dict.set_item("duration", bytes(durations.collect()))?;
    dict.set_item("time_ns", labels.time_ns.into_pyarray(py))?;
    Ok(dict)
}

/// What a model file says of rows of features, from a zero state; `own` feeds its own labels back
/// in place of those in the rows.
#[pyfunction]
fn caching_labels<'py>(
    py: Python<'py>,
    content: &[u8],
    rows: PyReadonlyArray2<'py, f32>,
    own: bool,
) -> PyResult<Bound<'py, PyArray2<u8>>> {
    let mut network = Network::load(content).map_err(SpecError::new_err)?;
    let (found, expected) = (rows.shape()[1], network.set().features().len());
    if found != expected {
        let message = format!("rows: found {found} features, expected {expected}");
        return Err(SpecError::new_err(message));
    }
    let count = rows.shape()[0];
    let rows = rows.as_slice().map_err(|_| {
        SpecError::new_err("rows: found an array with gaps, expected a contiguous one")
    })?;
    let labels = py.detach(|| network.follow(rows, own));
    let flat = |label: &Label| [u8::from(label.cached), label.duration as u8];
    let flat: Vec<u8> = labels.iter().flat_map(flat).collect();
    flat.into_pyarray(py).reshape([count, 2])
}
