//! The table of policies: one line per policy, read by everything else.
//!
//! For: names, sentences, sources, needs and settings of every policy, and static dispatch by name.
//! Must never know: who asks. Adding a policy is one file and one line in `policies!` below.

use crate::Policy;
use crate::foreign::{Foreign, is_foreign};
use cachewright_types::declare::Declared;
use cachewright_types::registry::{settings, unknown};
use cachewright_types::{RegistryError, Seed, Value};

/// What a policy needs beyond the accesses themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The position of each block's next access (a pre-pass over the whole trace).
    Future,
    /// What each access is worth to a cache that knows the future: as bits of an `f32` where others
    /// are told the next access.
    Benefit,
    /// Whole requests, through [`Policy::asked`].
    Requests,
    /// Trained models, through [`Policy::learn`].
    Model,
    /// Code outside the workspace, through [`Policy::attach`].
    Code,
}

impl Need {
    /// The word used in tables.
    pub fn word(self) -> &'static str {
        match self {
            Need::Future => "future",
            Need::Benefit => "benefit",
            Need::Requests => "requests",
            Need::Model => "model",
            Need::Code => "code",
        }
    }
}

/// What a user can know of one policy without reading code.
pub type Entry = cachewright_types::registry::Entry<Need>;

/// A policy that stands in the registry.
pub trait Registered: Policy + Sized + 'static {
    /// Its settings, with defaults as in its source.
    type Settings: Declared;
    /// Its facts.
    const ENTRY: Entry;
    /// An empty cache of `capacity_blocks`.
    fn new(capacity_blocks: u32, settings: &Self::Settings, seed: Seed) -> Self;
}

/// Code that runs once the name of a policy has become its type.
pub trait PolicyVisitor {
    /// What the code returns.
    type Output;
    /// Called with the policy's type and checked settings.
    fn visit<P: Registered>(self, settings: P::Settings) -> Self::Output;
}

macro_rules! policies {
    ($($policy:ty),* $(,)?) => {
        /// The policies of the workspace.
        mod table {
            use super::{Entry, Registered};
            cachewright_types::registry!("policy": $($policy),*);
        }

        /// Runs `visitor` with the type registered as `name` and its checked settings.
        pub fn visit<V: PolicyVisitor>(
            name: &str,
            pairs: &[(String, Value)],
            visitor: V,
        ) -> Result<V::Output, RegistryError> {
            $(if <$policy as Registered>::ENTRY.name == name {
                let settings = settings("policy", <$policy>::ENTRY.name, pairs)?;
                return Ok(visitor.visit::<$policy>(settings));
            })*
            if is_foreign(name) {
                let settings = settings("policy", <Foreign as Registered>::ENTRY.name, pairs)?;
                return Ok(visitor.visit::<Foreign>(settings));
            }
            Err(unknown("policy", name, &entries()))
        }
    };
}

policies! {
    crate::lru::Lru,
    crate::fifo::Fifo,
    crate::clock::Clock,
    crate::sieve::Sieve,
    crate::lfu::Lfu<false>,
    crate::lfu::Lfu<true>,
    crate::s3_fifo::S3Fifo<false>,
    crate::s3_fifo::S3Fifo<true>,
    crate::arc::Arc,
    crate::larc::Larc,
    crate::two_q::TwoQ,
    crate::lirs::Lirs,
    crate::lirs::LirsLibcachesim,
    crate::smq::Smq,
    crate::oc_smq::OcSmq,
    crate::access_frequency::AccessFrequency,
    crate::reca::Reca,
    crate::rc_rnn::RcRnn,
    crate::rc_x::RcX,
    crate::belady::Belady<false>,
    crate::belady::Belady<true>,
    crate::benefit_oracle::BenefitOracle,
}

/// Makes policies of one kind, of a given capacity and seed.
pub type Maker = Box<dyn Fn(u32, Seed) -> Box<dyn Policy>>;

/// A maker of the policy of this name, for loops that are compiled once for all policies.
pub fn maker(name: &str, pairs: &[(String, Value)]) -> Result<Maker, RegistryError> {
    struct Making;
    impl PolicyVisitor for Making {
        type Output = Maker;
        fn visit<P: Registered>(self, settings: P::Settings) -> Maker {
            Box::new(move |capacity, seed| Box::new(P::new(capacity, &settings, seed)))
        }
    }
    visit(name, pairs, Making)
}

pub use table::{entries, keys, resolved};

/// The entry registered as `name`; one for all policies of code outside, which no table lists.
pub fn entry(name: &str) -> Result<&'static Entry, RegistryError> {
    if is_foreign(name) { Ok(&<Foreign as Registered>::ENTRY) } else { table::entry(name) }
}

/// A policy of any kind, for code that is not hot.
pub fn boxed(
    name: &str,
    pairs: &[(String, Value)],
    capacity_blocks: u32,
    seed: Seed,
) -> Result<Box<dyn Policy>, RegistryError> {
    Ok(maker(name, pairs)?(capacity_blocks, seed))
}
