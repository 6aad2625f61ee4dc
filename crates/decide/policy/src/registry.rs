//! The table of policies: one line per policy, read by everything else.
//!
//! For: names, sentences, sources, needs and settings of every policy, and static dispatch by name.
//! Must never know: its callers. Adding a policy is one file and one line in `policies!` below.

use crate::Policy;
use crate::entry::{Entry, PolicyVisitor, Registered};
use crate::foreign::{Foreign, is_foreign};
use cachewright_types::registry::{Resolved, settings, unknown};
use cachewright_types::{RegistryError, Seed, Value};

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
    crate::arc::Arc,
    crate::larc::Larc,
    crate::two_q::TwoQ,
    crate::slru::Slru,
    crate::w_tiny_lfu::WTinyLfu,
    crate::lhd::Lhd,
    crate::cacheus::Cacheus,
    crate::cachesack::CacheSack,
    crate::lrb::Lrb,
    crate::gl_cache::GlCache,
    crate::lirs::Lirs,
    crate::smq::Smq,
    crate::oc_smq::OcSmq,
    crate::access_frequency::AccessFrequency,
    crate::reca::Reca,
    crate::rc_rnn::RcRnn,
    crate::rc_x::RcX,
    crate::duel_x::DuelX,
    crate::belady::Belady<false>,
    crate::belady::Belady<true>,
    crate::benefit_oracle::BenefitOracle,
}

/// Makes policies of one kind, of a given capacity and seed.
pub type PolicyMaker = Box<dyn Fn(u32, Seed) -> Box<dyn Policy>>;

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

pub use table::{entries, keys};

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
