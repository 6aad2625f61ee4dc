//! Records that an offline tool adds to a log.
//!
//! For: blocks that are clean now, or gone. Must never know: why. Units: blocks.

use crate::devices::log_settings;
use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_live::io::Io;
use cachewright_live::log::format::{Kind, Version};
use cachewright_live::log::{DeviceSet, Entry, Log, LogError, LogEvent, Recovered, RecoveredBlock};

/// What the eight highest bits of the log's tokens are.
const NAMESPACE: u8 = 1;

/// A log to which only records without content are appended.
pub struct NoteLog {
    log: Log,
}

impl NoteLog {
    /// Goes on with what recovery found, which is taken out of `found` but for its blocks.
    pub fn new(plan: &LivePlan, set: &DeviceSet, found: &Recovered) -> NoteLog {
        let state = (found.segments.clone(), found.last_group);
        NoteLog { log: Log::new(set.clone(), log_settings(plan), state, NAMESPACE) }
    }

    /// Notes that the content of each block is clean, or gone. Errors: no segment is free, a device
    /// fails.
    pub fn note(
        &mut self,
        io: &mut impl Io,
        blocks: &[RecoveredBlock],
        kind: Kind,
    ) -> Result<(), LiveError> {
        for block in blocks {
            let place = (block.volume, block.number);
            let entry = Entry::Note(kind);
            let version = match kind {
                // A leaving is newer than what leaves.
                Kind::Gone { .. } => Version(block.version.0.saturating_add(1)),
                _ => block.version,
            };
            let noted = self.log.append(io, (0, true), place, version, entry);
            noted.map_err(failed)?;
        }
        self.sync(io)
    }

    /// Ends the segments that were begun. Errors: a device fails.
    pub fn close(mut self, io: &mut impl Io) -> Result<(), LiveError> {
        self.log.close(io);
        let mut events = Vec::new();
        self.log.advance(io, &mut events);
        while self.log.is_closing() {
            self.turn(io, &mut events)?;
        }
        Ok(())
    }

    /// Makes all that was noted durable.
    fn sync(&mut self, io: &mut impl Io) -> Result<(), LiveError> {
        self.log.sync(io, 0);
        let mut events = Vec::new();
        self.log.advance(io, &mut events);
        while !events.iter().any(|event| matches!(event, LogEvent::Synced(..))) {
            self.turn(io, &mut events)?;
        }
        Ok(())
    }

    /// Waits for operations, and begins what is due then. Errors: a device fails.
    fn turn(&mut self, io: &mut impl Io, events: &mut Vec<LogEvent>) -> Result<(), LiveError> {
        let mut done = Vec::new();
        io.wait(&mut done);
        done.into_iter().for_each(|done| self.log.on_done(io, done, events));
        self.log.advance(io, events);
        let failed_with = events.iter().find_map(|event| match event {
            LogEvent::Failed(error) => Some(*error),
            _ => None,
        });
        failed_with.map_or(Ok(()), |error| Err(failed(LogError::Failed(error))))
    }
}

fn failed(error: LogError) -> LiveError {
    LiveError::Failed(format!("what was done could not be recorded: {error}"))
}
