//! What an oracle does with each request, as numpy arrays.
//!
//! For: training data of models of admission. Must never know: how anything is decided or learned.
//! Columns have one row per read or write, in order of time.

use crate::caching::split;
use crate::errors::{SpecError, of_experiment};
use crate::work;
use cachewright_experiment::oracle::Reading;
use cachewright_experiment::{LabelOptions, Labels};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(oracle_labels, module)?)
}

/// Every request of a stack's only tenant with the labels of an oracle.
#[pyfunction]
#[pyo3(signature = (
    stack, origin, settings, *, policy, threads, progress, labels="remaining", until_ns=None
))]
#[allow(clippy::too_many_arguments)]
fn oracle_labels<'py>(
    py: Python<'py>,
    stack: &str,
    origin: PathBuf,
    settings: Vec<(String, String)>,
    policy: String,
    threads: usize,
    progress: Option<&Bound<'py, PyAny>>,
    labels: &str,
    until_ns: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let reading = Reading::named(labels).map_err(SpecError::new_err)?;
    let split = split(None, until_ns);
    let options = LabelOptions { policy, set: settings, threads, reading, split };
    let done = work::run(py, progress, |note| {
        cachewright_experiment::labels(stack, &origin, &options, note)
    })?;
    dict(py, done.map_err(of_experiment)?)
}

fn dict(py: Python<'_>, labels: Labels) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let cached = labels.cached.iter().filter(|cached| **cached).count();
    dict.set_item("policy", &labels.policy)?;
    dict.set_item("capacity_blocks", labels.capacity_blocks)?;
    dict.set_item("block_bytes", labels.block_bytes)?;
    dict.set_item("accesses", labels.counts.accesses())?;
    dict.set_item("hits", labels.counts.hits())?;
    dict.set_item("cached_count", cached)?;
    dict.set_item("duration_counts", labels.durations().to_vec())?;
    let bytes = |values: Vec<u8>| values.into_pyarray(py);
    dict.set_item("op", bytes(labels.op.iter().map(|op| *op as u8).collect()))?;
    dict.set_item("cached", bytes(labels.cached.iter().map(|cached| u8::from(*cached)).collect()))?;
    let durations = labels.duration.iter().map(|duration| *duration as u8);
    dict.set_item("duration", bytes(durations.collect()))?;
    dict.set_item("time_ns", labels.time_ns.into_pyarray(py))?;
    dict.set_item("offset", labels.offset.into_pyarray(py))?;
    dict.set_item("length", labels.length.into_pyarray(py))?;
    Ok(dict)
}
