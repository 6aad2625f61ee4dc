//! Records that an offline tool adds to a log.
//!
//! For: blocks that are clean now, or gone. Must never know: why. Units: blocks.

use crate::devices::{SPARE_SEGMENTS, group_blocks};
use crate::error::LiveError;
use cachewright_live::io::Io;
use cachewright_live::log::format::{LogRecordKind, Version};
use cachewright_live::log::{
    BlockRun, DeviceSet, Log, LogEntry, LogError, LogEvent, LogSettings, RecoveredBlock,
    RecoveredLog, WritePoint,
};

/// What the eight highest bits of the log's tokens are.
const NAMESPACE: u8 = 1;

/// A log to which only records without content are appended.
pub struct NoteLog {
    log: Log,
    /// That of all records: nothing in the log is newer.
    version: Version,
}

impl NoteLog {
    /// Goes on with what recovery found; its segments are copied.
    pub fn new(set: &DeviceSet, found: &RecoveredLog) -> NoteLog {
        let (group_blocks, spare_segments) = (group_blocks(set), SPARE_SEGMENTS);
        let (streams, user_streams, moved_streams) = (1, 1, 1);
        let settings =
            LogSettings { streams, user_streams, moved_streams, group_blocks, spare_segments };
        let log =
            Log::new(set.clone(), settings, found.segments.clone(), found.last_group, NAMESPACE);
        NoteLog { log, version: Version::last(found.last_decision) }
    }

    /// Notes that the content of all blocks of each run is clean, or gone, by one record per run,
    /// and makes that durable. Errors: no segment is free, a device fails.
    pub fn note(
        mut self,
        io: &mut impl Io,
        runs: &[BlockRun],
        kind: impl Fn(u32) -> LogRecordKind,
    ) -> Result<(), LiveError> {
        for (volume, run) in runs {
            let entry = LogEntry::Note(kind((run.end - run.start) as u32));
            let block = (*volume, run.start);
            self.log
                .append(io, WritePoint::default(), true, block, self.version, entry)
                .map_err(failed)?;
        }
        self.sync(io)?;
        self.close(io)
    }

    /// Ends the segments that were begun. Errors: a device fails.
    fn close(&mut self, io: &mut impl Io) -> Result<(), LiveError> {
        self.log.close(io);
        let mut events = Vec::new();
        self.log.advance(io, &mut events);
        check(&events)?;
        while self.log.is_closing() {
            self.turn(io, &mut events)?;
        }
        Ok(())
    }

    /// Makes all that was noted durable. Errors: a device fails.
    fn sync(&mut self, io: &mut impl Io) -> Result<(), LiveError> {
        self.log.sync(io, 0);
        let mut events = Vec::new();
        self.log.advance(io, &mut events);
        check(&events)?;
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
        check(events)
    }
}

/// The runs of blocks that lie one behind the other on their volumes.
pub fn runs(mut blocks: Vec<RecoveredBlock>) -> Vec<BlockRun> {
    blocks.sort_unstable_by_key(|block| (block.volume, block.number));
    let adjacent =
        |a: &RecoveredBlock, b: &RecoveredBlock| (a.volume, a.number + 1) == (b.volume, b.number);
    let run = |run: &[RecoveredBlock]| {
        let first = run[0];
        (first.volume, first.number..first.number + run.len() as u64)
    };
    blocks.chunk_by(adjacent).map(run).collect()
}

/// Errors: a device has failed.
fn check(events: &[LogEvent]) -> Result<(), LiveError> {
    let error = |event: &LogEvent| match event {
        LogEvent::Failed(error) => Some(LogError::Failed(*error)),
        LogEvent::Synced(_, Err(error)) => Some(*error),
        _ => None,
    };
    events.iter().find_map(error).map_or(Ok(()), |error| Err(failed(error)))
}

fn failed(error: LogError) -> LiveError {
    LiveError::Failed(format!("what was done could not be recorded: {error}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use cachewright_live::io::IoError;
    use cachewright_live::io::sim::{Fault, Sim, SimFile};
    use cachewright_live::log::format::{SetId, VolumeId};
    use cachewright_live::log::{FormatSettings, format, recover};
    use cachewright_types::Seed;

    /// A record is noted while one operation fails: the first, the second and so on.
    fn noted(failing: u64) -> Result<(), LiveError> {
        let mut sim = Sim::new(Seed(failing));
        let files = [sim.add_file(SimFile::new((2 << 20) + (8 << 16)))];
        let (set, volumes) = (SetId(3), Vec::new());
        let settings = FormatSettings { set, block_bytes: 4096, segment_bytes: 64 << 10, volumes };
        let open = format(&mut sim, &files, &settings).unwrap();
        let found = recover(&mut sim, &open).unwrap();
        let mut begun = 0;
        sim.set_faults(Box::new(move |_, _| {
            begun += 1;
            (begun == failing).then_some(Fault::Error(IoError::IO))
        }));
        let runs = [(VolumeId(1), 3..9)];
        NoteLog::new(&open.set, &found)
            .note(&mut sim, &runs, |blocks| LogRecordKind::Gone { blocks })
    }

    #[test]
    fn each_operation_that_fails_is_an_error() {
        let failed = (1..100).take_while(|failing| noted(*failing).is_err()).count();
        assert!((3..20).contains(&failed), "a group, its sync and a footer: {failed}");
    }
}
