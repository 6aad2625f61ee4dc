//! Volumes behind a cache: requests in, answers out, whatever protocol carries them.
//!
//! [`BlockServer`] is driven by its owner. A request is one procedure, from its decision to its
//! answer (`request`); what leaves the cache is told in `evict`, how the log is cleaned in
//! `cleaning`, how a server starts in `restart`, and what happens when a device of the log fails in
//! `bypass`. The rules, by which nothing that was made durable is lost or comes back:
//!
//! - what is written is dirty in the log until the backing device has it durably;
//! - content goes to the backing device when the log has it durably;
//! - content may leave the log's index when its block is clean, or when a sync of the backing
//!   device that began after the write-back is done;
//! - a write that goes round the cache, and a trim, wait until the leaving of their blocks is
//!   durable in the log;
//! - a write is answered when all groups of the log up to its own are written.
//!
//! Units: bytes, blocks.

mod allocation;
mod answers;
mod background;
mod backing;
mod bypass;
mod capacity;
mod cleaning;
mod content;
mod copies;
mod decisions;
mod device;
mod division;
mod evict;
mod hot;
mod layout;
mod members;
mod recording;
mod replica;
mod request;
mod restart;
mod revive;
mod server;
mod space;
mod streams;
mod turns;
mod volumes;

pub use allocation::AllocationQuery;
pub use background::BackgroundSettings;
pub use bypass::{Passage, VolumePassage};
pub use capacity::{BLOCK_MEMORY, max_blocks, needed_segments};
pub use division::Division;
pub use layout::DeviceLayout;
pub use replica::{LiveDecider, PolicySource};
pub use request::{BlockAnswer, BlockOp, BlockRequest, ServeCounts};
pub use restart::{RestoreError, Restored, ServerParts};
pub use revive::Revived;
pub use server::BlockServer;
pub use streams::CleaningSettings;
pub use volumes::{KnownLosses, ServedVolume};
