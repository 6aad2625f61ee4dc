//! What caching models learn from: each request's features beside what an oracle does with it.
//!
//! For: the rows of `rc-rnn`, found by the code that finds them live, with the oracle's label of
//! the request before in place of the model's own. Must never know: models, how anyone learns. What
//! is remembered of blocks goes with the stack's capacity, as it does live. Source: Ebrahimi et
//! al., RC-RNN, section 5.2.2. Units: bytes, nanoseconds.

use super::{Duration, LabelOptions, Labels, labelled};
use crate::ExperimentError;
use crate::progress::OnProgress;
use cachewright_policy::rc_rnn::features::{CachingLabel, FeatureSet, FeatureStream, StayClass};
use cachewright_policy::rc_rnn::replayed;
use cachewright_system::Recording;
use cachewright_system::recording::{LAST, TRIM, WRITE};
use cachewright_types::BlockId;
use std::path::Path;

// Flags go from one to the other as they are.
const _: () = assert!(WRITE == replayed::WRITE && LAST == replayed::LAST && TRIM == replayed::TRIM);

/// Features and labels of each read and write of a workload, in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingSet {
    /// What the oracle does.
    pub labels: Labels,
    /// The features.
    pub set: FeatureSet,
    /// Rows of features, one after another.
    pub rows: Vec<f32>,
    /// The blocks asked for, and [`cachewright_system::recording`]'s flags of each: what a replay
    /// of labels needs.
    pub blocks: Vec<u32>,
    /// See `blocks`.
    pub flags: Vec<u8>,
}

/// Asks the oracle about every request of a stack's only tenant and finds its features; `features`
/// is the name of a set. Errors: no such set, and those of [`super::labels`].
pub fn training_set(
    text: &str,
    origin: &Path,
    options: &LabelOptions,
    features: &str,
    progress: OnProgress<'_>,
) -> Result<TrainingSet, ExperimentError> {
    let set = FeatureSet::ALL.into_iter().find(|set| set.name() == features);
    let set = set.ok_or_else(|| {
        let names = FeatureSet::ALL.map(FeatureSet::name).join(", ");
        let message = format!("`features`: found `{features}`, expected {names}");
        ExperimentError::spec(origin, message)
    })?;
    let (labels, recording) = labelled(text, origin, options, progress)?;
    let rows = rows(&recording, &labels, set);
    Ok(TrainingSet {
        labels,
        set,
        rows,
        blocks: recording.ids.into_vec(),
        flags: recording.flags.into_vec(),
    })
}

impl TrainingSet {
    /// The labels as the policy takes them.
    pub fn caching_labels(&self) -> Vec<CachingLabel> {
        (0..self.labels.cached.len()).map(|index| label(&self.labels, index)).collect()
    }
}

fn rows(recording: &Recording, labels: &Labels, set: FeatureSet) -> Vec<f32> {
    let mut stream = FeatureStream::new(labels.capacity_blocks);
    stream.memory_mut().reserve_ids(recording.distinct as usize);
    let mut rows = Vec::with_capacity(labels.cached.len() * set.features().len());
    let (mut previous, mut labelled) = (CachingLabel::default(), 0);
    for (request, time_ns) in recording.times_ns().iter().enumerate() {
        let accesses = recording.accesses_of(request);
        let block = |index: usize| BlockId(recording.ids[index]);
        let Some(info) = recording.request_info(request, *time_ns) else {
            accesses.for_each(|index| stream.memory_mut().forget(block(index)));
            continue;
        };
        let features = stream.request(set, &info, block(accesses.start), previous);
        rows.extend(&features[..set.features().len()]);
        for index in accesses {
            stream.memory_mut().note(block(index), recording.flags[index] & WRITE != 0);
        }
        previous = label(labels, labelled);
        labelled += 1;
    }
    rows
}

/// The oracle's label of a request.
fn label(labels: &Labels, index: usize) -> CachingLabel {
    let duration = match labels.duration.get(index) {
        Some(Duration::Soon) => StayClass::Soon,
        Some(Duration::Late) => StayClass::Late,
        _ => StayClass::Mean,
    };
    CachingLabel { cached: labels.cached.get(index).copied().unwrap_or(false), duration }
}
