//! The backing device of one volume: what was written to it and is not durable there.
//!
//! For: the order between a backing device and the log. Content that was written back may leave the
//! log only when the backing device has it durably. Must never know: policies, the log's format.
//! Units: blocks, decisions. One sync is under way at a time; what is done meanwhile waits for the
//! next.

use crate::io::FileId;
use crate::log::Place;
use crate::log::format::Version;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// What becomes true when the backing device has a block durably.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The block is clean if its content is of this version.
    Clean {
        /// Its number.
        number: u64,
        /// The version of the content.
        content: Version,
    },
    /// The block has left the cache, and its content the log.
    Gone {
        /// Its number.
        number: u64,
        /// The version that takes it away.
        version: Version,
        /// The decision by which it left.
        left: u64,
        /// Where its content lies.
        place: Place,
        /// Blocks from its number on that one record takes away: it alone, none if the record of
        /// another does, or a range that was zeroed.
        noted: u64,
        /// The checksum of its content; nothing if it must not be read.
        checksum: Option<u32>,
        /// The group that brought its content into the log.
        group: u64,
        /// The log says that the backing device has older content.
        dirty: bool,
    },
}

/// What waits for one sync.
#[derive(Clone, Debug, Default)]
struct SyncWaiters<W> {
    settled: Vec<Settled>,
    blocks: Vec<u64>,
    clears: Vec<Range<u64>>,
    waiters: Vec<W>,
}

/// What a sync that is done brings.
#[derive(Clone, Debug)]
pub struct SyncedBacking<W> {
    /// What the log is to be told.
    pub settled: Vec<Settled>,
    /// What has waited for the sync.
    pub waiters: Vec<W>,
}

/// Stays of blocks that end later than they left, by the number of the block and the decision. One
/// decision may take a block away twice: it leaves for another block of the same request, comes in
/// and leaves again.
#[derive(Clone, Debug, Default)]
struct Leavings {
    stays: BTreeMap<(u64, u64), u32>,
    count: usize,
}

impl Leavings {
    fn add(&mut self, number: u64, by: u64) {
        *self.stays.entry((number, by)).or_insert(0) += 1;
        self.count += 1;
    }

    /// Takes one stay; false if there is none.
    fn take(&mut self, number: u64, by: u64) -> bool {
        let Some(stays) = self.stays.get_mut(&(number, by)) else { return false };
        *stays -= 1;
        self.count -= 1;
        if *stays == 0 {
            self.stays.remove(&(number, by));
        }
        true
    }

    /// The stays of a block that left by a decision up to `by`.
    fn count_of(&self, number: u64, by: u64) -> u32 {
        self.stays.range((number, 0)..=(number, by)).map(|(_, stays)| *stays).sum()
    }

    /// The last decision by which a block has left.
    fn last(&self, number: u64) -> Option<u64> {
        let mut stays = self.stays.range((number, 0)..=(number, u64::MAX));
        stays.next_back().map(|((_, left), _)| *left)
    }

    /// Whether a block of a range has left by a decision up to `by`.
    fn holds(&self, blocks: &Range<u64>, by: u64) -> bool {
        let within = (blocks.start, 0)..(blocks.end, 0);
        !blocks.is_empty() && self.stays.range(within).any(|((_, left), _)| *left <= by)
    }
}

/// A backing device; `W` is what waits for its syncs.
#[derive(Clone, Debug)]
pub struct Backing<W> {
    file: FileId,
    /// Writes to each block that no sync has made durable.
    unsynced: HashMap<u64, u32, FixedState>,
    /// Ranges that were trimmed or zeroed, or are being, and are not durable.
    clearing: Vec<Range<u64>>,
    next: SyncWaiters<W>,
    syncing: Option<SyncWaiters<W>>,
    /// Blocks that have left while their content must stay in the log.
    leaving: Leavings,
    /// Blocks that a decision overwrites, round the cache, over content that is not cached. The
    /// content stays in the log until the new one is durable.
    overwritten: Leavings,
    /// Ranges that were zeroed or overwritten by a decision over blocks that were leaving.
    zeroed: Vec<(Range<u64>, u64)>,
    failed: bool,
    /// A sync has begun and not ended, also if the device has failed meanwhile.
    has_sync_under_way: bool,
    /// Answered requests have changed the device since the last sync began, and before that.
    unflushed: bool,
    unflushed_before: bool,
}

impl<W> Backing<W> {
    /// A backing device of which all is durable.
    pub fn new(file: FileId) -> Backing<W> {
        let empty = || SyncWaiters {
            settled: Vec::new(),
            blocks: Vec::new(),
            clears: Vec::new(),
            waiters: Vec::new(),
        };
        Backing {
            file,
            unsynced: HashMap::default(),
            clearing: Vec::new(),
            next: empty(),
            syncing: None,
            leaving: Leavings::default(),
            overwritten: Leavings::default(),
            zeroed: Vec::new(),
            failed: false,
            has_sync_under_way: false,
            unflushed: false,
            unflushed_before: false,
        }
    }

    /// Its file.
    pub fn file(&self) -> FileId {
        self.file
    }

    /// Whether input or output has failed: nothing is served any more.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Input or output has failed; returns what waits in vain, and content that must stay in the
    /// log for good. What is still being written back, or overwritten, leaves or stays when that
    /// has ended: until then no record may take a block away for its sake.
    pub fn fail(&mut self) -> SyncedBacking<W> {
        self.failed = true;
        (self.unflushed, self.unflushed_before) = (false, false);
        let mut round = std::mem::replace(&mut self.next, Backing::new(self.file).next);
        if let Some(syncing) = self.syncing.take() {
            round.settled.extend(syncing.settled);
            round.waiters.extend(syncing.waiters);
        }
        SyncedBacking { settled: round.settled, waiters: round.waiters }
    }

    /// The device works again: it has durably what it holds, and nothing of it is under way.
    pub fn revive(&mut self) {
        *self = Backing::new(self.file);
    }

    /// Whether a sync was begun that has not ended, also one from before a failure.
    pub fn has_sync_under_way(&self) -> bool {
        self.has_sync_under_way
    }

    /// The sync under way has ended, whatever has become of it.
    pub fn sync_is_over(&mut self) {
        self.has_sync_under_way = false;
    }

    /// An answered request has changed the device: only a sync makes that durable.
    pub fn note_unflushed(&mut self) {
        self.unflushed = true;
    }

    /// Whether answered requests have changed the device, and no sync has made that durable. What
    /// is written back is not meant: the log has it until it is durable.
    pub fn has_unflushed(&self) -> bool {
        self.unflushed || self.unflushed_before
    }

    /// A write to some blocks begins.
    pub fn begin_write(&mut self, blocks: Range<u64>) {
        for number in blocks {
            *self.unsynced.entry(number).or_insert(0) += 1;
        }
    }

    /// A write to some blocks is done; the next sync makes it durable.
    pub fn end_write(&mut self, blocks: Range<u64>) {
        self.next.blocks.extend(blocks);
    }

    /// A trim or zeroing of some blocks begins.
    pub fn begin_clear(&mut self, blocks: Range<u64>) {
        self.clearing.push(blocks);
    }

    /// It is done. Blocks that left by then, up to `zeroed_by`, must not be found any more when the
    /// zeroes are to be durable.
    pub fn end_clear(&mut self, blocks: Range<u64>, zeroed_by: Option<u64>) {
        if let Some(decision) = zeroed_by {
            self.zeroed.push((blocks.clone(), decision));
            self.forget_zeroed();
        }
        self.next.clears.push(blocks);
    }

    /// To be told to the log after the next sync.
    pub fn settle_later(&mut self, settled: Settled) {
        self.next.settled.push(settled);
    }

    /// A block has left by a decision; its content stays in the log.
    pub fn begin_leaving(&mut self, number: u64, left: u64) {
        self.leaving.add(number, left);
    }

    /// The log has been told that a block has left, or its content stays for good.
    pub fn end_leaving(&mut self, number: u64, left: u64) {
        // What a decision overwrites ends after what left by it: the write waits for that.
        if !self.leaving.take(number, left) {
            self.overwritten.take(number, left);
        }
        self.forget_zeroed();
    }

    /// A decision overwrites a block round the cache; the log has content of it.
    pub fn begin_overwrite(&mut self, number: u64, by: u64) {
        self.overwritten.add(number, by);
    }

    /// Blocks were overwritten round the cache by a decision.
    pub fn end_overwrite(&mut self, blocks: Range<u64>, by: u64) {
        self.zeroed.push((blocks, by));
        self.forget_zeroed();
    }

    /// Whether the log still holds content of blocks of a range that left by a decision up to `by`,
    /// or that an earlier one overwrites.
    pub fn is_leaving(&self, blocks: &Range<u64>, by: u64) -> bool {
        let overwritten = |by| self.overwritten.holds(blocks, by);
        self.leaving.holds(blocks, by) || by.checked_sub(1).is_some_and(overwritten)
    }

    /// Whether the log keeps one copy only of a block that left by a decision up to `by`.
    pub fn keeps_one_copy(&self, number: u64, by: u64) -> bool {
        self.leaving.count_of(number, by) == 1
    }

    /// Whether the log holds content of a block that left, or that is overwritten round the cache,
    /// and nothing that was decided later has been zeroed or written there.
    pub fn is_behind_log(&self, number: u64) -> bool {
        let last = self.leaving.last(number).max(self.overwritten.last(number));
        let Some(left) = last else { return false };
        !self.zeroed.iter().any(|(blocks, by)| blocks.contains(&number) && *by >= left)
    }

    /// Records that the log is to take because of syncs, at most.
    pub fn unsettled(&self) -> usize {
        let of_round = |round: &SyncWaiters<W>| round.settled.len();
        of_round(&self.next) + self.syncing.as_ref().map_or(0, of_round)
    }

    /// Blocks that are leaving, or overwritten round the cache.
    pub fn leaving(&self) -> usize {
        self.leaving.count + self.overwritten.count
    }

    /// Whether the log still holds content of blocks that were zeroed.
    pub fn holds_zeroed(&self) -> bool {
        !self.zeroed.is_empty()
    }

    fn forget_zeroed(&mut self) {
        let (leaving, overwritten) = (&self.leaving, &self.overwritten);
        self.zeroed
            .retain(|(blocks, by)| leaving.holds(blocks, *by) || overwritten.holds(blocks, *by));
    }

    /// Whether a block was changed since the last sync.
    pub fn is_unsynced(&self, number: u64) -> bool {
        self.unsynced.contains_key(&number)
            || self.clearing.iter().any(|range| range.contains(&number))
    }

    /// Whether something waits for a sync.
    pub fn needs_sync(&self) -> bool {
        let SyncWaiters { settled, blocks, clears, waiters } = &self.next;
        !(settled.is_empty() && blocks.is_empty() && clears.is_empty() && waiters.is_empty())
    }

    /// Whether a sync is under way.
    pub fn is_syncing(&self) -> bool {
        self.syncing.is_some()
    }

    /// Whether a waiter waits for the next sync.
    pub fn is_awaited(&self) -> bool {
        !self.next.waiters.is_empty()
    }

    /// What waits for a sync: notes, blocks written, ranges cleared.
    pub fn waiting(&self) -> usize {
        self.next.settled.len() + self.next.blocks.len() + self.next.clears.len()
    }

    /// Lets `waiter` wait until all that was done is durable; gives it back if that is so already.
    pub fn wait(&mut self, waiter: W) -> Option<W> {
        if self.needs_sync() {
            self.next.waiters.push(waiter);
            return None;
        }
        match &mut self.syncing {
            Some(syncing) => {
                syncing.waiters.push(waiter);
                None
            }
            None => Some(waiter),
        }
    }

    /// A sync begins.
    pub fn begin_sync(&mut self) {
        debug_assert!(self.syncing.is_none(), "one sync at a time");
        self.has_sync_under_way = true;
        self.unflushed_before |= std::mem::take(&mut self.unflushed);
        let fresh = Backing::new(self.file).next;
        self.syncing = Some(std::mem::replace(&mut self.next, fresh));
    }

    /// A sync is done.
    pub fn end_sync(&mut self) -> Option<SyncedBacking<W>> {
        let SyncWaiters { settled, blocks, clears, waiters } = self.syncing.take()?;
        self.unflushed_before = false;
        for number in blocks {
            if let Some(count) = self.unsynced.get_mut(&number) {
                *count -= 1;
                if *count == 0 {
                    self.unsynced.remove(&number);
                }
            }
        }
        for range in clears {
            if let Some(place) = self.clearing.iter().position(|other| *other == range) {
                self.clearing.swap_remove(place);
            }
        }
        Some(SyncedBacking { settled, waiters })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    #[test]
    fn a_sync_covers_what_was_done_when_it_began() {
        let mut backing: Backing<u32> = Backing::new(FileId(1));
        let (version, place, checksum, dirty) = (Version(9), Place(7), None, true);
        let gone = Settled::Gone {
            number: 4,
            version,
            left: 2,
            place,
            noted: 1,
            checksum,
            group: 0,
            dirty,
        };
        assert_eq!(backing.wait(1), Some(1), "all is durable");
        backing.begin_write(4..6);
        assert!(backing.is_unsynced(5) && !backing.needs_sync());
        backing.end_write(4..6);
        backing.settle_later(gone);
        assert_eq!(backing.wait(2), None);
        backing.begin_sync();
        assert_eq!(backing.wait(3), None, "the sync under way covers all that is done");
        backing.begin_write(5..6);
        backing.end_write(5..6);
        assert_eq!(backing.wait(4), None);
        assert!(backing.is_syncing() && backing.needs_sync());
        let synced = backing.end_sync().unwrap();
        assert_eq!((synced.settled, synced.waiters), (vec![gone], vec![2, 3]));
        assert!(!backing.is_unsynced(4) && backing.is_unsynced(5));
        backing.begin_sync();
        assert_eq!(backing.end_sync().unwrap().waiters, [4]);
        assert!(!backing.is_unsynced(5) && backing.waiting() == 0);
    }

    #[test]
    fn a_block_that_one_decision_takes_away_twice_leaves_when_both_stays_have_ended() {
        let mut backing: Backing<u32> = Backing::new(FileId(1));
        backing.begin_leaving(5, 3);
        backing.begin_leaving(5, 3);
        backing.begin_overwrite(5, 3);
        assert_eq!(backing.leaving(), 3);
        assert!(!backing.keeps_one_copy(5, 3) && !backing.keeps_one_copy(5, 2));
        backing.end_leaving(5, 3);
        assert!(backing.keeps_one_copy(5, 3) && backing.keeps_one_copy(5, 4));
        assert!(backing.is_leaving(&(5..6), 3), "the other stay has not ended");
        backing.end_leaving(5, 3);
        assert!(!backing.is_leaving(&(5..6), 3), "what is overwritten is of that decision itself");
        assert!(backing.is_leaving(&(5..6), 4));
        backing.end_leaving(5, 3);
        assert!(!backing.is_leaving(&(5..6), 4) && backing.leaving() == 0);
    }

    #[test]
    fn a_device_lacks_what_left_since_it_was_zeroed() {
        let mut backing: Backing<u32> = Backing::new(FileId(1));
        assert!(!backing.is_behind_log(7));
        backing.begin_leaving(7, 3);
        backing.begin_overwrite(8, 3);
        assert!(backing.is_behind_log(7) && backing.is_behind_log(8) && !backing.is_behind_log(6));
        backing.begin_clear(0..8);
        backing.end_clear(0..8, Some(3));
        assert!(!backing.is_behind_log(7) && backing.is_behind_log(8));
        backing.begin_leaving(7, 9);
        assert!(backing.is_behind_log(7), "it left again later");
        backing.end_leaving(7, 9);
        assert!(!backing.is_behind_log(7));
    }

    #[test]
    fn zeroes_are_durable_when_nothing_that_left_before_them_is_in_the_log() {
        let mut backing: Backing<u32> = Backing::new(FileId(1));
        backing.begin_leaving(7, 3);
        backing.begin_leaving(7, 9);
        assert!(backing.is_leaving(&(6..8), 3) && !backing.is_leaving(&(6..8), 2));
        backing.begin_clear(0..100);
        assert!(backing.is_unsynced(50));
        backing.end_clear(0..100, Some(5));
        backing.end_clear(8..9, Some(20));
        assert!(backing.holds_zeroed());
        backing.end_leaving(7, 3);
        assert!(!backing.holds_zeroed(), "block 7 left again later");
        assert_eq!(backing.leaving(), 1);
        backing.begin_sync();
        backing.end_sync();
        assert!(!backing.is_unsynced(50));
        backing.settle_later(Settled::Clean { number: 1, content: Version(1) });
        let failed = backing.fail();
        assert!(backing.has_failed() && failed.settled.len() == 1 && !backing.needs_sync());
    }
}
