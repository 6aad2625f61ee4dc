//! The table of partitioners: one line per partitioner, read by everything else.
//!
//! For: names, sentences, sources, needs and settings of every partitioner. Must never know: who
//! asks. Adding a partitioner is one file and one line in `partitioners!` below.

use crate::Partitioner;
use cachewright_types::declare::Declared;
use cachewright_types::registry::{settings, unknown};
use cachewright_types::{RegistryError, Seed, Value};

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

macro_rules! partitioners {
    ($($partitioner:ty),* $(,)?) => {
        cachewright_types::registry!("partitioner": $($partitioner),*);

        /// The partitioner registered as `name`, with `pairs` set over its defaults.
        pub fn boxed(
            name: &str,
            pairs: &[(String, Value)],
            tenants: usize,
            seed: Seed,
        ) -> Result<Box<dyn Partitioner>, RegistryError> {
            $(if <$partitioner as Registered>::ENTRY.name == name {
                let settings = settings("partitioner", <$partitioner>::ENTRY.name, pairs)?;
                return Ok(Box::new(<$partitioner>::new(&settings, tenants, seed)));
            })*
            Err(unknown("partitioner", name, &entries()))
        }
    };
}

partitioners! {
    crate::shared::Shared,
    crate::equal::Equal,
    crate::static_weights::Static,
    crate::hull::HullShares,
    crate::costpi::CostPi,
    crate::justitia::Justitia,
    crate::soft_qos::SoftQos,
    crate::soft_qos_x::SoftQosX,
    crate::icache::ICache,
    crate::icache_x::ICacheX,
    crate::mlcache::MlCache,
    crate::opt::Opt,
}

/// Checks before a run that all that `entry` needs is `provided`.
pub fn check_needs(entry: &Entry, provided: &[Need]) -> Result<(), RegistryError> {
    match entry.needs.iter().find(|need| !provided.contains(need)) {
        Some(need) => {
            Err(RegistryError::Needs { stage: "partitioner", name: entry.name, need: need.what() })
        }
        None => Ok(()),
    }
}
