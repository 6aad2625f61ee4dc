//! A device that takes no time.
//!
//! For: bounds (what would be without this device) and tests. Must never know: caches. A command
//! completes at the time it is submitted, by the next advance.

use crate::seam::{Command, Completion, Device, Spent};
use cachewright_types::{Bytes, Nanos, SettingError, declare};

declare! {
    /// A device that takes no time.
    pub struct NullSettings {
        "device" {
            /// bytes that can be addressed
            capacity: Bytes = Bytes(1_099_511_627_776), "bytes", 1 ..= 1e15;
                "as large as wanted";
        }
    }
}

/// A device that takes no time.
#[derive(Clone, Debug)]
pub struct Null {
    capacity: Bytes,
    /// Tag and time of each command not yet completed.
    waiting: Vec<(u64, Nanos)>,
}

impl Null {
    /// A device. Errors: none today.
    pub fn new(settings: &NullSettings) -> Result<Null, SettingError> {
        Ok(Null { capacity: settings.capacity, waiting: Vec::new() })
    }
}

impl Device for Null {
    fn capacity(&self) -> Bytes {
        self.capacity
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        self.waiting.push((command.tag, now));
    }

    fn next_due(&self) -> Option<Nanos> {
        self.waiting.first().map(|(_, time)| *time)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        let due = self.waiting.partition_point(|(_, time)| *time <= now);
        done.extend(self.waiting.drain(..due).map(|(tag, time)| {
            let spent = Spent::default();
            Completion { tag, submitted: time, finished: time, spent }
        }));
    }

    fn outstanding(&self) -> usize {
        self.waiting.len()
    }

    fn audit(&self) -> Result<(), String> {
        match self.waiting.is_sorted_by_key(|(_, time)| *time) {
            true => Ok(()),
            false => Err("commands are out of order".to_owned()),
        }
    }
}
