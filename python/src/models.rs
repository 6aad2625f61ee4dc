//! Model files for Python: what they hold, what they compute, their int8 form; labels of icache.
//!
//! For: trainers that judge a model with the very code that will run it. Must never know: how
//! anyone trains. Sequences are float32 [sequence, step, input], before normalisation.

use crate::errors::{SpecError, of_experiment};
use cachewright_experiment::json;
use cachewright_model::{Description, Model as Computing, NetworkKind, Numbers, StoredModel};
use cachewright_partition::icache::{self, GainOf, GranuleDemand, MIN_GAIN, PointRule};
use cachewright_result::training::{ForestShape, InputScale, ModelDescription};
use numpy::{
    IntoPyArray, PyArray2, PyArrayDyn, PyArrayMethods, PyReadonlyArray2, PyReadonlyArray3,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(points, module)?)?;
    module.add_class::<Model>()
}

/// MBP and OAP [window, 2] in granules, of mean responses [window, granules 0 to all].
#[pyfunction]
#[pyo3(signature = (responses, least_gain = MIN_GAIN, gain_of = "before", *, from_off = false))]
fn points<'py>(
    py: Python<'py>,
    responses: PyReadonlyArray2<'py, f64>,
    least_gain: f64,
    gain_of: &str,
    from_off: bool,
) -> PyResult<Bound<'py, PyArray2<u32>>> {
    let gain_of = GainOf::parse(gain_of).map_err(SpecError::new_err)?;
    let reading = PointRule { from_off, least_gain, gain_of };
    let responses = responses.as_array();
    let mut found = Vec::with_capacity(2 * responses.nrows());
    for row in responses.rows() {
        let GranuleDemand { mbp, oap } = icache::points(&row.to_vec(), reading);
        found.extend([mbp, oap]);
    }
    found.into_pyarray(py).reshape([responses.nrows(), 2])
}

/// A model file that was read and whose test vector was replayed.
#[pyclass(module = "cachewright._native", frozen)]
struct Model {
    stored: StoredModel,
    computing: Computing,
}

fn wrong(error: cachewright_model::ModelError) -> PyErr {
    SpecError::new_err(error.to_string())
}

#[pymethods]
impl Model {
    #[new]
    fn new(content: &[u8]) -> PyResult<Model> {
        let stored = StoredModel::from_bytes(content).map_err(wrong)?;
        let computing = Computing::load(content).map_err(wrong)?;
        Ok(Model { stored, computing })
    }

    /// The file's description without test vector, as JSON; `weight_bytes` and `int8` beside.
    fn describe(&self) -> PyResult<String> {
        json::text(&description(&self.stored)).map_err(of_experiment)
    }

    /// The single-precision tensors by name.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let weights = PyDict::new(py);
        for (name, tensor) in &self.stored.tensors {
            if let Numbers::F32(numbers) = &tensor.numbers {
                let numbers = numbers.clone().into_pyarray(py);
                let shaped: Bound<'py, PyArrayDyn<f32>> = numbers.reshape(tensor.shape.clone())?;
                weights.set_item(name, shaped)?;
            }
        }
        Ok(weights)
    }

    /// The outputs after the last step of each sequence, each from a zero state.
    fn outputs<'py>(
        &self,
        py: Python<'py>,
        sequences: PyReadonlyArray3<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (length, all) = flat(&sequences)?;
        let outputs = self.computing.architecture().outputs();
        let mut found = Vec::with_capacity(sequences.shape()[0] * outputs);
        py.detach(|| {
            all.chunks_exact(length).try_for_each(|sequence| {
                found.extend(self.computing.last(sequence)?);
                Ok(())
            })
        })
        .map_err(wrong)?;
        found.into_pyarray(py).reshape([sequences.shape()[0], outputs])
    }

    /// The file of the same model in int8, calibrated on sequences like those to come.
    fn quantised<'py>(
        &self,
        py: Python<'py>,
        sequences: PyReadonlyArray3<'py, f32>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (length, all) = flat(&sequences)?;
        let calibration: Vec<&[f32]> = all.chunks_exact(length).collect();
        let file = py.detach(|| {
            cachewright_model::quantise(&self.stored, &calibration)
                .and_then(|stored| stored.to_bytes())
        });
        Ok(PyBytes::new(py, &file.map_err(wrong)?))
    }
}

fn description(stored: &StoredModel) -> ModelDescription {
    let Description { architecture, features, normalisation, notes } = &stored.description;
    let heads = architecture.heads.iter();
    let wide = |numbers: &[f32]| numbers.iter().copied().map(f64::from).collect();
    ModelDescription {
        kind: architecture.kind.name().to_owned(),
        inputs: architecture.inputs,
        hidden: architecture.hidden.clone(),
        heads: heads.map(|head| (head.name.clone(), head.outputs)).collect(),
        forest: match architecture.kind {
            NetworkKind::Forest(shape) => {
                Some(ForestShape { trees: shape.trees, nodes: shape.nodes })
            }
            _ => None,
        },
        features: features.clone(),
        normalisation: InputScale {
            mean: wide(&normalisation.mean),
            deviation: wide(&normalisation.deviation),
        },
        notes: notes.clone(),
        int8: stored.is_int8(),
        weight_bytes: stored.weight_bytes(),
    }
}

/// Numbers of a sequence, and all sequences one after another.
fn flat<'a>(sequences: &'a PyReadonlyArray3<'_, f32>) -> PyResult<(usize, &'a [f32])> {
    let all = sequences.as_slice().map_err(|_| {
        SpecError::new_err("sequences: found an array with gaps, expected a contiguous one")
    })?;
    let length = sequences.shape()[1] * sequences.shape()[2];
    if length == 0 {
        let found = sequences.shape();
        return Err(SpecError::new_err(format!(
            "sequences: found shape {found:?}, expected steps"
        )));
    }
    Ok((length, all))
}
