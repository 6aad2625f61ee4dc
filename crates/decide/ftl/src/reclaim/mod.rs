//! Reclaim: which superblock is cleaned next.
//!
//! For: the seam [`Reclaim`], its registry and the making of a policy by name. Must never know: the
//! mapping, flash, which separation runs. A policy is asked once per victim, so it stands behind a
//! `dyn`; its scan over superblocks is compiled for its own score. Units: pages; ages on the clock
//! of host page writes. Adding a policy is one file and one line in `reclaims!` below.

pub mod adjusted_greedy;
pub mod cost_benefit;
pub mod d_choices;
pub mod death_rate;
pub mod fifo;
pub mod greedy;

use crate::layer::ShortLived;
use crate::registry::Entry;
use crate::superblocks::{Block, CleaningOrder, Superblocks};
use crate::{FtlError, Geometry};
use cachewright_types::declare::Declared;
use cachewright_types::registry::{settings, unknown};
use cachewright_types::{Seed, Value};

/// What a policy may look at when it picks a victim.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// All superblocks; only sealed ones may be picked.
    pub blocks: &'a Superblocks,
    /// The clock.
    pub clock: u64,
    /// Streams to pick from, a bit each.
    pub streams: u64,
    /// Invalid pages that a victim must have at least.
    pub min_invalid: u32,
    /// What the separation knows of its classes.
    pub short_lived: ShortLived,
}

impl<'a> Round<'a> {
    /// A round over all superblocks, without conditions.
    pub fn over(blocks: &'a Superblocks, clock: u64) -> Round<'a> {
        let short_lived = ShortLived::default();
        Round { blocks, clock, streams: u64::MAX, min_invalid: 0, short_lived }
    }

    /// Whether one superblock comes before another of equal score. The order is that of a hash
    /// table of 64-bit numbers in Java, where SepBIT's simulator keeps them, so that its counts are
    /// met.
    #[cold]
    fn leads(&self, first: u32, second: u32) -> bool {
        let buckets = (u64::from(self.blocks.len()) * 4).div_ceil(3).next_power_of_two().max(16);
        let rank = |block: u32| {
            let number = self.blocks.get(block).number;
            ((number ^ number >> 16) & (buckets - 1), number)
        };
        rank(first) < rank(second)
    }

    /// Whether a superblock may be picked in this round.
    #[inline(always)]
    pub fn admits(&self, block: &Block) -> bool {
        block.sealed && block.invalid >= self.min_invalid && self.streams & block.stream.mask() != 0
    }
}

/// A policy that picks victims.
pub trait Reclaim: Send {
    /// The worth of cleaning a superblock; the highest above 0 is cleaned.
    fn score(&self, block: &Block, round: &Round<'_>) -> f64;

    /// Called once, before the first round, with the data pages of a full superblock.
    fn prepare(&mut self, _data_pages: u32) {}

    /// Bytes held beside the policy itself.
    fn held_bytes(&self) -> usize {
        0
    }

    /// What must be kept in order, once prepared; all rounds will have this `min_invalid`.
    fn order(&self, _min_invalid: u32) -> CleaningOrder {
        CleaningOrder::None
    }

    /// The victim, or nothing if no superblock is worth it.
    fn choose(&mut self, round: &Round<'_>) -> Option<u32> {
        best(self, round)
    }
}

/// The highest score above 0 so far, and whose it is.
#[derive(Clone, Copy, Debug, Default)]
struct BestVictim {
    score: f64,
    victim: Option<u32>,
}

impl BestVictim {
    /// Looks at one superblock that may be picked.
    #[inline(always)]
    fn consider<R: Reclaim + ?Sized>(&mut self, policy: &R, block: &Block, round: &Round<'_>) {
        let score = policy.score(block, round);
        let leads = || self.victim.is_some_and(|other| round.leads(block.id, other));
        if score > self.score || score == self.score && leads() {
            *self = BestVictim { score, victim: Some(block.id) };
        }
    }
}

/// The superblock of the highest score above 0, by a look at every sealed one.
#[inline(always)]
pub fn best<R: Reclaim + ?Sized>(policy: &R, round: &Round<'_>) -> Option<u32> {
    let mut best = BestVictim::default();
    for id in 0..round.blocks.len() {
        let block = round.blocks.get(id);
        if round.admits(&block) {
            best.consider(policy, &block, round);
        }
    }
    best.victim
}

/// The same for a policy that uses [`CleaningOrder::ByInvalid`] and scores no superblock above its
/// share of invalid pages. Only superblocks whose share reaches the best score are compared.
#[inline(always)]
pub fn best_by_invalid<R: Reclaim + ?Sized>(policy: &R, round: &Round<'_>) -> Option<u32> {
    let mut best = BestVictim::default();
    for id in round.blocks.by_invalid(round.min_invalid.max(1)) {
        let block = round.blocks.get(id);
        if block.invalid_share() < best.score {
            break;
        }
        if round.admits(&block) {
            best.consider(policy, &block, round);
        }
    }
    best.victim
}

/// A policy that stands in the registry.
pub trait Registered: Reclaim + Sized + 'static {
    /// Its settings, with defaults as in its source.
    type Settings: Declared;
    /// Its facts.
    const ENTRY: Entry;
    /// The policy for an empty drive.
    fn new(geometry: &Geometry, settings: &Self::Settings, seed: Seed) -> Self;
}

/// A policy with the name it is registered under.
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// The settings given to it.
    pub pairs: Vec<(String, Value)>,
    /// The policy.
    pub policy: Box<dyn Reclaim>,
}

macro_rules! reclaims {
    ($($policy:ty),* $(,)?) => {
        cachewright_types::registry!("reclaim": $($policy),*);

        /// The policy registered as `name`, with its checked settings.
        pub fn by_name(
            name: &str,
            pairs: &[(String, Value)],
            geometry: &Geometry,
            seed: Seed,
        ) -> Result<Named, FtlError> {
            $(if <$policy as Registered>::ENTRY.name == name {
                let name = <$policy as Registered>::ENTRY.name;
                let settings = settings("reclaim", name, pairs)?;
                let policy = Box::new(<$policy as Registered>::new(geometry, &settings, seed));
                return Ok(Named { name, pairs: pairs.to_vec(), policy });
            })*
            Err(unknown("reclaim", name, &entries()).into())
        }
    };
}

reclaims! {
    greedy::Greedy,
    cost_benefit::CostBenefit,
    fifo::FifoReclaim,
    adjusted_greedy::AdjustedGreedy,
    d_choices::DChoices,
    death_rate::DeathRate,
}
