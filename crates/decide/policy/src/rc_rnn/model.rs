//! A caching model out of its file, with the state it carries from request to request.
//!
//! For: one step per request in f32 or int8. Must never know: the cache, where features come from.
//! Source: Ebrahimi et al., RC-RNN, section 5.2.2: LSTM of three layers of 256 units; here whatever
//! recurrent layers the file has. Its heads are `cached` (no, yes) and `duration` (soon, mean,
//! late); its features say which set it was trained on.

use super::features::{CachingLabel, FeatureSet, MAX_FEATURES, StayClass, encoded};
use cachewright_model::{
    Architecture, FloatModel, FloatScratch, FloatState, Int8Model, Int8Scratch, Int8State, Model,
    StoredModel,
};

/// Heads by name with their outputs, in the order of the outputs.
pub const HEADS: [(&str, usize); 2] = [("cached", 2), ("duration", 3)];

#[derive(Clone, Debug)]
enum ModelArithmetic {
    Float { model: FloatModel, scratch: FloatScratch, state: FloatState },
    Int8 { model: Int8Model, scratch: Int8Scratch, state: Int8State },
}

/// A model and its state.
#[derive(Clone, Debug)]
pub struct CachingNetwork {
    set: FeatureSet,
    arithmetic: ModelArithmetic,
}

impl CachingNetwork {
    /// Reads a model file; its test vector is replayed. Errors: what was found and expected.
    pub fn load(bytes: &[u8]) -> Result<CachingNetwork, String> {
        let wrong = |error: cachewright_model::ModelError| error.to_string();
        let stored = StoredModel::from_bytes(bytes).map_err(wrong)?;
        let set = set_of(&stored.description.features)?;
        check(&stored.description.architecture)?;
        let arithmetic = match Model::load(bytes).map_err(wrong)? {
            Model::Float(model) => ModelArithmetic::Float {
                scratch: model.scratch(),
                state: model.zero_state(),
                model,
            },
            Model::Int8(model) => {
                ModelArithmetic::Int8 { scratch: model.scratch(), state: model.zero_state(), model }
            }
            Model::Forest(_) => return Err("found a forest, expected an lstm or gru".to_owned()),
        };
        Ok(CachingNetwork { set, arithmetic })
    }

    /// The features it takes.
    pub fn set(&self) -> FeatureSet {
        self.set
    }

    /// Forgets all requests.
    pub fn reset(&mut self) {
        match &mut self.arithmetic {
            ModelArithmetic::Float { model, state, .. } => *state = model.zero_state(),
            ModelArithmetic::Int8 { model, state, .. } => *state = model.zero_state(),
        }
    }

    /// What it says of the next request; nothing when `features` are not as many as its inputs.
    pub fn step(&mut self, features: &[f32]) -> Option<CachingLabel> {
        match &mut self.arithmetic {
            ModelArithmetic::Float { model, scratch, state } => model
                .step(scratch, &mut state.hidden, &mut state.cell, features)
                .ok()
                .and_then(label),
            ModelArithmetic::Int8 { model, scratch, state } => model
                .step(scratch, &mut state.hidden, &mut state.cell, features)
                .ok()
                .and_then(label),
        }
    }
}

impl CachingNetwork {
    /// What it says of one request after another, from a zero state: rows of features, in which the
    /// labels of the requests before are replaced by its own where `own`.
    pub fn follow(&mut self, rows: &[f32], own: bool) -> Vec<CachingLabel> {
        self.reset();
        let mut previous = CachingLabel::default();
        let inputs = self.set.features().len();
        let step = |row: &[f32]| {
            let mut features = [0.0; MAX_FEATURES];
            features[..inputs].copy_from_slice(row);
            if own {
                features[inputs - 2..inputs].copy_from_slice(&encoded(previous));
            }
            previous = self.step(&features[..inputs]).unwrap_or(previous);
            previous
        };
        rows.chunks_exact(inputs).map(step).collect()
    }
}

/// The label of the outputs of both heads; of equal ones the first.
pub fn label<T: PartialOrd + Copy>(outputs: &[T]) -> Option<CachingLabel> {
    let [no, yes, soon, mean, late] = *outputs else { return None };
    let duration = if late > soon && late > mean {
        StayClass::Late
    } else if mean > soon {
        StayClass::Mean
    } else {
        StayClass::Soon
    };
    Some(CachingLabel { cached: yes > no, duration })
}

/// The set of these features.
fn set_of(found: &[String]) -> Result<FeatureSet, String> {
    let set = FeatureSet::ALL.into_iter().find(|set| set.features() == found);
    set.ok_or_else(|| {
        let sets = FeatureSet::ALL.map(|set| set.features().join(", "));
        format!("found features {}, expected {}", found.join(", "), sets.join("; or "))
    })
}

/// Checks layers and heads.
fn check(architecture: &Architecture) -> Result<(), String> {
    if !architecture.kind.is_recurrent() {
        return Err(format!("found kind `{}`, expected `lstm` or `gru`", architecture.kind.name()));
    }
    let found: Vec<(&str, usize)> =
        architecture.heads.iter().map(|head| (head.name.as_str(), head.outputs)).collect();
    if found == HEADS {
        return Ok(());
    }
    let listed = |heads: &[(&str, usize)]| {
        let one = |(name, outputs): &(&str, usize)| format!("`{name}` of {outputs}");
        heads.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    Err(format!("found heads {}, expected {}", listed(&found), listed(&HEADS)))
}
