//! What groups were worth after they were observed, and the model that learns it.
//!
//! For: `gl-cache`. Must never know: blocks, which group leaves. A row holds the inputs of a group
//! at one time; its utility grows by one over the accesses since then each time that a block of the
//! group is used for the first time (Yang et al., FAST'23, section 3.2). Utilities are per cached
//! block, so that they do not shrink with the capacity.

use super::group_list::Group;
use cachewright_model::learn::{BoostedTrees, BoostingSettings};
use cachewright_types::Seed;

/// Inputs of the model: age, hits, active blocks, miss ratio, merges, blocks.
pub const INPUTS: usize = 6;
/// The fewest rows that are learned.
const FEWEST_ROWS: usize = 32;

/// The rows of one interval.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    inputs: Vec<f32>,
    /// Per row when it was made.
    times: Vec<u32>,
    utilities: Vec<f32>,
}

impl Observations {
    /// Observes a group from now on; returns the row.
    pub fn observe(&mut self, group: &Group, now: u32) -> u32 {
        append_inputs(group, now, &mut self.inputs);
        self.times.push(now);
        self.utilities.push(0.0);
        self.times.len() as u32 - 1
    }

    /// Whether a block used last at `used` was not used since a row was made.
    #[inline(always)]
    pub fn waits(&self, row: u32, used: u32) -> bool {
        (used.wrapping_sub(self.times[row as usize]) as i32) <= 0
    }

    /// A block that waited is used now.
    #[inline(always)]
    pub fn count_use(&mut self, row: u32, now: u32, capacity: u32) {
        let accesses = now.wrapping_sub(self.times[row as usize]).max(1);
        self.utilities[row as usize] += capacity as f32 / accesses as f32;
    }

    /// A model of the rows, if there are enough; they are gone then.
    pub fn learn(&mut self, trees: usize, seed: Seed) -> Option<BoostedTrees> {
        let enough = self.times.len() >= FEWEST_ROWS;
        let settings = BoostingSettings { trees, ..Default::default() };
        let model = enough
            .then(|| BoostedTrees::fit(INPUTS, &self.inputs, &self.utilities, &settings, seed));
        self.inputs.clear();
        self.times.clear();
        self.utilities.clear();
        model
    }
}

/// Appends the inputs of a group.
pub fn append_inputs(group: &Group, now: u32, inputs: &mut Vec<f32>) {
    inputs.extend([
        now.wrapping_sub(group.created) as f32,
        group.hits as f32,
        group.active as f32,
        group.miss_ratio,
        group.merges as f32,
        group.blocks.len() as f32,
    ]);
}
