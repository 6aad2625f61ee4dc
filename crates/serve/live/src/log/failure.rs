//! A log of which a device has failed.
//!
//! For: callers that wait in vain, and the name of the device. Must never know: what is done then.
//! Units: none. Content that is on its way stays in memory: its groups never count as written.

use super::writer::{Log, LogError, LogEvent, LogPurpose};
use crate::io::IoError;

impl Log {
    /// The device that failed, in the order of the set, if one has.
    pub fn failed_device(&self) -> Option<usize> {
        self.failed_device
    }

    /// A write or a sync has failed.
    pub(super) fn operation_failed(
        &mut self,
        purpose: LogPurpose,
        error: IoError,
        events: &mut Vec<LogEvent>,
    ) {
        self.failed_device = self.failed_device.or_else(|| self.device_of(purpose));
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
        if self.failed.is_none() {
            self.failed = Some(error);
            events.push(LogEvent::Failed(error));
        }
        let waiters = self.syncs.take_all();
        let failed = |caller| LogEvent::Synced(caller, Err(LogError::Failed(error)));
        events.extend(waiters.into_iter().map(failed));
    }
}
