//! The 18 settings that S4-FIFO chooses among, and the choice.
//!
//! Source: the artifact's `SELECTED_CONFIGS` (analysis/train_xgb_18class.py), which cover the best
//! of 168 for 99 % of its traces; all of them skip the share that its CacheLib predictor does.

use super::features::FEATURES;
use super::tree::TREE;
use cachewright_snapshot::SnapshotValue;

/// The most ghosts of any setting, as a share of the cache.
pub const MOST_GHOSTS: f64 = 6.0;

/// Shares and thresholds of the queues.
#[derive(Clone, Copy, Debug, PartialEq, SnapshotValue)]
pub struct QueueSettings {
    /// Share of the cache in which new blocks start.
    pub small_share: f64,
    /// Ghosts, as a share of the cache.
    pub ghost_share: f64,
    /// Hits in the small queue that promote a block.
    pub promote_hits: u8,
    /// Newest share of the small queue in which hits do not count.
    pub skip_share: f64,
    /// Returns of a ghost that lead to the small queue again.
    pub ghost_hits: u8,
}

const fn settings(
    small_share: f64,
    promote_hits: u8,
    ghost_hits: u8,
    ghost_share: f64,
) -> QueueSettings {
    QueueSettings { small_share, ghost_share, promote_hits, skip_share: 0.25, ghost_hits }
}

/// Small share, hits that promote, returns to the small queue, ghosts.
pub const CHOICES: [QueueSettings; 18] = [
    settings(0.20, 1, 0, 3.0),
    settings(0.05, 1, 0, 0.9),
    settings(0.50, 1, 0, 0.9),
    settings(0.20, 1, 0, 0.9),
    settings(0.05, 2, 0, 6.0),
    settings(0.10, 2, 1, 3.0),
    settings(0.30, 2, 0, 3.0),
    settings(0.05, 2, 0, 3.0),
    settings(0.10, 2, 0, 0.9),
    settings(0.70, 1, 1, 0.9),
    settings(0.20, 1, 1, 0.9),
    settings(0.05, 1, 1, 0.9),
    settings(0.30, 1, 0, 6.0),
    settings(0.20, 2, 0, 0.9),
    settings(0.90, 2, 0, 3.0),
    settings(0.10, 2, 0, 6.0),
    settings(0.30, 2, 1, 3.0),
    settings(0.05, 2, 0, 0.9),
];

/// A node of the tree that chooses; children come later in it.
#[derive(Clone, Copy, Debug)]
pub enum TreeNode {
    /// Goes to one of two nodes.
    Split {
        /// The feature that decides,
        feature: usize,
        /// and the largest value of it that goes to `below`.
        at_most: f32,
        /// The next node up to that value.
        below: usize,
        /// The next node beyond it.
        above: usize,
    },
    /// Takes one of [`CHOICES`].
    Leaf(usize),
}

/// The settings for a workload of these features.
pub fn chosen(features: &[f32; FEATURES]) -> QueueSettings {
    let mut at = 0;
    loop {
        match TREE[at] {
            TreeNode::Leaf(choice) => return CHOICES[choice],
            TreeNode::Split { feature, at_most, below, above } => {
                at = if features[feature] <= at_most { below } else { above };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_ends_at_a_choice_on_every_way() {
        for (at, node) in TREE.iter().enumerate() {
            match *node {
                TreeNode::Leaf(choice) => assert!(choice < CHOICES.len()),
                TreeNode::Split { feature, at_most, below, above } => {
                    assert!(feature < FEATURES && at_most.is_finite());
                    assert!(at < below && below < above && above < TREE.len());
                }
            }
        }
        let most = CHOICES.iter().map(|choice| choice.ghost_share).fold(0.0, f64::max);
        assert!(most <= MOST_GHOSTS);
    }
}
