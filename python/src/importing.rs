//! Configurations of other simulators as stack files.
//!
//! For: MQSim's XML. Must never know: files; texts come in and go out.

use crate::errors::SpecError;
use cachewright_device::ssd::import::{Source, mqsim};
use pyo3::prelude::*;

/// Name, stack file, name and text of the synthetic trace's description, notes.
type Scenario = (String, String, String, Option<String>, Vec<String>);

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(import_mqsim, module)?)
}

/// Every scenario of MQSim's files, each given as its name and its text.
#[pyfunction]
fn import_mqsim(
    config: (String, String),
    workload: Option<(String, String)>,
) -> PyResult<Vec<Scenario>> {
    let workload = workload.as_ref().map(|(name, text)| Source { name, text });
    let scenarios = mqsim(Source { name: &config.0, text: &config.1 }, workload);
    let scenarios = scenarios.map_err(|error| SpecError::new_err(error.to_string()))?;
    let tuple = scenarios
        .into_iter()
        .map(|made| (made.name, made.stack, made.synth_name, made.synth, made.notes));
    Ok(tuple.collect())
}
