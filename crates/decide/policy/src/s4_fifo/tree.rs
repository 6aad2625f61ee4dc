//! The tree that chooses the settings of S4-FIFO: the output of `examples/train_s4_fifo.rs`.

use super::settings::TreeNode::{self, Leaf};

/// Goes to node `below` if the feature is at most this, else to node `above`.
const fn split(feature: usize, at_most: f32, below: usize, above: usize) -> TreeNode {
    TreeNode::Split { feature, at_most, below, above }
}

/// From the root on.
pub const TREE: [TreeNode; 39] = [
    split(65, 0.09006666, 1, 16),
    split(67, 0.47661227, 2, 11),
    split(65, 0.06463991, 3, 10),
    split(70, 0.74662244, 4, 9),
    split(70, 0.2111071, 5, 6),
    Leaf(11),
    split(38, 0.036494598, 7, 8),
    Leaf(7),
    Leaf(1),
    Leaf(7),
    Leaf(3),
    split(70, 0.76486266, 12, 13),
    Leaf(11),
    split(35, 0.050110877, 14, 15),
    Leaf(5),
    Leaf(1),
    split(67, 0.48553103, 17, 34),
    split(38, 0.0148086995, 18, 23),
    split(12, 0.00029437477, 19, 20),
    Leaf(15),
    split(42, 0.02856535, 21, 22),
    Leaf(6),
    Leaf(14),
    split(39, 0.037999988, 24, 29),
    split(43, 0.06690877, 25, 28),
    split(51, 0.0354551, 26, 27),
    Leaf(6),
    Leaf(0),
    Leaf(2),
    split(0, 0.101924434, 30, 31),
    Leaf(16),
    split(65, 0.18659657, 32, 33),
    Leaf(3),
    Leaf(15),
    split(39, 0.04208218, 35, 36),
    Leaf(13),
    split(69, 0.77634966, 37, 38),
    Leaf(15),
    Leaf(5),
];
