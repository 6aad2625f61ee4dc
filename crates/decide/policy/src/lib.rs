//! Replacement policies: which block stays.
//!
//! For: pure state machines over dense block ids. Must never know: the cache engine, tenants, time,
//! files, threads; of requests only what [`PolicyHooks::on_request`] passes on. A policy holds
//! arrays indexed by block id; nothing hashes. [`Policy`] is what every policy does,
//! [`PolicyHooks`] what a few do besides. Invariant: a policy never holds more than its capacity,
//! and `Hit` implies it held the block.

mod access;
pub mod access_frequency;
pub mod arc;
pub mod belady;
pub mod benefit_oracle;
mod boxed;
pub mod cachesack;
pub mod cacheus;
pub mod characterize;
mod count_buckets;
pub mod duel_x;
pub mod entry;
pub mod far_first;
pub mod fifo;
pub mod foreign;
mod foreign_code;
mod frequency_table;
pub mod future;
pub mod ghost_lists;
pub mod gl_cache;
pub mod hit_queues;
pub mod hooks;
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
pub mod oc_smq;
mod policy;
pub mod queue;
pub mod rc_rnn;
pub mod rc_x;
pub mod reca;
pub mod registry;
pub mod renumber;
pub mod replay;
pub mod s3_fifo;
mod sampled_blocks;
mod segmented;
pub mod segments;
pub mod shadow;
pub mod sieve;
pub mod slru;
pub mod smq;
pub mod stored;
pub mod two_q;
pub mod w_tiny_lfu;

pub use access::{Access, Verdict};
pub use entry::{Entry, Need, PolicyVisitor, Registered};
pub use foreign_code::{CodeFault, ForeignClass, ForeignCode, ForeignPolicy};
pub use future::{Future, FutureColumn, FutureSlice, NEVER};
pub use hooks::{BackgroundOp, PolicyHooks, Region, RegionSizes, RequestInfo};
pub use policy::Policy;
pub use registry::{entries, entry, visit};
pub use shadow::{ShadowSplit, Shadowed};
