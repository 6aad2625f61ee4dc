//! Caching models for Python: what they learn from, and what they say of requests.
//!
//! For: trainers that learn from and judge with the very code that will run. Must never know: how
//! anyone trains. Rows are float32 [request, feature]; labels uint8 [request, 2]: whether it is
//! cached, and 0 soon, 1 mean, 2 late.

use crate::errors::{SpecError, of_experiment};
use crate::options::declared;
use crate::work;
use cachewright_experiment::LabelOptions;
use cachewright_experiment::oracle::Split;
use cachewright_policy::rc_rnn::features::{CachingLabel, StayClass};
use cachewright_policy::rc_rnn::labels::CachingNetwork;
use cachewright_policy::rc_rnn::{RcRnnSettings, labels, replayed};
use numpy::{
    IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(caching_lessons, module)?)?;
    module.add_function(wrap_pyfunction!(caching_hits, module)?)?;
    module.add_function(wrap_pyfunction!(caching_table, module)?)?;
    module.add_function(wrap_pyfunction!(caching_labels, module)?)
}

/// Where the part that trains ends: a share of the requests, or a time; neither is nowhere.
fn split(share: Option<f64>, until_ns: Option<u64>) -> Split {
    match (share, until_ns) {
        (_, Some(until_ns)) => Split::Time(until_ns),
        (Some(share), None) => Split::Share(share),
        (None, None) => Split::None,
    }
}

/// The features and the oracle's labels of every request of a stack's only tenant. Labels of the
/// first `share`, or of what arrives before `until_ns`, see nothing beyond it.
#[pyfunction]
#[pyo3(signature = (
    stack, origin, settings, options, *, features, share, until_ns, threads, progress
))]
fn caching_lessons<'py>(
    py: Python<'py>,
    stack: &str,
    origin: PathBuf,
    settings: Vec<(String, String)>,
    options: &Bound<'py, PyDict>,
    features: &str,
    share: Option<f64>,
    until_ns: Option<u64>,
    threads: usize,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (oracle, split) = (declared(options)?, split(share, until_ns));
    let options = LabelOptions { oracle, set: settings, threads, split };
    let done = work::run(py, progress, |note| {
        cachewright_experiment::oracle::training_set(stack, &origin, &options, features, note)
    })?;
    let found = done.map_err(of_experiment)?;
    let (names, labels) = (found.set.features(), found.labels);
    let dict = PyDict::new(py);
    dict.set_item("capacity_blocks", labels.capacity_blocks)?;
    dict.set_item("split", labels.split)?;
    dict.set_item("filled", labels.filled)?;
    dict.set_item("oracle", labels.later)?;
    dict.set_item("blocks", found.blocks.into_pyarray(py))?;
    dict.set_item("flags", found.flags.into_pyarray(py))?;
    dict.set_item("names", names.to_vec())?;
    let rows = found.rows.into_pyarray(py).reshape([labels.cached.len(), names.len()])?;
    dict.set_item("rows", rows)?;
    let bytes = |values: Vec<u8>| values.into_pyarray(py);
    dict.set_item("cached", bytes(labels.cached.iter().map(|cached| u8::from(*cached)).collect()))?;
    let durations = labels.duration.iter().map(|duration| *duration as u8);
    dict.set_item("duration", bytes(durations.collect()))?;
    dict.set_item("time_ns", labels.requests.time_ns.into_pyarray(py))?;
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
    let mut network = CachingNetwork::load(content).map_err(SpecError::new_err)?;
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
    let flat = |label: &CachingLabel| [u8::from(label.cached), label.duration as u8];
    let flat: Vec<u8> = labels.iter().flat_map(flat).collect();
    flat.into_pyarray(py).reshape([count, 2])
}

/// Accesses, hits and admissions of the requests from `first` up to `last`, when all requests go
/// through the queues labelled so; `blocks` and `flags` are those of the lessons.
#[pyfunction]
#[pyo3(signature = (
    blocks, flags, labels, *, capacity_blocks, requeue_hits, uncached_soon, first, last
))]
fn caching_hits(
    py: Python<'_>,
    blocks: PyReadonlyArray1<'_, u32>,
    flags: PyReadonlyArray1<'_, u8>,
    labels: PyReadonlyArray2<'_, u8>,
    capacity_blocks: u32,
    requeue_hits: bool,
    uncached_soon: bool,
    first: usize,
    last: usize,
) -> PyResult<(u64, u64, u64)> {
    let labels = read(&labels)?;
    let (blocks, flags) = (blocks.as_slice()?, flags.as_slice()?);
    let settings = RcRnnSettings { requeue_hits, uncached_soon, ..RcRnnSettings::default() };
    let counted = first..last;
    let replayed = || replayed::replay(blocks, flags, &labels, capacity_blocks, &settings, counted);
    let tally = py.detach(replayed).map_err(SpecError::new_err)?;
    Ok((tally.accesses, tally.hits, tally.admissions))
}

/// The file that goes in place of a model and gives each request its label.
#[pyfunction]
fn caching_table<'py>(
    py: Python<'py>,
    labels: PyReadonlyArray2<'py, u8>,
) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &labels::file(read(&labels)?)))
}

/// Labels out of an array [request, 2].
fn read(labels: &PyReadonlyArray2<'_, u8>) -> PyResult<Vec<CachingLabel>> {
    let wrong = |found: String| {
        SpecError::new_err(format!("labels: found {found}, expected rows of two, without gaps"))
    };
    if labels.shape()[1] != 2 {
        return Err(wrong(format!("rows of {}", labels.shape()[1])));
    }
    let flat = labels.as_slice().map_err(|_| wrong("an array with gaps".to_owned()))?;
    let label = |pair: &[u8]| CachingLabel {
        cached: pair[0] > 0,
        duration: StayClass::ALL[usize::from(pair[1]).min(StayClass::ALL.len() - 1)],
    };
    Ok(flat.chunks_exact(2).map(label).collect())
}
