//! The table of policies: one line per policy, read by everything else.
//!
//! For: names, sentences, sources, needs and settings of every policy, and static dispatch by name.
//! Adding a policy is one file and one line in `policies!` below.

use crate::Policy;
use crate::foreign::{Foreign, is_foreign};
use cachewright_types::declare::Declared;
use cachewright_types::registry::{Needed, Resolved, settings, unknown};
use cachewright_types::{RegistryError, Seed, Value, choices};
pub use table::{entries, keys};

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
                return Ok(<$policy as Registered>::accept(settings, visitor));
            })*
            if is_foreign(name) {
                let settings = settings("policy", <Foreign as Registered>::ENTRY.name, pairs)?;
                return Ok(visitor.visit::<Foreign>(settings));
            }
            Err(with_new_name(unknown("policy", name, &entries())))
        }
    };
}

policies! {
    crate::lru::Lru,
    crate::fifo::Fifo,
    crate::fifo::Clock,
    crate::sieve::Sieve,
    crate::lfu::Lfu<false>,
    crate::s3_fifo::S3Fifo,
    crate::s4_fifo::S4Fifo,
    crate::arc::Arc,
    crate::larc::Larc,
    crate::two_q::TwoQ,
    crate::slru::Slru,
    crate::w_tiny_lfu::WTinyLfu,
    crate::lhd::Lhd,
    crate::cacheus::Cacheus,
    crate::merlin::Merlin,
    crate::clock2q_plus::Clock2QPlus,
    crate::mq::Mq,
    crate::cachesack::CacheSack,
    crate::baleen::Baleen,
    crate::lrb::Lrb,
    crate::three_l_cache::ThreeLCache,
    crate::gl_cache::GlCache,
    crate::lirs::Lirs,
    crate::smq::Smq,
    crate::oc_smq::OcSmq,
    crate::access_frequency::AccessFrequency,
    crate::reca::Reca,
    crate::rc_rnn::RcRnn,
    crate::rc_x::RcX,
    crate::duel_x::DuelX,
    crate::guarded::Guarded,
    crate::belady::Belady<false>,
    crate::belady::Belady<true>,
    crate::benefit_oracle::BenefitOracle,
}

/// Makes policies of one kind, of a given capacity and seed.
pub type PolicyMaker = Box<dyn Fn(u32, Seed) -> Box<dyn Policy> + Send + Sync>;

/// A maker of the policy of this name, for loops that are compiled once for all policies.
pub fn maker(name: &str, pairs: &[(String, Value)]) -> Result<PolicyMaker, RegistryError> {
    struct MakePolicy;
    impl PolicyVisitor for MakePolicy {
        type Output = PolicyMaker;
        fn visit<P: Registered>(self, settings: P::Settings) -> PolicyMaker {
            Box::new(move |capacity, seed| Box::new(P::new(capacity, &settings, seed)))
        }
    }
    visit(name, pairs, MakePolicy)
}

/// The entry registered as `name`; one for all policies of code outside, which no table lists.
pub fn entry(name: &str) -> Result<&'static Entry, RegistryError> {
    if is_foreign(name) {
        return Ok(&<Foreign as Registered>::ENTRY);
    }
    table::entry(name).map_err(with_new_name)
}

/// Every setting of a policy under `pairs`. Errors: no such policy; a setting is refused.
pub fn resolved(name: &str, pairs: &[(String, Value)]) -> Result<Resolved, RegistryError> {
    table::resolved(name, pairs).map_err(with_new_name)
}

/// Names that are settings of another policy now.
const NOW_SETTINGS: [(&str, &str); 3] = [
    ("lfu-aging", r#"{ name = "lfu", aging = true }"#),
    ("s3-fifo-2024", "s3-fifo"),
    ("lirs-libcachesim", r#"{ name = "lirs", variant = "libcachesim" }"#),
];

/// Has the refusal of a name that is a setting now say which.
fn with_new_name(mut error: RegistryError) -> RegistryError {
    if let RegistryError::Unknown { name, hint, .. } = &mut error
        && let Some((_, setting)) = NOW_SETTINGS.iter().find(|(old, _)| old == name)
    {
        *hint = format!("; this one is `{setting}` now");
    }
    error
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

/// What a policy needs beyond the accesses themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The position of each block's next access (a pre-pass over the whole trace).
    Future,
    /// What each access is worth to a cache that knows the future.
    Benefit,
    /// Whole requests, through [`PolicyHooks::on_request`](crate::PolicyHooks::on_request).
    Requests,
    /// Trained models, through [`PolicyHooks::load_models`](crate::PolicyHooks::load_models).
    Model,
    /// Code outside the workspace, through
    /// [`PolicyHooks::attach_code`](crate::PolicyHooks::attach_code).
    Code,
}

impl Need {
    /// The name used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Need::Future => "future",
            Need::Benefit => "benefit",
            Need::Requests => "requests",
            Need::Model => "model",
            Need::Code => "code",
        }
    }
}

impl Needed for Need {
    fn phrase(self) -> &'static str {
        match self {
            Need::Future => "the future",
            Need::Benefit => "the benefit of each access",
            Need::Requests => "whole requests",
            Need::Model => "trained models",
            Need::Code => "code of its own",
        }
    }
}

/// What a user can know of one policy without reading code.
pub type Entry = cachewright_types::registry::Entry<Need>;

choices! {
    /// Whose rules a policy follows, where libCacheSim's code departs from the paper's text.
    pub enum Variant {
        /// The paper's text.
        Paper = "paper",
        /// libCacheSim 0.3.5.
        Libcachesim = "libcachesim",
    }
}

/// A policy that stands in the registry.
pub trait Registered: Policy + Sized + 'static {
    /// Its settings, with defaults as in its source.
    type Settings: Declared;
    /// Its facts.
    const ENTRY: Entry;
    /// An empty cache of `capacity_blocks`.
    fn new(capacity_blocks: u32, settings: &Self::Settings, seed: Seed) -> Self;
    /// Calls `visitor` with the type that these settings choose: its own, unless a setting is a
    /// parameter of the type.
    fn accept<V: PolicyVisitor>(settings: Self::Settings, visitor: V) -> V::Output {
        visitor.visit::<Self>(settings)
    }
}

/// Code that runs once the name of a policy has become its type.
pub trait PolicyVisitor {
    /// What the code returns.
    type Output;
    /// Called with the policy's type and checked settings.
    fn visit<P: Registered>(self, settings: P::Settings) -> Self::Output;
}
