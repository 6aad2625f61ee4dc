//! The model file: one safetensors container, to a [`StoredModel`] and back. Its layout is drawn in
//! docs/model-file.md.
//!
//! Invariants: the same model gives the same bytes. Any bytes give a model or an error. A damaged
//! file with a checksum gives an error.

use crate::description::{
    Architecture, Description, ForestForm, Head, NetworkKind, Normalisation, Quantisation,
    TestVector, VERSION,
};

use crate::error::ModelError;
use crate::stored::{Numbers, StoredModel, Tensor};
use cachewright_types::seed::mix;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, View, serialize};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The one key of the container's metadata.
pub const METADATA_KEY: &str = "cachewright";

/// The checksum covers the rest of the description and the tensors. It is not a metadata key of its
/// own because the library writes several keys in a random order: a description with one begins
/// with this; eight hexadecimal digits and [`CRC_END`] follow.
const CRC_BEGIN: &str = "{\"crc32\":\"";
const CRC_END: &str = "\",";

/// The JSON under [`METADATA_KEY`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    version: u32,
    architecture: JsonArchitecture,
    features: Vec<String>,
    normalisation: Normalisation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quantisation: Option<Quantisation>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    notes: BTreeMap<String, String>,
    test_vector: TestVector,
}

/// [`Architecture`] with the kind as text, so that an unknown one has an error of its own.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonArchitecture {
    kind: String,
    inputs: usize,
    hidden: Vec<usize>,
    heads: Vec<Head>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forest: Option<ForestForm>,
}

/// Just the version, read first.
#[derive(Deserialize)]
struct JsonVersion {
    version: u32,
}

impl StoredModel {
    /// Reads a model file; every part is checked but the test vector, which the forward passes
    /// replay ([`crate::Model::load`]).
    pub fn from_bytes(bytes: &[u8]) -> Result<StoredModel, ModelError> {
        let container =
            |error: safetensors::SafeTensorError| ModelError::Container(error.to_string());
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(container)?;
        let text = header.metadata().as_ref().and_then(|map| map.get(METADATA_KEY));
        let text = text.ok_or(ModelError::NoDescription { key: METADATA_KEY })?;
        let (crc, text) = without_checksum(text);
        let json = parse(&text)?;
        let views = SafeTensors::deserialize(bytes).map_err(container)?;
        let mut tensors = BTreeMap::new();
        for (name, view) in views.iter() {
            tensors.insert(name.to_owned(), read_tensor(name, &view)?);
        }
        let architecture = Architecture {
            kind: NetworkKind::from_name(&json.architecture.kind, json.architecture.forest)?,
            inputs: json.architecture.inputs,
            hidden: json.architecture.hidden,
            heads: json.architecture.heads,
        };
        let stored = StoredModel {
            description: Description {
                architecture,
                features: json.features,
                normalisation: json.normalisation,
                notes: json.notes,
            },
            quantisation: json.quantisation,
            tensors,
            test_vector: json.test_vector,
        };
        // What is wrong with a part is said before that something is.
        stored.check()?;
        let found = checksum(&text, &stored.tensors);
        match crc {
            Some(expected) if expected != found => Err(ModelError::Checksum { found, expected }),
            _ => Ok(stored),
        }
    }

    /// The bytes of the model's file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
        self.check()?;
        let Description { architecture, features, normalisation, notes } = self.description.clone();
        let json = Json {
            version: VERSION,
            architecture: JsonArchitecture {
                kind: architecture.kind.name().to_owned(),
                inputs: architecture.inputs,
                hidden: architecture.hidden,
                heads: architecture.heads,
                forest: match architecture.kind {
                    NetworkKind::Forest(shape) => Some(shape),
                    _ => None,
                },
            },
            features,
            normalisation,
            quantisation: self.quantisation.clone(),
            notes,
            test_vector: self.test_vector.clone(),
        };
        let text = serde_json::to_string(&json)
            .map_err(|error| ModelError::Description(error.to_string()))?;
        let crc = checksum(&text, &self.tensors);
        let rest = text.strip_prefix('{').unwrap_or(&text);
        let text = format!("{CRC_BEGIN}{crc:08x}{CRC_END}{rest}");
        let metadata = [(METADATA_KEY.to_owned(), text)].into_iter().collect();
        serialize(&self.tensors, Some(metadata))
            .map_err(|error| ModelError::Container(error.to_string()))
    }
}

/// The checksum that a description begins with, if it does, and the description without it.
fn without_checksum(text: &str) -> (Option<u32>, Cow<'_, str>) {
    let parts = text.strip_prefix(CRC_BEGIN).and_then(|rest| rest.split_at_checked(8));
    let stated = parts.and_then(|(digits, rest)| {
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let crc = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
        Some((crc, rest.strip_prefix(CRC_END)?))
    });
    match stated {
        Some((crc, rest)) => (Some(crc), Cow::Owned(format!("{{{rest}"))),
        None => (None, Cow::Borrowed(text)),
    }
}

/// CRC-32 of the description and of each tensor, in order of their names. A tensor counts with a
/// line of name, type and shape, and with its bytes.
fn checksum(text: &str, tensors: &BTreeMap<String, Tensor>) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(text.as_bytes());
    for (name, tensor) in tensors {
        let sizes: Vec<String> = tensor.shape.iter().map(usize::to_string).collect();
        let line = format!("{name} {} {}\n", tensor.numbers.type_name(), sizes.join(","));
        crc.update(line.as_bytes());
        crc.update(&View::data(&tensor));
    }
    crc.finalize()
}

fn parse(text: &str) -> Result<Json, ModelError> {
    let wrong = |error: serde_json::Error| ModelError::Description(error.to_string());
    let JsonVersion { version } = serde_json::from_str(text).map_err(wrong)?;
    if version != VERSION {
        return Err(ModelError::Version { found: version, expected: VERSION });
    }
    serde_json::from_str(text).map_err(wrong)
}

fn read_tensor(name: &str, view: &TensorView<'_>) -> Result<Tensor, ModelError> {
    let numbers = match view.dtype() {
        Dtype::F32 => {
            let (chunks, _) = view.data().as_chunks::<4>();
            Numbers::F32(chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        }
        Dtype::I32 => {
            let (chunks, _) = view.data().as_chunks::<4>();
            Numbers::I32(chunks.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect())
        }
        Dtype::I8 => Numbers::I8(view.data().iter().map(|byte| byte.cast_signed()).collect()),
        other => {
            let (name, found) = (name.to_owned(), other.to_string());
            return Err(ModelError::Type { name, found, expected: "F32, I32 or I8" });
        }
    };
    Ok(Tensor { shape: view.shape().to_vec(), numbers })
}

impl View for &Tensor {
    fn dtype(&self) -> Dtype {
        match self.numbers {
            Numbers::F32(_) => Dtype::F32,
            Numbers::I32(_) => Dtype::I32,
            Numbers::I8(_) => Dtype::I8,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(match &self.numbers {
            Numbers::F32(numbers) => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Numbers::I32(numbers) => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Numbers::I8(numbers) => numbers.iter().map(|x| x.cast_unsigned()).collect(),
        })
    }

    fn data_len(&self) -> usize {
        self.bytes()
    }
}

/// A number of 64 bits that differs between files, but for accidents; 0 for no bytes.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(bytes.len() as u64, |hash, word| mix(hash ^ word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_in_a_bit_or_in_length_are_told_apart() {
        let file: Vec<u8> = (0..29).collect();
        let known = fingerprint(&file);
        assert_eq!((known, fingerprint(&[])), (fingerprint(&file.clone()), 0));
        for bit in 0..file.len() * 8 {
            let mut other = file.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(fingerprint(&other), known, "bit {bit}");
        }
        assert_ne!(fingerprint(&[file.as_slice(), &[0]].concat()), known);
    }
}
