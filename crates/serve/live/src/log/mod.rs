//! The log: blocks of volumes, appended to segments of one or more devices. It survives a loss of
//! power, in the order in which it was written, and knows no policies, clients or backing devices.
//!
//! Entries are gathered into groups; a group is written by one write and numbered. The log is
//! written up to a group when all groups before it are, and durable likewise. Recovery finds all
//! durable groups, and of the others those before the first that is missing: there is one cut in
//! the order of the log.

mod cleaner;
mod devices;
pub mod format;
mod recovery;
mod writer;

pub use cleaner::{
    CleaningError, CleaningLoss, CleaningSite, ContentStanding, Owner, clean, cleaning_batch,
};
pub use devices::{
    DevicePage, DeviceSet, FormatSettings, Marker, OpenSet, OpenSetError, Place, SegmentId,
    WritePoint, cut, cut_sizes, format, hold, holders, is_taken, look, open, rewrite, rewrite_both,
};
pub use recovery::{
    BackingFile, BlockRun, FoundLog, RecordIndex, RecoveredBlock, RecoveredLog, UnreadablePage,
    WrittenBack, chunk_blocks, contents, read_log, recover, write_back,
};
pub use writer::{
    Appended, Content, Log, LogEntry, LogError, LogEvent, LogSettings, Segment, SegmentUse,
};
