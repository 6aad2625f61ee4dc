//! What stands in the registry of partitioners: needs, facts, and the trait of an entry.
//!
//! For: every partitioner and the table that lists them. Must never know: any partitioner.

use crate::Partitioner;
use cachewright_types::Seed;
use cachewright_types::declare::Declared;

/// What a partitioner needs beyond counts of accesses and hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Counts of each interval that has ended: it divides anew while the cache runs.
    Interval,
    /// A miss-ratio curve of each tenant's last interval.
    Curve,
    /// A goal per tenant.
    Goal,
    /// A trained model per tenant.
    Model,
    /// A trained model of all tenants together.
    JointModel,
    /// What each tenant asked for, step by step.
    Features,
    /// Distances at which each tenant's writes came back.
    Reuse,
    /// What each tenant's hits and misses cost.
    Prices,
    /// Knowledge of the next interval.
    Future,
    /// How many channels of a drive are taken at each write request.
    Channels,
}

impl Need {
    /// The word used in tables and errors.
    pub fn word(self) -> &'static str {
        match self {
            Need::Interval => "interval",
            Need::Curve => "curve",
            Need::Goal => "goal",
            Need::Model => "model",
            Need::JointModel => "joint model",
            Need::Features => "features",
            Need::Reuse => "write reuse",
            Need::Prices => "response times",
            Need::Future => "future",
            Need::Channels => "drive's channels",
        }
    }

    /// What is needed, in the words of a refusal.
    pub fn what(self) -> &'static str {
        match self {
            Need::Interval => "counts per interval",
            Need::Curve => "a curve per tenant",
            Need::Goal => "a goal per tenant",
            Need::Model => "a trained model per tenant",
            Need::JointModel => "a trained model of all tenants",
            Need::Features => "what tenants ask for in each step",
            Need::Reuse => "the distances at which writes come back",
            Need::Prices => "response times",
            Need::Future => "the response times of intervals to come",
            Need::Channels => "the channels of a drive",
        }
    }
}

/// What a user can know of one partitioner without reading code.
pub type Entry = cachewright_types::registry::Entry<Need>;

/// A partitioner that stands in the registry.
pub trait Registered: Partitioner + Sized + 'static {
    /// Its settings, with defaults as in its source.
    type Settings: Declared;
    /// Its facts.
    const ENTRY: Entry;
    /// A partitioner of `tenants` tenants that has seen nothing.
    fn new(settings: &Self::Settings, tenants: usize, seed: Seed) -> Self;
}
