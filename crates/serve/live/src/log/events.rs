//! What a log gives to its owner: places of entries, events, errors.
//!
//! For: an owner that drives a log. Must never know: how a log works. Units: numbers of groups.

use super::format::FooterRecord;
use super::set::Place;
use crate::io::{Buffer, IoError};

/// Why an entry could not be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// No segment is free: one must be cleaned first.
    #[error("the cache device is full: no segment is free")]
    Full,
    /// A device has failed; nothing can be appended or made durable any more.
    #[error("the cache device has failed: {0}")]
    Failed(IoError),
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Where its content lies; without content, the start of its group.
    pub place: Place,
    /// The number of its group.
    pub group: u64,
    /// The checksum of its content; 0 without content.
    pub checksum: u32,
}

/// What has happened since the owner last looked.
#[derive(Debug)]
pub enum LogEvent {
    /// All groups up to this number are written.
    Written(u64),
    /// All groups up to this number are durable.
    Durable(u64),
    /// The sync of this caller is over. Errors: a device has failed.
    Synced(u64, Result<(), LogError>),
    /// The read of this caller is over: the content of a block. Errors: the device's.
    Read(u64, Buffer, Result<(), IoError>),
    /// The records of a sealed segment, for this caller. Errors: the device's; a footer that was
    /// damaged counts as one.
    Records(u64, Result<Vec<FooterRecord>, IoError>),
    /// A device has failed: syncs and appends fail from now on.
    Failed(IoError),
}
