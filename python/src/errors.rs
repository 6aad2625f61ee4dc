//! The exception tree, and which error of a Rust room becomes which exception.
//!
//! For: `Error > SpecError, TraceError, RunError, PolicyError`. Must never know: what went wrong;
//! the sentence of the Rust error is passed on as it is.

use cachewright_experiment::ExperimentError;
use cachewright_system::RecordError;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(cachewright, Error, PyException, "Whatever Cachewright refuses or fails at.");
create_exception!(cachewright, SpecError, Error, "A stack, a setting or an argument is wrong.");
create_exception!(cachewright, TraceError, Error, "A trace cannot be read or written.");
create_exception!(cachewright, RunError, Error, "A run failed or was cancelled.");
create_exception!(cachewright, PolicyError, Error, "A policy written in Python broke the rules.");

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("SpecError", py.get_type::<SpecError>())?;
    module.add("TraceError", py.get_type::<TraceError>())?;
    module.add("RunError", py.get_type::<RunError>())?;
    module.add("PolicyError", py.get_type::<PolicyError>())
}

/// The exception for an error of the trace room.
pub fn of_trace(error: cachewright_trace::TraceError) -> PyErr {
    match error {
        cachewright_trace::TraceError::Option { .. }
        | cachewright_trace::TraceError::Unmapped { .. } => SpecError::new_err(error.to_string()),
        _ => TraceError::new_err(error.to_string()),
    }
}

/// The exception for an error of a live server, or of a tool for its devices.
pub fn of_live(error: cachewright_daemon::LiveError) -> PyErr {
    match error {
        cachewright_daemon::LiveError::Refused(text) => SpecError::new_err(text),
        cachewright_daemon::LiveError::Failed(text)
        | cachewright_daemon::LiveError::TakenOver(text) => RunError::new_err(text),
    }
}

/// The exception for an error of the experiment room.
pub fn of_experiment(error: ExperimentError) -> PyErr {
    let text = error.to_string();
    match error {
        ExperimentError::Trace(inner) | ExperimentError::Record(RecordError::Trace(inner)) => {
            of_trace(inner)
        }
        ExperimentError::Spec { .. }
        | ExperimentError::Option(_)
        | ExperimentError::Curve(_)
        | ExperimentError::Record(
            RecordError::Intern { .. }
            | RecordError::TooLong { .. }
            | RecordError::Intervals { .. },
        ) => SpecError::new_err(text),
        _ => RunError::new_err(text),
    }
}
