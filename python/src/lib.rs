//! PyO3 glue between the Rust rooms and the Python package `cachewright`.
//!
//! For: one module per room, turning arguments, columns and errors into those of the other side.
//! Must never know: how anything is decided, or how results look. Units: bytes and nanoseconds;
//! documents travel as JSON text. Long work runs with the interpreter released and is cancelled by
//! a signal.

mod caching;
mod characterize;
mod errors;
mod experiment;
mod foreign;
mod importing;
mod live;
mod models;
mod observe;
mod options;
mod registry;
mod segments;
mod serving;
mod trace;
mod training;
mod work;

use cachewright_result::document::SCHEMA_VERSION;
use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("SCHEMA_VERSION", SCHEMA_VERSION)?;
    errors::register(module)?;
    registry::register(module)?;
    trace::register(module)?;
    options::register(module)?;
    experiment::register(module)?;
    segments::register(module)?;
    characterize::register(module)?;
    observe::register(module)?;
    importing::register(module)?;
    training::register(module)?;
    models::register(module)?;
    caching::register(module)?;
    foreign::register(module)?;
    live::register(module)?;
    serving::register(module)
}
