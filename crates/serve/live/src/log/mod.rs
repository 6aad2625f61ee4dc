//! The log: blocks of volumes, appended to segments of one or more devices.
//!
//! For: content that survives a loss of power, in the order in which it was written. Must never
//! know: policies, clients, backing devices, which blocks are wanted. Units: bytes, blocks, pages,
//! numbers of groups.
//!
//! Entries are gathered into groups; a group is written by one write and numbered. The log is
//! written up to a group when all groups before it are, and durable likewise. Recovery finds all
//! durable groups, and of the others those before the first that is missing: there is one cut in
//! the order of the log.

mod cleaner;
mod doubtful;
mod events;
mod failure;
mod flight;
pub mod format;
mod group;
mod heads;
mod holder;
mod index;
mod mark;
mod open;
mod recovery;
mod sealing;
mod segments;
mod set;
mod settle;
mod streams;
mod syncs;
mod tokens;
mod writer;
mod written_back;

pub use cleaner::{Cleaner, CleaningError, CleaningLoss, ContentStanding, Owner, cleaning_batch};
pub use events::{Appended, LogError, LogEvent};
pub use group::{Content, LogEntry};
pub use holder::{hold, holders, is_taken, look};
pub use index::{RecordIndex, RecoveredBlock};
pub use mark::Marker;
pub use open::{
    FormatSettings, OpenSet, OpenSetError, cut, cut_sizes, format, open, rewrite, rewrite_both,
};
pub use recovery::{FoundLog, UnreadablePage, read_log, recover};
pub use segments::{Segment, SegmentUse};
pub use set::{DevicePage, DeviceSet, Place, SegmentId, WritePoint};
pub use settle::RecoveredLog;
pub use writer::{Log, LogSettings};
pub use written_back::{BackingFile, BlockRun, WrittenBack, chunk_blocks, contents, write_back};
