//! Who waits for the log to be durable, and the round of syncs that makes it so.
//!
//! For: one sync of each device for all that wait (group commit). Must never know: what is written.
//! Units: numbers of groups. A round covers the groups that were written when it began. One round
//! is under way at a time; what is written meanwhile waits for the next.

use super::set::SegmentId;

/// A round of syncs under way.
#[derive(Clone, Debug)]
struct SyncRound {
    /// Groups up to this number are durable when it ends.
    covers: u64,
    devices_left: usize,
    /// Segments whose headers say that they are free.
    emptied: Vec<SegmentId>,
}

/// Callers that wait, and the round under way.
#[derive(Clone, Debug)]
pub struct Syncs {
    /// The group that must be durable, and the name of the caller.
    waiters: Vec<(u64, u64)>,
    round: Option<SyncRound>,
    /// Devices that were written to since their last sync began.
    unsynced: Vec<bool>,
    /// Segments whose headers, which say that they are free, were written since.
    emptied: Vec<SegmentId>,
}

/// What a round has made durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncedGroups {
    /// Groups up to this number.
    pub group: u64,
    /// Segments that are void.
    pub emptied: Vec<SegmentId>,
}

impl Syncs {
    /// Of so many devices.
    pub fn new(devices: usize) -> Syncs {
        let unsynced = vec![false; devices];
        Syncs { waiters: Vec::new(), round: None, unsynced, emptied: Vec::new() }
    }

    /// A device was written to.
    pub fn note_write(&mut self, device: usize) {
        self.unsynced[device] = true;
    }

    /// The header of a segment was written, which says that it is free.
    pub fn note_emptied(&mut self, device: usize, segment: SegmentId) {
        self.note_write(device);
        self.emptied.push(segment);
    }

    /// A caller waits until `group` is durable.
    pub fn wait(&mut self, group: u64, caller: u64) {
        self.waiters.push((group, caller));
    }

    /// Begins a round if one is needed and can help: a caller waits for a written group, `also`
    /// is one, or segments are to become free. Returns the devices to be synced.
    pub fn begin(&mut self, written: u64, also: Option<u64>) -> Vec<usize> {
        let mut wanted = self.waiters.iter().map(|(group, _)| *group).chain(also);
        let needed = !self.emptied.is_empty() || wanted.any(|group| group <= written);
        if self.round.is_some() || !needed {
            return Vec::new();
        }
        let devices: Vec<usize> =
            (0..self.unsynced.len()).filter(|device| self.unsynced[*device]).collect();
        self.unsynced.fill(false);
        let (devices_left, emptied) = (devices.len(), std::mem::take(&mut self.emptied));
        self.round = Some(SyncRound { covers: written, devices_left, emptied });
        devices
    }

    /// A device was synced; returns what the round has made durable when it was the last.
    pub fn end_device(&mut self) -> Option<SyncedGroups> {
        if let Some(round) = &mut self.round {
            round.devices_left = round.devices_left.saturating_sub(1);
        }
        self.end_round()
    }

    /// The end of a round, if no device is left: also of one without devices.
    pub fn end_round(&mut self) -> Option<SyncedGroups> {
        let round = self.round.take_if(|round| round.devices_left == 0)?;
        Some(SyncedGroups { group: round.covers, emptied: round.emptied })
    }

    /// The callers that wait for groups up to `durable`, in the order in which they came.
    pub fn take_served(&mut self, durable: u64) -> Vec<u64> {
        let served = self.waiters.extract_if(.., |(group, _)| *group <= durable);
        served.map(|(_, caller)| caller).collect()
    }

    /// All callers, which wait in vain.
    pub fn take_all(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.waiters).into_iter().map(|(_, caller)| caller).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_covers_what_was_written_when_it_began() {
        let mut syncs = Syncs::new(2);
        syncs.note_write(0);
        syncs.note_write(1);
        syncs.wait(5, 100);
        assert!(syncs.begin(4, None).is_empty(), "group 5 is not written");
        assert_eq!(syncs.begin(5, None), [0, 1]);
        syncs.note_write(1);
        syncs.wait(6, 101);
        assert!(syncs.begin(6, None).is_empty(), "one round at a time");
        assert_eq!(syncs.end_device(), None);
        let synced = SyncedGroups { group: 5, emptied: Vec::new() };
        assert_eq!(syncs.end_device(), Some(synced));
        assert_eq!(syncs.take_served(5), [100]);
        assert_eq!(syncs.begin(6, None), [1]);
        syncs.note_emptied(0, SegmentId(3));
        assert_eq!(syncs.end_device().map(|synced| synced.emptied), Some(Vec::new()));
        assert_eq!(syncs.begin(6, None), [0]);
        assert_eq!(syncs.end_device().map(|synced| synced.emptied), Some(vec![SegmentId(3)]));
        assert_eq!(syncs.take_all(), [101]);
    }
}
