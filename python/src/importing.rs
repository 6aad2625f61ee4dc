//! Configurations of other simulators as stack files.
//!
//! For: MQSim's XML. Must never know: files; texts come in and go out.

use crate::errors::SpecError;
use cachewright_device::ssd::import::{Located, MqsimFile, mqsim, traces};
use pyo3::prelude::*;
use std::collections::HashMap;

/// Name, stack file, name and text of the synthetic trace's description, notes.
type ScenarioFiles = (String, String, String, Option<String>, Vec<String>);

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(mqsim_traces, module)?)?;
    module.add_function(wrap_pyfunction!(import_mqsim, module)?)
}

/// The paths of trace files that a workload names.
#[pyfunction]
fn mqsim_traces(workload: (String, String)) -> PyResult<Vec<String>> {
    let source = MqsimFile { name: &workload.0, text: &workload.1 };
    traces(source).map_err(|error| SpecError::new_err(error.to_string()))
}

/// Every scenario of MQSim's files, each given as its name and its text. `places` has the path of
/// each trace for the stack file, and what is to be said of it or nothing.
#[pyfunction]
fn import_mqsim(
    config: (String, String),
    workload: Option<(String, String)>,
    places: HashMap<String, (String, String)>,
) -> PyResult<Vec<ScenarioFiles>> {
    let workload = workload.as_ref().map(|(name, text)| MqsimFile { name, text });
    let locate = |path: &str| match places.get(path) {
        Some((path, note)) => Located { path: path.clone(), note: note.clone() },
        None => Located { path: path.to_owned(), note: String::new() },
    };
    let scenarios = mqsim(MqsimFile { name: &config.0, text: &config.1 }, workload, &locate);
    let scenarios = scenarios.map_err(|error| SpecError::new_err(error.to_string()))?;
    let tuple = scenarios
        .into_iter()
        .map(|made| (made.name, made.stack, made.synth_name, made.synth, made.notes));
    Ok(tuple.collect())
}
