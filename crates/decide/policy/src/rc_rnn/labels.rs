//! What gives a request its label: a model per kind of workload, or a table of labels known
//! beforehand.
//!
//! Source: Ebrahimi et al., RC-RNN, section 5.2.2: LSTM of three layers of 256 units; here whatever
//! recurrent layers the file has. Its heads are `cached` (no, yes) and `duration` (soon, mean,
//! late); its features say which set it was trained on.

use super::features::{CachingLabel, FeatureSet, MAX_FEATURES, StayClass, encoded};
use cachewright_model::{
    Architecture, FloatModel, FloatScratch, FloatState, Int8Model, Int8Scratch, Int8State, Model,
    StoredModel, fingerprint,
};
use cachewright_snapshot::Snapshot;

/// Heads by name with their outputs, in the order of the outputs.
pub const HEADS: [(&str, usize); 2] = [("cached", 2), ("duration", 3)];

#[derive(Clone, Debug, Snapshot)]
enum ModelArithmetic {
    Float {
        #[snapshot(settings)]
        model: FloatModel,
        #[snapshot(settings)]
        scratch: FloatScratch,
        state: FloatState,
    },
    Int8 {
        #[snapshot(settings)]
        model: Int8Model,
        #[snapshot(settings)]
        scratch: Int8Scratch,
        state: Int8State,
    },
}

/// A model and its state.
#[derive(Clone, Debug, Snapshot)]
pub struct CachingNetwork {
    #[snapshot(settings)]
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

/// How a file of labels begins.
pub const MAGIC: &[u8] = b"cachewright rc-rnn labels 1\n";

/// The labels.
///
/// One label per request, in order, for rows of tables that bound what training can reach: an
/// oracle's own labels through the queues of `rc-rnn`, and those of a model that was given them. No
/// policy to use: the labels of an oracle know the future. A file is [`MAGIC`] and one byte per
/// read or write: 0 not cached, 1 soon, 2 mean, 3 late.
#[derive(Clone, Debug, Default)]
pub struct LabelTable {
    labels: Vec<u8>,
}

impl LabelTable {
    /// Reads a file. Errors: a byte that is no label, with its place.
    pub fn load(bytes: &[u8]) -> Result<LabelTable, String> {
        let labels = bytes.strip_prefix(MAGIC).ok_or("found no file of labels")?;
        match labels.iter().position(|label| *label > 3) {
            Some(at) => Err(format!("label {at}: found {}, expected 0 to 3", labels[at])),
            None => Ok(LabelTable { labels: labels.to_vec() }),
        }
    }

    /// The label of the last of so many requests; nothing behind the end of the file.
    pub fn label(&self, requests: usize) -> Option<CachingLabel> {
        self.labels.get(requests.checked_sub(1)?).map(|label| decoded(*label))
    }
}

/// The file of these labels.
pub fn file(labels: impl IntoIterator<Item = CachingLabel>) -> Vec<u8> {
    MAGIC.iter().copied().chain(labels.into_iter().map(byte_of)).collect()
}

/// A label as a byte of a file.
fn byte_of(label: CachingLabel) -> u8 {
    if label.cached { label.duration as u8 + 1 } else { 0 }
}

fn decoded(label: u8) -> CachingLabel {
    let duration = match label {
        0 | 1 => StayClass::Soon,
        2 => StayClass::Mean,
        _ => StayClass::Late,
    };
    CachingLabel { cached: label > 0, duration }
}

/// What gives labels.
#[derive(Snapshot)]
pub(super) enum LabelSource {
    /// A model.
    Network(Box<CachingNetwork>),
    /// Labels known beforehand.
    Table(#[snapshot(settings)] LabelTable),
}

/// The source of labels of one kind of workload.
#[derive(Snapshot)]
pub(super) struct Labeller {
    /// The kind's name.
    #[snapshot(settings)]
    pub name: String,
    /// What gives labels.
    pub source: LabelSource,
    /// Of its file.
    #[snapshot(settings)]
    fingerprint: u64,
}

impl Labeller {
    /// Reads a file of either. Errors: what was found and expected.
    pub fn load(name: &str, bytes: &[u8]) -> Result<Labeller, String> {
        let source = if bytes.starts_with(MAGIC) {
            LabelTable::load(bytes).map(LabelSource::Table)
        } else {
            CachingNetwork::load(bytes).map(|network| LabelSource::Network(Box::new(network)))
        };
        let source = source.map_err(|error| format!("`{name}`: {error}"))?;
        Ok(Labeller { name: name.to_owned(), source, fingerprint: fingerprint(bytes) })
    }

    /// Whether another one has the same name and the same file.
    pub fn is_like(&self, other: &Labeller) -> bool {
        self.name == other.name && self.fingerprint == other.fingerprint
    }

    /// Forgets what the requests before did to its state; a table goes by their number.
    pub fn reset(&mut self) {
        if let LabelSource::Network(network) = &mut self.source {
            network.reset();
        }
    }
}

/// The models; see the top of the file.
#[derive(Default, Snapshot)]
pub(super) struct LabelModels {
    #[snapshot(each)]
    models: Vec<Labeller>,
    /// Which model is in use.
    current: usize,
    /// How often the model was changed, modulo 2^16.
    changes: u16,
    /// Requests so far.
    requests: usize,
    /// When the last request arrived, and until when no model is there.
    now_ns: Option<u64>,
    loaded_ns: u64,
}

impl LabelModels {
    /// Takes models in place of those before; of the first ones the first is in use. One with the
    /// same name and file as before keeps its state. Loading another one takes `load_ns`.
    ///
    /// # Errors
    ///
    /// A model that cannot be read, none at all, or none for the workload that runs. The models
    /// before stay.
    pub fn load(&mut self, models: &[(String, Vec<u8>)], load_ns: u64) -> Result<(), String> {
        let load = |(name, bytes): &(String, Vec<u8>)| Labeller::load(name, bytes);
        let models: Result<Vec<Labeller>, String> = models.iter().map(load).collect();
        let mut models = models?;
        let current = self.place_in(&models)?;
        let before = self.models.get(self.current);
        let changes = before.is_some_and(|before| !before.is_like(&models[current]));
        for model in &mut models {
            if let Some(known) = self.models.iter_mut().find(|known| known.is_like(model)) {
                std::mem::swap(known, model);
            }
        }
        (self.models, self.current) = (models, current);
        if changes {
            self.begin(load_ns);
        }
        Ok(())
    }

    /// Which of other models goes on for the one in use.
    fn place_in(&self, models: &[Labeller]) -> Result<usize, String> {
        if models.is_empty() {
            return Err("found no model, expected one or more".to_owned());
        }
        let Some(before) = self.models.get(self.current) else { return Ok(0) };
        models.iter().position(|model| model.name == before.name).ok_or_else(|| {
            let found: Vec<String> =
                models.iter().map(|model| format!("`{}`", model.name)).collect();
            let (found, name) = (found.join(", "), &before.name);
            format!("found models of {found}, expected one of `{name}`, which runs now")
        })
    }

    /// Passes a request that arrived at that time; called before anything else about it.
    pub fn pass(&mut self, time_ns: u64) {
        self.now_ns = Some(time_ns);
        self.requests += 1;
    }

    /// Uses the model of this kind from a zero state, once it is loaded; a kind without a model
    /// changes nothing.
    pub fn change(&mut self, kind: &str, load_ns: u64) {
        let Some(next) = self.models.iter().position(|model| model.name == kind) else { return };
        if next != self.current {
            self.models[next].reset();
            self.current = next;
            self.begin(load_ns);
        }
    }

    /// Another model takes over, once it is loaded.
    fn begin(&mut self, load_ns: u64) {
        self.changes = self.changes.wrapping_add(1);
        if let Some(now_ns) = self.now_ns {
            self.loaded_ns = now_ns.saturating_add(load_ns);
        }
    }

    /// The model in use, if any is there, and the requests so far.
    #[inline(always)]
    pub fn current(&mut self) -> Option<(&mut Labeller, usize)> {
        self.models.get_mut(self.current).map(|labeller| (labeller, self.requests))
    }

    /// How often the model was changed, modulo 2^16.
    #[inline(always)]
    pub fn changes(&self) -> u16 {
        self.changes
    }

    /// Whether a model is being loaded.
    #[inline(always)]
    pub fn loads(&self) -> bool {
        self.now_ns.is_some_and(|now_ns| now_ns < self.loaded_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_other_bytes_are_refused() {
        let all = [0, 1, 2, 3].map(decoded);
        let table = LabelTable::load(&file(all)).unwrap_or_default();
        assert_eq!(table.label(0), None, "no request has passed");
        for (before, label) in all.into_iter().enumerate() {
            assert_eq!(table.label(before + 1), Some(label));
        }
        assert_eq!(table.label(all.len() + 1), None, "behind the end");
        let bad = [MAGIC, &[0, 4]].concat();
        assert_eq!(
            LabelTable::load(&bad).err().as_deref(),
            Some("label 1: found 4, expected 0 to 3")
        );
    }
}
