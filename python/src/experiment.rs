//! The experiment room: check, run, mrc, plan, wa, info.
//!
//! For: passing stack text and options in and documents out. Must never know: any key of a stack or
//! of a document.

use crate::errors::{of_experiment, of_live};
use crate::foreign::Loader;
use crate::options::declared;
use crate::training::{self, PythonFunction};
use crate::work;
use cachewright_daemon::check_start;
use cachewright_experiment::{
    ExperimentError, InfoOptions, MrcOptions, PlanOptions, RunOptions, WaOptions,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use std::path::{Path, PathBuf};

type Pairs = Vec<(String, String)>;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(choices, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(mrc, module)?)?;
    module.add_function(wrap_pyfunction!(plan, module)?)?;
    module.add_function(wrap_pyfunction!(wa, module)?)?;
    module.add_function(wrap_pyfunction!(info, module)?)
}

fn text(done: Result<Value, ExperimentError>) -> PyResult<String> {
    done.map(|document| document.to_string()).map_err(of_experiment)
}

/// The resolved settings of a stack that a run and a server take.
#[pyfunction]
fn check(py: Python<'_>, stack: &str, origin: PathBuf, settings: Pairs) -> PyResult<String> {
    let found = text(py.detach(|| cachewright_experiment::check(stack, &origin, &settings)))?;
    // Where the stack names devices, what a start of its server would refuse as well.
    py.detach(|| check_start(stack, &origin, &settings)).map_err(of_live)?;
    Ok(found)
}

/// The entries of a registry that `key` can take, and why those left out are refused.
#[pyfunction]
fn choices(
    py: Python<'_>,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    vary: Vec<(String, Vec<String>)>,
    key: &str,
) -> PyResult<Vec<(String, Option<String>)>> {
    let options = RunOptions { vary, set: settings, ..RunOptions::default() };
    let found = py.detach(|| cachewright_experiment::choices(stack, &origin, &options, key));
    let found = found.map_err(of_experiment)?;
    Ok(found.into_iter().map(|choice| (choice.name.to_owned(), choice.refused)).collect())
}

/// Runs every combination of `vary`; `load(name, origin)` finds policies written in Python.
#[pyfunction]
#[pyo3(signature = (stack, origin, settings, vary, *, threads, out, fresh, load, progress))]
fn run(
    py: Python<'_>,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    vary: Vec<(String, Vec<String>)>,
    threads: usize,
    out: Option<PathBuf>,
    fresh: bool,
    load: Option<Py<PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let loader = Loader::new(load);
    let foreign = loader.policies();
    let options = RunOptions { vary, set: settings, threads, out, fresh, foreign };
    let done = work::run(py, progress, |note| {
        cachewright_experiment::run(stack, &origin, &options, note)
    })?;
    done.map(|document| document.to_string()).map_err(|error| loader.error(py, error))
}

/// Miss-ratio curves of a stack's tenants; `options` are those that `options("mrc")` lists.
#[pyfunction]
#[pyo3(signature = (stack, origin, settings, options, *, threads, out=None, force=false, progress))]
fn mrc(
    py: Python<'_>,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    options: &Bound<'_, PyDict>,
    threads: usize,
    out: Option<PathBuf>,
    force: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let options = MrcOptions { curve: declared(options)?, set: settings, threads, out, force };
    text(work::run(py, progress, |note| {
        cachewright_experiment::mrc(stack, &origin, &options, note)
    })?)
}

/// The smallest cache that meets a stack's goals; `options` are those that `options("plan")` lists.
#[pyfunction]
#[pyo3(signature = (stack, origin, settings, options, *, threads, out=None, force=false, progress))]
fn plan(
    py: Python<'_>,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    options: &Bound<'_, PyDict>,
    threads: usize,
    out: Option<PathBuf>,
    force: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let options = PlanOptions { size: declared(options)?, set: settings, threads, out, force };
    text(work::run(py, progress, |note| {
        cachewright_experiment::plan(stack, &origin, &options, note)
    })?)
}

/// Write amplification of separations; `options` are those that `options("wa")` lists.
#[pyfunction]
#[pyo3(signature = (
    stack, origin, settings, options, *, trainer, threads, out=None, force=false, progress
))]
fn wa(
    py: Python<'_>,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    options: &Bound<'_, PyDict>,
    trainer: Option<PythonFunction>,
    threads: usize,
    out: Option<PathBuf>,
    force: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let (drive, trainer) = (declared(options)?, trainer.map(training::factory));
    let options = WaOptions { drive, trainer, set: settings, threads, out, force };
    text(work::run(py, progress, |note| {
        cachewright_experiment::wa(stack, &origin, &options, note)
    })?)
}

/// What a trace holds.
#[pyfunction]
#[pyo3(signature = (path, format, on_bad_record, options, *, block, volume, progress))]
fn info(
    py: Python<'_>,
    path: crate::trace::TracePaths,
    format: Option<String>,
    on_bad_record: &str,
    options: std::collections::BTreeMap<String, String>,
    block: String,
    volume: Option<String>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let (path, open) = path.open(crate::trace::open_options(format, on_bad_record, options)?)?;
    let options = InfoOptions { open, block, volume };
    let path: &Path = &path;
    text(work::run(py, progress, |note| cachewright_experiment::info(path, &options, note))?)
}
