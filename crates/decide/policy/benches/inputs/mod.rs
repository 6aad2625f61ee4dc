//! What policies are measured with: streams of accesses, what is known of their future, a model.
//!
//! For: the bench `policies` and the example `rc_rnn_speed`. Must never know: any policy but the
//! shape of `rc-rnn`'s model. Units: blocks; a benefit has none.

#![allow(dead_code, reason = "the bench and the example use different parts")]

use cachewright_model::{
    Architecture, Description, Head, ModelError, NetworkKind, StoredModel, quantise,
};
use cachewright_policy::rc_rnn::features::FeatureSet;
use cachewright_policy::rc_rnn::model::HEADS;
use cachewright_policy::{FutureColumn, NEVER};
use cachewright_types::{BlockId, Rng, Seed};

/// Layers of `rc-rnn`'s model as published.
pub const PUBLISHED: &[usize] = &[256, 256, 256];

/// A stream of accesses and what is known of each one's future.
pub struct Stream {
    /// The blocks accessed, numbered by first appearance.
    pub blocks: Vec<BlockId>,
    /// How many different blocks there are.
    pub distinct: usize,
    /// Position of the next access to the same block.
    pub next_uses: FutureColumn,
    /// One over the distance to that access; 0 without one.
    pub benefits: FutureColumn,
}

impl Stream {
    /// Ranks drawn with probability proportional to 1/rank.
    pub fn zipf(distinct: usize, count: usize) -> Stream {
        let mut sum = 0.0;
        let cumulative: Vec<f64> = (1..=distinct)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        let mut rng = Seed(42).derive("zipf").rng();
        Stream::numbered(distinct, count, || {
            let target = rng.unit() * sum;
            cumulative.partition_point(|below| *below <= target)
        })
    }

    /// Half of the accesses go to 1.5 times `capacity` blocks, half to 20 times as many: with a
    /// cache of that capacity four of five miss.
    pub fn misses(capacity: usize, count: usize) -> Stream {
        let mut rng = Seed(42).derive("misses").rng();
        let (few, many) = ((capacity * 3 / 2) as u64, (capacity * 20) as u64);
        Stream::numbered(capacity * 20, count, || {
            let span = if rng.below(2) == 0 { few } else { many };
            rng.below(span) as usize
        })
    }

    fn numbered(names: usize, count: usize, mut draw: impl FnMut() -> usize) -> Stream {
        let mut ids: Vec<Option<BlockId>> = vec![None; names];
        let mut distinct = 0;
        let mut id_of = |name: usize| {
            *ids[name.min(names - 1)].get_or_insert_with(|| {
                distinct += 1;
                BlockId(distinct - 1)
            })
        };
        let blocks: Vec<BlockId> = (0..count).map(|_| id_of(draw())).collect();
        let distinct = distinct as usize;
        let next_uses = next_uses(&blocks, distinct);
        let benefit = |(position, next): (usize, &u32)| match *next {
            NEVER => 0.0,
            next => 1.0 / (next as usize - position) as f32,
        };
        let benefits = next_uses.iter().enumerate().map(benefit).collect();
        Stream {
            blocks,
            distinct,
            next_uses: FutureColumn::NextUse(next_uses),
            benefits: FutureColumn::Benefit(benefits),
        }
    }
}

fn next_uses(blocks: &[BlockId], distinct: usize) -> Vec<u32> {
    let mut seen = vec![NEVER; distinct];
    let mut next = vec![0; blocks.len()];
    for (position, block) in blocks.iter().enumerate().rev() {
        next[position] = std::mem::replace(&mut seen[block.index()], position as u32);
    }
    next
}

/// A model of `rc-rnn` with random weights and so many units in each layer.
pub fn random_model(hidden: &[usize], rng: &mut Rng) -> Result<StoredModel, ModelError> {
    let features = FeatureSet::Reuse.features();
    let head = |(name, outputs): (&str, usize)| Head { name: name.to_owned(), outputs };
    let mut description = Description::plain(Architecture {
        kind: NetworkKind::Lstm,
        inputs: features.len(),
        hidden: hidden.to_vec(),
        heads: HEADS.map(head).to_vec(),
    });
    description.features = features.iter().map(|name| (*name).to_owned()).collect();
    let draw = |(name, shape): (String, Vec<usize>), rng: &mut Rng| {
        let bound = 1.0 / (shape[shape.len() - 1] as f64).sqrt();
        let count = shape.iter().product();
        (name, (0..count).map(|_| ((2.0 * rng.unit() - 1.0) * bound) as f32).collect())
    };
    let shapes = description.architecture.tensors();
    let weights = shapes.into_iter().map(|tensor| draw(tensor, rng)).collect();
    let step = |rng: &mut Rng| features.iter().map(|_| (8.0 * rng.unit()) as f32).collect();
    let steps = (0..16).map(|_| step(rng)).collect();
    StoredModel::float(description, weights, steps)
}

/// The same model with weights of one byte.
pub fn in_bytes(stored: &StoredModel) -> Result<StoredModel, ModelError> {
    quantise(stored, &[&stored.test_vector.inputs.concat()])
}
