//! The table of partitioners: names, sentences, sources, needs and settings of each, read by all
//! other code. A new partitioner is one file and one line in `partitioners!` below.

use crate::Partitioner;
use cachewright_curve::signal::SignalSet;
use cachewright_types::declare::Declared;
use cachewright_types::registry::{Needed, settings, unknown};
use cachewright_types::{RegistryError, Seed, Value};

/// What a partitioner needs beyond counts of accesses and hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Counts of each interval: the partitioner divides again while the cache runs.
    Interval,
    /// A miss-ratio curve of each tenant's last interval.
    Curve,
    /// A goal per tenant.
    Goal,
    /// Response times, where a goal is one.
    GoalResponses,
    /// A trained model per tenant.
    Model,
    /// A trained model of all tenants together.
    JointModel,
    /// Features of each tenant's requests, step by step.
    Features,
    /// Reuse distances of each tenant's writes.
    Reuse,
    /// Response times of each tenant's hits and misses.
    Prices,
    /// Knowledge of the next interval.
    Future,
    /// Busy channels of a drive at each write request.
    Channels,
}

/// What a run must provide to meet a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provision {
    /// Every run provides it.
    Any,
    /// A goal for at least one tenant.
    Goal,
    /// A model file for each tenant.
    TenantModels,
    /// A model file for all tenants together.
    JointModel,
    /// Devices, which give every request a response time.
    Devices,
    /// Devices, and requests that arrive at the times of the trace.
    OpenLoopDevices,
    /// A drive with its own data cache.
    DriveCache,
}

/// The facts of a need.
struct NeedFacts {
    /// The word in tables.
    word: &'static str,
    /// The noun phrase in errors.
    phrase: &'static str,
    /// What a run must provide.
    provision: Provision,
    /// The signals measured for it.
    signals: SignalSet,
}

impl Need {
    /// One line per need: a new need is a variant and a line here.
    fn facts(self) -> NeedFacts {
        let none = SignalSet::NONE;
        let facts =
            |word, phrase, provision, signals| NeedFacts { word, phrase, provision, signals };
        let signal = |word, phrase, signals| facts(word, phrase, Provision::Any, signals);
        let plain = |word, phrase, provision| facts(word, phrase, provision, none);
        match self {
            Need::Interval => plain("interval", "counts per interval", Provision::Any),
            Need::Curve => {
                signal("curve", "a curve per tenant", SignalSet { curves: true, ..none })
            }
            Need::Goal => plain("goal", "a goal per tenant", Provision::Goal),
            Need::GoalResponses => {
                let signals = SignalSet { prices: true, ..none };
                signal("responses of goals", "response times where a goal is one", signals)
            }
            Need::Model => plain("model", "a trained model per tenant", Provision::TenantModels),
            Need::JointModel => {
                plain("joint model", "a trained model of all tenants", Provision::JointModel)
            }
            Need::Features => {
                let signals = SignalSet { steps: true, ..none };
                signal("features", "features of the requests in each step", signals)
            }
            Need::Reuse => {
                let signals = SignalSet { reuse: true, ..none };
                signal("write reuse", "reuse distances of writes", signals)
            }
            Need::Prices => {
                let signals = SignalSet { prices: true, ..none };
                facts("response times", "response times", Provision::Devices, signals)
            }
            Need::Future => {
                plain("future", "response times of later intervals", Provision::OpenLoopDevices)
            }
            Need::Channels => {
                plain("drive's channels", "the channels of a drive", Provision::DriveCache)
            }
        }
    }

    /// The word used in tables.
    pub fn word(self) -> &'static str {
        self.facts().word
    }

    /// What a run must provide to meet the need.
    pub fn provision(self) -> Provision {
        self.facts().provision
    }

    /// The signals that a control loop measures for these needs.
    pub fn signals(needs: &[Need]) -> SignalSet {
        needs.iter().fold(SignalSet::NONE, |set, need| set.union(need.facts().signals))
    }
}

impl Needed for Need {
    fn phrase(self) -> &'static str {
        self.facts().phrase
    }
}

/// What a user can know of one partitioner without reading code.
pub type Entry = cachewright_types::registry::Entry<Need>;

/// A partitioner in the registry.
pub trait Registered: Partitioner + Sized + 'static {
    /// Its settings, with defaults as in its source.
    type Settings: Declared;
    /// Its facts.
    const ENTRY: Entry;
    /// A partitioner of `tenants` tenants before its first interval.
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
    crate::fixed::SharedPool,
    crate::fixed::Equal,
    crate::fixed::Static,
    crate::fixed::Scheduled,
    crate::hull::HullShares,
    crate::dp::Dp,
    crate::dp::DpResponse,
    crate::hare::Hare,
    crate::memshare::Memshare,
    crate::robinhood::RobinHood,
    crate::costpi::CostPi,
    crate::justitia::Justitia,
    crate::soft_qos::SoftQos,
    crate::soft_qos_x::SoftQosX,
    crate::icache::ICache,
    crate::icache_x::ICacheX,
    crate::mlcache::MlCache,
    crate::opt::Opt,
}
