//! Model files come back as they were written; whatever is wrong with one is named, never a panic.

#![allow(clippy::unwrap_used)]

use cachewright_model::{
    FloatModel, Int8Model, ModelError, NetworkKind, Numbers, StoredModel, Tensor, quantise,
};
use cachewright_testkit::models::{random_int8, random_model, shape};
use proptest::prelude::*;

fn small(kind: NetworkKind) -> StoredModel {
    let hidden: &[usize] = if kind == NetworkKind::Logistic { &[] } else { &[6] };
    random_model(shape(kind, 3, hidden, &[2]), 1.0, 11)
}

/// The file of `stored` with a piece of its header's text replaced; the header's length follows.
fn edited(stored: &StoredModel, from: &str, to: &str) -> Vec<u8> {
    let bytes = stored.to_bytes().unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = std::str::from_utf8(&bytes[8..8 + length]).unwrap();
    assert!(header.contains(from), "{header}");
    let header = header.replacen(from, to, 1);
    let mut edited = (header.len() as u64).to_le_bytes().to_vec();
    edited.extend(header.as_bytes());
    edited.extend(&bytes[8 + length..]);
    edited
}

fn message(bytes: &[u8]) -> String {
    FloatModel::load(bytes).unwrap_err().to_string()
}

#[test]
fn files_come_back_bit_by_bit() {
    for kind in [NetworkKind::Gru, NetworkKind::Lstm, NetworkKind::Mlp, NetworkKind::Logistic] {
        let mut stored = small(kind);
        stored.description.notes.insert("threshold".to_owned(), "1349".to_owned());
        let bytes = stored.to_bytes().unwrap();
        assert_eq!(StoredModel::from_bytes(&bytes).unwrap(), stored);
        assert_eq!(stored.to_bytes().unwrap(), bytes, "the same model gives the same bytes");
        FloatModel::load(&bytes).unwrap();
        let int8 = random_int8(&stored, 1);
        let bytes = int8.to_bytes().unwrap();
        assert_eq!(StoredModel::from_bytes(&bytes).unwrap(), int8);
        Int8Model::load(&bytes).unwrap();
    }
}

#[test]
fn the_model_of_icache_fits_a_hundred_kilobytes() {
    let stored = random_model(shape(NetworkKind::Lstm, 4, &[128], &[2]), 1.0, 1);
    let int8 = random_int8(&stored, 1);
    assert_eq!(int8.weight_bytes(), 512 * (4 + 128) + 512 * 4 * 4 + 2 * 128 + 2 * 8);
    assert!(int8.to_bytes().unwrap().len() < 100_000);
}

#[test]
fn a_missing_tensor_is_named_with_its_shape() {
    let mut stored = small(NetworkKind::Gru);
    stored.tensors.remove("weight_hh_l0");
    let error = stored.to_bytes().unwrap_err().to_string();
    assert_eq!(error, "found no tensor `weight_hh_l0`, expected it with shape [18, 6]");
}

#[test]
fn a_wrong_name_is_named_with_its_neighbour() {
    let bytes = edited(&small(NetworkKind::Gru), "\"bias_ih_l0\"", "\"bais_ih_l0\"");
    assert_eq!(
        message(&bytes),
        "found a tensor `bais_ih_l0` that the architecture does not have (nearest: `bias_ih_l0`)"
    );
}

#[test]
fn a_wrong_shape_is_named() {
    let stored = small(NetworkKind::Lstm);
    let bytes = edited(&stored, "\"shape\":[24,3]", "\"shape\":[3,24]");
    let expected = "tensor `weight_ih_l0`: found shape [3, 24], expected [24, 3]";
    assert_eq!(message(&bytes), expected);
    let mut stored = small(NetworkKind::Lstm);
    let numbers = Numbers::F32(vec![0.0; 23]);
    stored.tensors.insert("bias_ih_l0".to_owned(), Tensor { shape: vec![24], numbers });
    let error = stored.check().unwrap_err().to_string();
    assert_eq!(error, "tensor `bias_ih_l0`: found shape [23], expected [24]");
}

#[test]
fn a_wrong_type_is_named() {
    let bytes = edited(&small(NetworkKind::Mlp), "\"dtype\":\"F32\"", "\"dtype\":\"U32\"");
    assert!(message(&bytes).ends_with("found numbers of type U32, expected F32, I32 or I8"));
    let mut stored = small(NetworkKind::Mlp);
    let numbers = Numbers::I8(vec![0; 6]);
    stored.tensors.insert("hidden.0.bias".to_owned(), Tensor { shape: vec![6], numbers });
    let error = stored.check().unwrap_err().to_string();
    assert_eq!(error, "tensor `hidden.0.bias`: found numbers of type I8, expected F32");
}

#[test]
fn an_unknown_architecture_is_named_with_its_neighbour() {
    let bytes = edited(&small(NetworkKind::Gru), r#"kind\":\"gru"#, r#"kind\":\"gruu"#);
    let error = message(&bytes);
    assert!(error.contains("found architecture kind `gruu`"), "{error}");
    assert!(error.ends_with("(nearest: `gru`)"), "{error}");
}

#[test]
fn other_versions_keys_and_files_are_refused() {
    let stored = small(NetworkKind::Gru);
    let bytes = edited(&stored, r#"version\":1"#, r#"version\":2"#);
    assert!(message(&bytes).contains("found version 2, expected 1"));
    let bytes = edited(&stored, r#"\"features\""#, r#"\"faetures\""#);
    assert!(message(&bytes).contains("unknown field `faetures`"), "{}", message(&bytes));
    let bytes = edited(&stored, "\"cachewright\"", "\"somewright\"");
    assert!(message(&bytes).starts_with("found no metadata key `cachewright`"));
    assert!(message(b"not a model").starts_with("found bytes that are no safetensors file"));
    assert!(message(&[]).starts_with("found bytes that are no safetensors file"));
}

#[test]
fn a_test_vector_that_is_not_reproduced_is_refused() {
    let mut stored = small(NetworkKind::Gru);
    stored.test_vector.outputs[3][1] += 1e-4;
    let error = FloatModel::load(&stored.to_bytes().unwrap()).unwrap_err();
    assert!(matches!(error, ModelError::NotReproduced { step: 3, output: 1, .. }), "{error}");
    stored.test_vector.outputs[3][1] -= 1e-4;
    let mut int8 = random_int8(&stored, 1);
    int8.test_vector.outputs[0][0] += 1.0 / 4096.0;
    let error = Int8Model::load(&int8.to_bytes().unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("test vector, step 0, output 0: found "), "{error}");
}

#[test]
fn numbers_out_of_range_are_refused() {
    let change = |name: &str, numbers: Numbers| {
        let mut stored = random_int8(&small(NetworkKind::Gru), 1);
        stored.tensors.get_mut(name).unwrap().numbers = numbers;
        Int8Model::new(&stored).unwrap_err().to_string()
    };
    let error = change("fc.bias", Numbers::F32(vec![f32::NAN, 0.0]));
    assert_eq!(error, "tensor `fc.bias`: found NaN, expected finite numbers");
    let error = change("fc.bias", Numbers::F32(vec![1e9, 0.0]));
    assert!(error.contains("expected a bias from -16384 to 16384"), "{error}");
    let error = change("fc.weight.scale", Numbers::F32(vec![-1.0, 0.0]));
    assert!(error.contains("expected finite numbers from 0"), "{error}");
    let error = change("fc.weight.scale", Numbers::F32(vec![1.0, 0.0]));
    assert!(error.contains("expected a scale whose multiplier fits 32 bits"), "{error}");
    let error = change("fc.weight", Numbers::I8(vec![-128; 12]));
    assert!(error.contains("expected weights from -127 to 127"), "{error}");
}

#[test]
fn sizes_and_precisions_are_checked() {
    let stored = small(NetworkKind::Gru);
    let mut large = stored.clone();
    large.description.architecture.hidden = vec![5000];
    let error = large.check().unwrap_err().to_string();
    assert_eq!(error, "units of layer 0: found 5000, expected 1 to 1024");
    let mut deep = stored.clone();
    deep.description.architecture.hidden = vec![6; 4];
    let error = deep.check().unwrap_err().to_string();
    assert_eq!(error, "hidden layers of gru: found 4, expected 1 to 3");
    let int8 = random_int8(&stored, 1);
    let error = FloatModel::new(&int8).unwrap_err().to_string();
    assert_eq!(error, "found an int8 model, expected an f32 model");
    let error = Int8Model::new(&stored).unwrap_err().to_string();
    assert_eq!(error, "found an f32 model, expected an int8 model");
    let error = quantise(&stored, &[]).unwrap_err().to_string();
    assert_eq!(error, "steps of calibration: found 0, expected at least 1");
    let model = Int8Model::new(&int8).unwrap();
    let mut scratch = model.scratch();
    let error = model.step(&mut scratch, &mut [0; 5], &mut [], &[0.0; 3]).unwrap_err();
    assert_eq!(error.to_string(), "numbers of hidden state: found 5, expected 6");
}

/// A model with a flipped bit was another model: ten of thirty files were read.
#[test]
fn a_flipped_bit_anywhere_is_refused_or_changes_nothing() {
    let float = small(NetworkKind::Gru);
    for stored in [random_int8(&float, 1), float] {
        let bytes = stored.to_bytes().unwrap();
        let mut refused = 0;
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            match StoredModel::from_bytes(&flipped) {
                Ok(found) => assert_eq!(found, stored, "byte {at} of {}", bytes.len()),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > bytes.len() * 9 / 10, "{refused} of {}", bytes.len());
    }
}

#[test]
fn a_model_file_without_checksum_is_read() {
    let stored = small(NetworkKind::Mlp);
    let bytes = stored.to_bytes().unwrap();
    let at = bytes.windows(7).position(|seven| seven == b"crc32\\\"").unwrap();
    // The member `\"crc32\":\"xxxxxxxx\",` within the header's JSON becomes blanks.
    let mut without = bytes.clone();
    without[at - 2..at + 21].fill(b' ');
    assert_eq!(StoredModel::from_bytes(&without).unwrap(), stored);
}

proptest! {
    #[test]
    fn any_bytes_give_a_model_or_an_error(
        kind in prop_oneof![
            Just(NetworkKind::Gru),
            Just(NetworkKind::Lstm),
            Just(NetworkKind::Mlp),
        ],
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
        int8 in any::<bool>(),
    ) {
        let stored = if int8 { random_int8(&small(kind), 1) } else { small(kind) };
        let mut bytes = stored.to_bytes().unwrap();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        for bytes in [&bytes[..], &bytes[..end.index(bytes.len())]] {
            let errors = [FloatModel::load(bytes).err(), Int8Model::load(bytes).err()];
            for error in errors.into_iter().flatten() {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn characters_that_cannot_be_shown_are_written_out() {
    let stored = small(NetworkKind::Gru);
    let field = message(&edited(&stored, "normalisation", "normalisati\u{7f}n"));
    assert!(field.contains("unknown field `normalisati\\u{7f}n`"), "{field}");
    let kind = message(&edited(&stored, r#"\"gru\""#, r#"\"g\\u001bu\""#));
    assert!(kind.contains("`g\\u{1b}u`"), "{kind}");
    let tensor = message(&edited(&stored, r#""bias_hh_l0""#, "\"bias_\u{202e}hh_l0\""));
    assert!(!tensor.contains('\u{202e}'), "{tensor}");
}
