//! The model in use, one step per page write.
//!
//! For: the path of a write: features in, the page's state moved on, a class out. Must never know:
//! where a model comes from, the drive. Hex digits have sixteen values each, so that their int8
//! inputs are looked up. The model's own quantisation made that table. The step is the same, bit
//! for bit, as one from single-precision inputs. Memory: 384 bytes of tables beside the model.

use super::features::{Encoding, Features, HEX_INPUTS};
use super::pages::{LifetimeClass, STATE_BYTES};
use super::train_error::TrainError;
use cachewright_model::{Int8Model, Int8Scratch, StoredModel, argmax, quantise};

/// Inputs of models made when the share of writes had two digits.
const OLD_INPUTS: usize = 22;
/// Values of a hex digit.
const DIGIT_VALUES: usize = 16;

/// A model that fits Shiro's pages.
pub struct GruClassifier {
    encoding: Encoding,
    model: Int8Model,
    scratch: Int8Scratch,
    /// The int8 input of each digit, for each value it can have.
    digits: [[i8; DIGIT_VALUES]; HEX_INPUTS],
    inputs: Vec<f32>,
}

impl GruClassifier {
    /// The classifier of a stored model. An f32 model is quantised by `calibration`, rows of inputs
    /// one after another. All inputs at 1 are added, so that no digit saturates. Errors: a model of
    /// another shape than these inputs, 32 bytes of state, 2 outputs (long, short).
    pub fn new(
        stored: &StoredModel,
        encoding: Encoding,
        calibration: &[f32],
    ) -> Result<GruClassifier, TrainError> {
        let inputs = encoding.inputs();
        let shape = &stored.description.architecture;
        let found = (shape.inputs, shape.state_len(), shape.cell_len(), shape.outputs());
        if found != (inputs, STATE_BYTES, 0, 2) {
            let words = |(inputs, state, cell, outputs)| {
                format!("{inputs} inputs, {state} + {cell} bytes of state and {outputs} outputs")
            };
            let mut expected = words((inputs, STATE_BYTES, 0, 2));
            if encoding == Encoding::Hex && found.0 == OLD_INPUTS {
                expected += " (a model of 22 inputs is of an older form: train it again)";
            }
            let found = words(found);
            return Err(TrainError::Shape { found, expected });
        }
        let quantised;
        let int8 = if stored.is_int8() {
            stored
        } else {
            quantised = quantise(stored, &[&vec![1.0; inputs], calibration])?;
            &quantised
        };
        let model = Int8Model::new(int8)?;
        let mut digits = [[0; DIGIT_VALUES]; HEX_INPUTS];
        if encoding == Encoding::Hex {
            for value in 0..DIGIT_VALUES {
                let mut row = [0; HEX_INPUTS];
                model.quantise_inputs(&[value as f32 / 15.0; HEX_INPUTS], &mut row);
                digits.iter_mut().zip(row).for_each(|(digit, input)| digit[value] = input);
            }
        }
        Ok(GruClassifier { encoding, scratch: model.scratch(), model, digits, inputs: Vec::new() })
    }

    /// One step: the page's state moves on, the class comes out.
    #[inline]
    pub fn classify(
        &mut self,
        state: &mut [i8; STATE_BYTES],
        features: &Features,
    ) -> LifetimeClass {
        let GruClassifier { model, scratch, .. } = self;
        let outputs = if self.encoding == Encoding::Hex {
            let digits = features.hex_digits();
            let mut inputs = [0; HEX_INPUTS];
            for ((input, digit), values) in inputs.iter_mut().zip(digits).zip(&self.digits) {
                *input = values[usize::from(digit) % DIGIT_VALUES];
            }
            model.step_quantised(scratch, state, &mut [], &inputs)
        } else {
            self.inputs.clear();
            self.encoding.append(features, &mut self.inputs);
            model.step(scratch, state, &mut [], &self.inputs)
        };
        // The shape was checked when the model came, so that a step cannot fail.
        match outputs {
            Ok(outputs) if argmax(outputs) == 1 => LifetimeClass::Short,
            Ok(_) => LifetimeClass::Long,
            Err(_) => LifetimeClass::Unseen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dataset::{Dataset, LifetimeLabel};
    use super::super::{NativeTrainer, Trainer};
    use super::*;
    use cachewright_model::{Isa, State};
    use cachewright_types::Seed;

    fn features(rng: &mut cachewright_types::Rng) -> Features {
        Features {
            previous_lifetime: rng.next_u64() as u32 >> rng.below(32),
            request_pages: rng.below(6000) as u32,
            sequential: rng.below(2) == 1,
            chunk_writes: rng.next_u64() as u16 >> rng.below(16),
            chunk_reads: rng.next_u64() as u16 >> rng.below(16),
            write_share: rng.next_u64() as u16,
        }
    }

    /// A model of random series, quantised.
    fn model() -> StoredModel {
        let mut rng = Seed(4).rng();
        let (mut rows, mut labels) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            let features = features(&mut rng);
            Encoding::Hex.append(&features, &mut rows);
            let short = features.previous_lifetime < 5000;
            labels.push(if short { LifetimeLabel::Short } else { LifetimeLabel::Long });
        }
        let (lengths, encoding) = (vec![4; 50], Encoding::Hex);
        let (window, first, threshold) = (0, true, 5000);
        let set = Dataset { window, first, threshold, encoding, lengths, rows, labels };
        let float = NativeTrainer::new(Seed(1)).train(&set).unwrap();
        quantise(&float, &[&[1.0; HEX_INPUTS], &set.rows]).unwrap()
    }

    /// States and classes by table equal those of single-precision inputs on every instruction set.
    #[test]
    fn looked_up_digits_change_no_bit() {
        let stored = model();
        let mut classifier = GruClassifier::new(&stored, Encoding::Hex, &[]).unwrap();
        for isa in Isa::available() {
            let plain = Int8Model::new(&stored).unwrap().with_isa(isa).unwrap();
            let State { mut hidden, mut cell } = plain.zero_state();
            let (mut scratch, mut state) = (plain.scratch(), [0; STATE_BYTES]);
            let mut rng = Seed(8).rng();
            let mut classes = [0; 2];
            for _ in 0..3000 {
                let (features, mut inputs) = (features(&mut rng), Vec::new());
                Encoding::Hex.append(&features, &mut inputs);
                let outputs = plain.step(&mut scratch, &mut hidden, &mut cell, &inputs).unwrap();
                let short = argmax(outputs) == 1;
                let expected = if short { LifetimeClass::Short } else { LifetimeClass::Long };
                assert_eq!(classifier.classify(&mut state, &features), expected, "{}", isa.name());
                assert_eq!(state[..], hidden[..], "{}", isa.name());
                classes[usize::from(short)] += 1;
            }
            assert!(classes.iter().all(|count| *count > 100), "{classes:?}");
        }
    }
}
