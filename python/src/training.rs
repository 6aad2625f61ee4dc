//! Trainers written in Python, called at window borders from a run's threads.
//!
//! For: handing a window's dataset over as numpy arrays and taking a model file back; and training
//! away from a drive. Must never know: how anyone trains. A trainer's exception becomes an error of
//! its window, never of the run. Labels are -1 for a page's first write, 0 long, 1 short; series
//! `i` is the steps from `bounds[i]` to `bounds[i + 1]`.

use crate::errors::of_experiment;
use crate::options::declared;
use crate::work;
use cachewright_experiment::{TrainOptions, Trained, TrainerFactory};
use cachewright_ftl::separation::shiro::{Dataset, TrainError, Trainer};
use cachewright_model::StoredModel;
use cachewright_types::Seed;
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::Arc;

/// A trainer that was handed over: its name and the function to call.
#[derive(FromPyObject)]
pub struct PythonFunction(String, Py<PyAny>);

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(train, module)?)
}

/// Trains on the earlier part of a stack's writes: the model file, and the document as JSON.
#[pyfunction]
#[pyo3(signature = (stack, origin, settings, options, *, trainer, judge, progress))]
fn train<'py>(
    py: Python<'py>,
    stack: &str,
    origin: PathBuf,
    settings: Vec<(String, String)>,
    options: &Bound<'py, PyDict>,
    trainer: Option<PythonFunction>,
    judge: Vec<(String, PathBuf)>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyBytes>, String)> {
    let trainer = trainer.map(factory);
    let classifier = declared(options)?;
    let options = TrainOptions { classifier, trainer, set: settings, judge };
    let done = work::run(py, progress, |note| {
        cachewright_experiment::train(stack, &origin, &options, note)
    })?;
    let Trained { model, document } = done.map_err(of_experiment)?;
    Ok((PyBytes::new(py, &model), document.to_string()))
}

/// Makes one trainer per case of a Python function.
pub fn factory(PythonFunction(name, call): PythonFunction) -> TrainerFactory {
    let call = Arc::new(call);
    TrainerFactory::new(&name, move |case, seed| {
        Box::new(PythonTrainer { call: Arc::clone(&call), case, seed })
    })
}

struct PythonTrainer {
    call: Arc<Py<PyAny>>,
    case: usize,
    seed: Seed,
}

impl PythonTrainer {
    fn ask(&self, py: Python<'_>, dataset: &Dataset) -> PyResult<Vec<u8>> {
        let inputs = dataset.encoding.inputs();
        let rows = dataset.rows.clone().into_pyarray(py);
        let rows = rows.reshape([dataset.labels.len(), inputs])?;
        let label = |class: Option<u8>| class.map_or(-1, |class| class as i8);
        let labels: Vec<i8> = dataset.labels.iter().map(|l| label(l.class())).collect();
        let mut bounds = vec![0_i64];
        let mut end = 0;
        bounds.extend(dataset.lengths.iter().map(|length| {
            end += i64::from(*length);
            end
        }));
        let model = self.call.bind(py).call1((
            self.case,
            dataset.window,
            dataset.first,
            dataset.threshold,
            self.seed.0,
            dataset.encoding.names(),
            rows,
            labels.into_pyarray(py),
            bounds.into_pyarray(py),
        ))?;
        Ok(model.cast::<PyBytes>()?.as_bytes().to_vec())
    }
}

impl Trainer for PythonTrainer {
    fn train(&mut self, dataset: &Dataset) -> Result<StoredModel, TrainError> {
        let answer = Python::attach(|py| {
            let answer = self.ask(py, dataset);
            answer.map_err(|error| TrainError::Outside(error.value(py).to_string()))
        })?;
        Ok(cachewright_experiment::wa::stored(&answer)?)
    }
}
