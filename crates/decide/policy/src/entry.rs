//! What stands in the registry of policies: needs, facts, and the trait of an entry.
//!
//! For: every policy and the table that lists them. Must never know: any policy.

use crate::Policy;
use cachewright_types::Seed;
use cachewright_types::choices;
use cachewright_types::declare::Declared;
use cachewright_types::registry::Needed;

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
