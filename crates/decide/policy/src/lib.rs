//! Replacement policies: which block stays.
//!
//! For: pure state machines over dense block ids. A policy holds arrays indexed by block id;
//! nothing hashes. [`Policy`] is what every policy does, [`PolicyHooks`] what a few do besides.
//! Invariant: a policy never holds more than its capacity, and `Hit` implies it held the block.

pub mod access_frequency;
pub mod arc;
pub mod baleen;
pub mod belady;
pub mod benefit_oracle;
pub mod cachesack;
pub mod cacheus;
pub mod characterize;
pub mod clock2q_plus;
mod count_buckets;
pub mod duel_x;
pub mod far_first;
pub mod fifo;
pub mod foreign;
mod frequency_table;
pub mod future;
pub mod ghost_lists;
pub mod gl_cache;
pub mod guarded;
pub mod hit_queues;
pub mod larc;
pub mod least_first;
pub mod level_chunks;
pub mod levels;
pub mod lfu;
pub mod lhd;
pub mod links;
pub mod lirs;
pub mod lrb;
pub mod lru;
pub mod merlin;
mod miss_budget;
pub mod mq;
pub mod oc_smq;
mod online_trees;
pub mod policy;
pub mod queue;
pub mod rc_rnn;
pub mod rc_x;
pub mod reca;
pub mod registry;
pub mod renumber;
pub mod replay;
pub mod s3_fifo;
pub mod s4_fifo;
mod sampled_blocks;
mod segmented;
pub mod shadow;
pub mod sieve;
pub mod slru;
pub mod smq;
pub mod stamped_queues;
pub mod stored;
pub mod three_l_cache;
pub mod two_q;
pub mod w_tiny_lfu;

pub use foreign::{CodeFault, ForeignClass, ForeignCode, ForeignPolicy};
pub use future::{Future, FutureColumn, FutureSlice, NEVER};
pub use policy::{
    Access, BackgroundOp, Policy, PolicyHooks, Region, RegionSizes, RequestInfo, Verdict,
};
pub use registry::{Entry, Need, PolicyVisitor, Registered, entries, entry, visit};
pub use shadow::{ShadowSplit, Shadowed};
