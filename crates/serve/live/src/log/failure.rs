//! A log of which a device has failed.
//!
//! For: callers that wait in vain, and the name of the device. Must never know: what is done then.
//! Units: none. Content that is on its way stays in memory: its groups never count as written.

use super::events::{LogError, LogEvent};
use super::tokens::LogPurpose;
use super::writer::Log;
use crate::io::IoError;

/// The first failure of a log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogFailure {
    error: Option<IoError>,
    /// The device of the operation that failed first.
    device: Option<usize>,
}

impl LogFailure {
    /// Why nothing can be appended or made durable any more.
    pub(super) fn error(&self) -> Option<IoError> {
        self.error
    }

    /// An operation has failed, on a device if that is known.
    fn blame(&mut self, device: Option<usize>) {
        self.device = self.device.or(device);
    }

    /// The log has failed; returns whether that is new.
    fn begin(&mut self, error: IoError) -> bool {
        let is_new = self.error.is_none();
        self.error.get_or_insert(error);
        is_new
    }
}

impl Log {
    /// The device that failed, in the order of the set, if one has.
    pub fn failed_device(&self) -> Option<usize> {
        self.failure.device
    }

    /// A write or a sync has failed.
    pub(super) fn operation_failed(
        &mut self,
        purpose: LogPurpose,
        error: IoError,
        events: &mut Vec<LogEvent>,
    ) {
        self.failure.blame(self.device_of(purpose));
        self.fail(error, events);
    }

    /// The device of an operation.
    fn device_of(&self, purpose: LogPurpose) -> Option<usize> {
        let segment = match purpose {
            LogPurpose::Sync(device) => return Some(device),
            LogPurpose::Group(number) => self.flight.segment_of(number)?,
            LogPurpose::Records(segment)
            | LogPurpose::Footer(segment)
            | LogPurpose::Emptied(segment) => segment,
            LogPurpose::Read(_) => return None,
        };
        Some(self.set.device(segment))
    }

    /// Nothing can be appended or made durable any more: what waits for that waits in vain.
    pub(super) fn fail(&mut self, error: IoError, events: &mut Vec<LogEvent>) {
        if self.failure.begin(error) {
            events.push(LogEvent::Failed(error));
        }
        let waiters = self.syncs.take_all();
        let failed = |caller| LogEvent::Synced(caller, Err(LogError::Failed(error)));
        events.extend(waiters.into_iter().map(failed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_counts() {
        let mut failure = LogFailure::default();
        failure.blame(None);
        assert!(failure.begin(IoError::IO) && !failure.begin(IoError::NO_SPACE));
        failure.blame(Some(2));
        failure.blame(Some(1));
        assert_eq!((failure.error(), failure.device), (Some(IoError::IO), Some(2)));
    }
}
