//! A model as trainers, the quantiser and files exchange it: description, tensors by name, test
//! vector.

use crate::description::{
    Description, NODE_FEATURE, NetworkKind, Quantisation, TREE_NODES, TestVector,
};

use crate::error::ModelError;
use crate::forest;
use cachewright_types::nearest;
use std::collections::BTreeMap;

/// A model in its stored form. What [`StoredModel::check`] accepts has every tensor of its
/// architecture, in the right shape and type, and no other; its trees are trees.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredModel {
    /// Shape, features, normalisation.
    pub description: Description,
    /// Scales of activations; present in an int8 model, absent in an f32 model.
    pub quantisation: Option<Quantisation>,
    /// Weights by PyTorch's names; in an int8 model each weight `w` has a sibling `w.scale`.
    pub tensors: BTreeMap<String, Tensor>,
    /// A sequence and its outputs.
    pub test_vector: TestVector,
}

impl StoredModel {
    /// Whether weights are int8.
    pub fn is_int8(&self) -> bool {
        self.quantisation.is_some()
    }

    /// Bytes of weights, biases and scales.
    pub fn weight_bytes(&self) -> usize {
        self.tensors.values().map(Tensor::bytes).sum()
    }

    /// Names, shapes and types of the tensors this model must have.
    fn expected(&self) -> Vec<(String, Vec<usize>, &'static str)> {
        let mut expected = Vec::new();
        for (name, shape) in self.description.architecture.tensors() {
            let quantised = self.is_int8() && shape.len() == 2;
            if quantised {
                expected.push((format!("{name}.scale"), vec![shape[0]], "F32"));
            }
            let whole = self.description.architecture.type_of(&name);
            expected.push((name, shape, if quantised { "I8" } else { whole }));
        }
        expected
    }

    /// Checks everything but that the test vector is reproduced.
    pub fn check(&self) -> Result<(), ModelError> {
        self.description.check()?;
        if let Some(quantisation) = &self.quantisation {
            quantisation.check(&self.description.architecture)?;
        }
        self.test_vector.check(&self.description.architecture)?;
        let expected = self.expected();
        for name in self.tensors.keys() {
            if !expected.iter().any(|(known, ..)| known == name) {
                let near = nearest(name, expected.iter().map(|(known, ..)| known.as_str()));
                let near = near.map(str::to_owned);
                return Err(ModelError::UnknownTensor { name: name.clone(), near });
            }
        }
        for (name, shape, type_name) in expected {
            let Some(tensor) = self.tensors.get(&name) else {
                return Err(ModelError::MissingTensor { name, shape });
            };
            check_tensor(&name, tensor, &shape, type_name)?;
        }
        if let NetworkKind::Forest(_) = self.description.architecture.kind {
            let inputs = self.description.architecture.inputs;
            forest::check(self.i32s(TREE_NODES)?, self.i32s(NODE_FEATURE)?, inputs)?;
        }
        Ok(())
    }

    /// The single-precision numbers of a tensor.
    pub(crate) fn f32s(&self, name: &str) -> Result<&[f32], ModelError> {
        match self.tensors.get(name).map(|tensor| &tensor.numbers) {
            Some(Numbers::F32(numbers)) => Ok(numbers),
            Some(other) => Err(wrong_type(name, other, "F32")),
            None => Err(ModelError::MissingTensor { name: name.to_owned(), shape: Vec::new() }),
        }
    }

    /// The whole numbers of a tensor.
    pub(crate) fn i32s(&self, name: &str) -> Result<&[i32], ModelError> {
        match self.tensors.get(name).map(|tensor| &tensor.numbers) {
            Some(Numbers::I32(numbers)) => Ok(numbers),
            Some(other) => Err(wrong_type(name, other, "I32")),
            None => Err(ModelError::MissingTensor { name: name.to_owned(), shape: Vec::new() }),
        }
    }

    /// The bytes of a tensor.
    pub(crate) fn i8s(&self, name: &str) -> Result<&[i8], ModelError> {
        match self.tensors.get(name).map(|tensor| &tensor.numbers) {
            Some(Numbers::I8(numbers)) => Ok(numbers),
            Some(other) => Err(wrong_type(name, other, "I8")),
            None => Err(ModelError::MissingTensor { name: name.to_owned(), shape: Vec::new() }),
        }
    }
}

fn wrong_type(name: &str, found: &Numbers, expected: &'static str) -> ModelError {
    ModelError::Type { name: name.to_owned(), found: found.type_name().to_owned(), expected }
}

fn check_tensor(
    name: &str,
    tensor: &Tensor,
    shape: &[usize],
    type_name: &'static str,
) -> Result<(), ModelError> {
    if tensor.numbers.type_name() != type_name {
        return Err(wrong_type(name, &tensor.numbers, type_name));
    }
    if tensor.shape != shape || tensor.numbers.len() != shape.iter().product::<usize>() {
        let found = if tensor.shape == shape || tensor.shape.is_empty() {
            vec![tensor.numbers.len()]
        } else {
            tensor.shape.clone()
        };
        return Err(ModelError::Shape { name: name.to_owned(), found, expected: shape.to_vec() });
    }
    let what = || format!("tensor `{name}`");
    match &tensor.numbers {
        Numbers::F32(numbers) => {
            let scale = name.ends_with(".scale");
            let wrong = |x: &&f32| !x.is_finite() || (scale && **x < 0.0);
            if let Some(found) = numbers.iter().find(wrong).copied() {
                let expected = if scale { "finite numbers from 0" } else { "finite numbers" };
                return Err(ModelError::Number { what: what(), found, expected });
            }
        }
        Numbers::I32(_) => {}
        Numbers::I8(numbers) => {
            if numbers.contains(&i8::MIN) {
                let expected = "weights from -127 to 127";
                return Err(ModelError::Number { what: what(), found: -128.0, expected });
            }
        }
    }
    Ok(())
}

/// The numbers of a tensor, last dimension innermost.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// Single precision.
    F32(Vec<f32>),
    /// Whole numbers.
    I32(Vec<i32>),
    /// Signed bytes, -127 to 127.
    I8(Vec<i8>),
}

impl Numbers {
    /// The name of the type in messages and files.
    pub fn type_name(&self) -> &'static str {
        match self {
            Numbers::F32(_) => "F32",
            Numbers::I32(_) => "I32",
            Numbers::I8(_) => "I8",
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Numbers::F32(numbers) => numbers.len(),
            Numbers::I32(numbers) => numbers.len(),
            Numbers::I8(numbers) => numbers.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// As many as the product of the sizes.
    pub numbers: Numbers,
}

impl Tensor {
    /// Bytes in a file.
    pub fn bytes(&self) -> usize {
        match self.numbers {
            Numbers::F32(_) | Numbers::I32(_) => 4 * self.numbers.len(),
            Numbers::I8(_) => self.numbers.len(),
        }
    }
}
