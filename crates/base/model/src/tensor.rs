//! Numbers with a shape.
//!
//! For: the weights of stored models. Must never know: what a tensor means, files.

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
