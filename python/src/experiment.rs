//! The experiment room: check, run, mrc, plan, wa, info.
//!
//! For: passing stack text and options in and documents out. Must never know: any key of a stack or
//! of a document.

use crate::errors::of_experiment;
use crate::foreign::Loader;
use crate::training::{self, Handed};
use crate::work;
use cachewright_experiment::{
    ExperimentError, InfoOptions, MrcOptions, PlanOptions, RunOptions, WaOptions,
};
use pyo3::prelude::*;
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

/// The resolved settings of a stack.
#[pyfunction]
fn check(py: Python<'_>, stack: &str, origin: PathBuf, settings: Pairs) -> PyResult<String> {
    text(py.detach(|| cachewright_experiment::check(stack, &origin, &settings)))
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
#[allow(clippy::too_many_arguments)]
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

/// Miss-ratio curves of a stack's tenants.
#[pyfunction]
#[pyo3(signature = (stack, origin, settings, *, policies, method, rate, size, sizes, points, salts,
                    windows, verify, small, latency=false, threads, out=None, force=false,
                    progress))]
#[allow(clippy::too_many_arguments)]
fn mrc(
    py: Python<'_>,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    policies: Vec<String>,
    method: String,
    rate: Option<f64>,
    size: Option<usize>,
    sizes: Vec<String>,
    points: usize,
    salts: usize,
    windows: usize,
    verify: usize,
    small: String,
    latency: bool,
    threads: usize,
    out: Option<PathBuf>,
    force: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let set = settings;
    let options = MrcOptions {
        policies,
        method,
        rate,
        size,
        sizes,
        points,
        salts,
        windows,
        verify,
        small,
        latency,
        set,
        threads,
        out,
        force,
    };
    text(work::run(py, progress, |note| {
        cachewright_experiment::mrc(stack, &origin, &options, note)
    })?)
}

/// The smallest cache that meets a stack's goals.
#[pyfunction]
#[pyo3(signature = (stack, origin, settings, *, partitions, precision, threads, out=None,
                    force=false, progress))]
#[allow(clippy::too_many_arguments)]
fn plan(
    py: Python<'_>,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    partitions: Option<Vec<String>>,
    precision: f64,
    threads: usize,
    out: Option<PathBuf>,
    force: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let options = PlanOptions { partitions, set: settings, precision, threads, out, force };
    text(work::run(py, progress, |note| {
        cachewright_experiment::plan(stack, &origin, &options, note)
    })?)
}

/// Write amplification of separations.
#[pyfunction]
#[pyo3(signature = (stack, origin, settings, *, op, separations, reclaims, superblock, page,
                    capacity, reserve, drive_writes, looped, load, trainer,
                    model, threads, out, progress))]
#[allow(clippy::too_many_arguments)]
fn wa(
    py: Python<'_>,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    op: Vec<String>,
    separations: Vec<String>,
    reclaims: Vec<String>,
    superblock: String,
    page: String,
    capacity: String,
    reserve: u32,
    drive_writes: Option<f64>,
    looped: bool,
    load: Vec<String>,
    trainer: Option<Handed>,
    model: Option<PathBuf>,
    threads: usize,
    out: Option<PathBuf>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let options = WaOptions {
        op,
        separations,
        reclaims,
        superblock,
        page,
        capacity,
        reserve,
        drive_writes,
        looped,
        load,
        trainer: trainer.map(training::factory),
        model,
        set: settings,
        threads,
        out,
    };
    text(work::run(py, progress, |note| {
        cachewright_experiment::wa(stack, &origin, &options, note)
    })?)
}

/// What a trace holds.
#[pyfunction]
#[pyo3(signature = (path, format, on_bad_record, options, *, block, volume, progress))]
#[allow(clippy::too_many_arguments)]
fn info(
    py: Python<'_>,
    path: PathBuf,
    format: Option<String>,
    on_bad_record: &str,
    options: std::collections::BTreeMap<String, String>,
    block: String,
    volume: Option<String>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let open = crate::trace::open_options(format, on_bad_record, options)?;
    let options = InfoOptions { open, block, volume };
    let path: &Path = &path;
    text(work::run(py, progress, |note| cachewright_experiment::info(path, &options, note))?)
}
