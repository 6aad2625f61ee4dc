//! What each segment is used for.
//!
//! For: the choice of segments to begin and to clean. Must never know: devices, content. Units:
//! blocks, pages. Invariant: a segment is begun only after everything of its last generation is
//! void for recovery.

use super::format::Version;
use super::set::{SegmentId, WritePoint};
use std::collections::BTreeSet;

/// How far a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentUse {
    /// Nothing in it counts.
    Free,
    /// Groups are appended.
    Begun,
    /// It is full; its footer is not written yet.
    Full,
    /// Its footer is written.
    Sealed,
    /// Nothing in it is needed; that is on its way to the device.
    Emptied,
}

/// A segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// How far it is.
    pub usage: SegmentUse,
    /// How often it was begun.
    pub generation: u64,
    /// Blocks whose newest content lies here.
    pub live: u32,
    /// The oldest version of a block's content in it; the greatest number without content.
    pub oldest: Version,
    /// Records without content in it, and the newest version of one.
    pub notes: (u32, Version),
    /// The number of its last group.
    pub last_group: u64,
    /// The stream that fills it.
    pub stream: u32,
    /// The log's clock when it was begun, and when it was full.
    pub times: (u64, u64),
}

impl Segment {
    /// A record without content, of that version, stands in it.
    pub fn add_note(&mut self, version: Version) {
        self.notes = (self.notes.0 + 1, self.notes.1.max(version));
    }
}

/// All segments of a set.
#[derive(Clone, Debug)]
pub struct Segments {
    all: Vec<Segment>,
    /// Those that can be begun, by pool of devices.
    free: Vec<BTreeSet<SegmentId>>,
    /// The pool of each device; segments lie on the devices in turn.
    pools: Vec<usize>,
    /// The highest number of a group in a segment that was emptied.
    emptied: u64,
}

/// A version after all others.
const NONE_YET: Version = Version(u64::MAX);

impl Segments {
    /// So many segments, of these generations, all free and in one pool. Groups up to `emptied` may
    /// have stood in segments that were emptied.
    pub fn new(generations: impl IntoIterator<Item = u64>, emptied: u64) -> Segments {
        let fresh = |generation| Segment {
            usage: SegmentUse::Free,
            generation,
            live: 0,
            oldest: NONE_YET,
            notes: (0, Version::default()),
            last_group: 0,
            stream: 0,
            times: (0, 0),
        };
        let all: Vec<Segment> = generations.into_iter().map(fresh).collect();
        let free = vec![(0..all.len()).map(SegmentId::new).collect()];
        Segments { all, free, pools: vec![0], emptied }
    }

    /// Segments are in the pools of their devices from now on.
    pub fn divide(&mut self, pools: &[usize]) {
        self.pools = pools.to_vec();
        let count = pools.iter().max().map_or(1, |last| last + 1);
        let free = std::mem::replace(&mut self.free, vec![BTreeSet::new(); count]);
        for id in free.into_iter().flatten() {
            self.free[self.pools[id.index() % self.pools.len()]].insert(id);
        }
    }

    fn free_beside(&mut self, id: SegmentId) -> &mut BTreeSet<SegmentId> {
        &mut self.free[self.pools[id.index() % self.pools.len()]]
    }

    /// A segment.
    pub fn get(&self, id: SegmentId) -> &Segment {
        &self.all[id.index()]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (SegmentId, &Segment)> + '_ {
        self.all.iter().enumerate().map(|(index, segment)| (SegmentId::new(index), segment))
    }

    /// Groups up to this number may have stood in segments that were emptied.
    pub fn emptied(&self) -> u64 {
        self.emptied
    }

    /// Segments of a pool that can be begun.
    pub fn free(&self, pool: usize) -> usize {
        self.free[pool].len()
    }

    /// Begins the free segment of a pool that was begun least often, of those the lowest, for a
    /// stream.
    pub fn begin(
        &mut self,
        WritePoint { pool, stream }: WritePoint,
        clock: u64,
    ) -> Option<SegmentId> {
        let by_age = |id: &&SegmentId| (self.all[id.index()].generation, **id);
        let id = *self.free[pool].iter().min_by_key(by_age)?;
        self.free[pool].remove(&id);
        let segment = &mut self.all[id.index()];
        *segment = Segment {
            usage: SegmentUse::Begun,
            generation: segment.generation + 1,
            live: 0,
            oldest: NONE_YET,
            notes: (0, Version::default()),
            last_group: 0,
            stream: stream as u32,
            times: (clock, clock),
        };
        Some(id)
    }

    /// A segment as recovery found it.
    pub fn restore(&mut self, id: SegmentId, found: Segment) {
        if found.usage != SegmentUse::Free {
            self.free_beside(id).remove(&id);
        }
        self.all[id.index()] = found;
    }

    /// A segment goes on to its next use; [`Segments::begin`] begins one.
    pub fn set_usage(&mut self, id: SegmentId, usage: SegmentUse) {
        self.all[id.index()].usage = usage;
        if usage == SegmentUse::Emptied {
            self.emptied = self.emptied.max(self.all[id.index()].last_group);
        }
        if usage == SegmentUse::Free {
            self.all[id.index()].live = 0;
            self.all[id.index()].oldest = NONE_YET;
            self.all[id.index()].notes = (0, Version::default());
            self.free_beside(id).insert(id);
        }
    }

    /// A segment is full.
    pub fn note_full(&mut self, id: SegmentId, clock: u64) {
        self.all[id.index()].times.1 = clock;
        self.set_usage(id, SegmentUse::Full);
    }

    /// Segments of which no times are known, after a start: each was filled after those with
    /// earlier groups, by `blocks` writes. Returns the clock behind them.
    pub fn date(&mut self, blocks: u64) -> u64 {
        let used = |segment: &&mut Segment| segment.usage != SegmentUse::Free;
        let mut used: Vec<&mut Segment> = self.all.iter_mut().filter(used).collect();
        used.sort_by_key(|segment| segment.last_group);
        let mut clock = 0;
        for segment in used {
            segment.times = (clock, clock + blocks);
            clock += blocks;
        }
        clock
    }

    /// A record of that version, with content or without, is appended by a group.
    pub fn note_entry(&mut self, id: SegmentId, version: Version, has_data: bool) {
        let segment = &mut self.all[id.index()];
        if has_data {
            segment.live += 1;
            segment.oldest = segment.oldest.min(version);
        } else {
            segment.add_note(version);
        }
    }

    /// A group is appended.
    pub fn note_group(&mut self, id: SegmentId, number: u64) {
        self.all[id.index()].last_group = number;
    }

    /// A block's content in it is no longer the newest.
    pub fn note_dead(&mut self, id: SegmentId) {
        let segment = &mut self.all[id.index()];
        debug_assert!(segment.live > 0, "a block dies once");
        segment.live = segment.live.saturating_sub(1);
    }

    /// Whether a segment besides `but` holds content of `version` or older: only then must a record
    /// of that version, which takes content away, be kept.
    pub fn holds_older(&self, version: Version, but: SegmentId) -> bool {
        self.iter().any(|(id, segment)| id != but && segment.oldest <= version)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    #[test]
    fn segments_are_begun_in_turn_and_older_content_is_known() {
        let mut segments = Segments::new([0, 0, 4], 0);
        let point = |stream| WritePoint { pool: 0, stream };
        let [a, b] = [0, 1].map(|stream| segments.begin(point(stream), 0).unwrap());
        assert_eq!((a, b, segments.free(0)), (SegmentId(0), SegmentId(1), 1));
        segments.note_entry(a, Version(50), true);
        segments.note_entry(a, Version(40), true);
        assert!(segments.holds_older(Version(41), b));
        assert!(segments.holds_older(Version(40), b), "a record of the same version counts");
        assert!(!segments.holds_older(Version(39), b) && !segments.holds_older(Version(41), a));
        segments.note_entry(b, Version(45), false);
        segments.note_entry(b, Version(44), false);
        assert_eq!((segments.get(b).live, segments.get(b).notes), (0, (2, Version(45))));
        segments.note_dead(a);
        assert_eq!((segments.get(a).live, segments.get(a).generation), (1, 1));
        segments.set_usage(a, SegmentUse::Emptied);
        assert!(segments.holds_older(Version(41), b), "until it is void on the device");
        segments.set_usage(a, SegmentUse::Free);
        assert!(!segments.holds_older(Version(41), b));
        assert_eq!(segments.begin(point(0), 0), Some(a), "begun less often than the other");
    }

    #[test]
    fn a_pool_begins_segments_of_its_own_devices() {
        let mut segments = Segments::new([0; 6], 0);
        segments.divide(&[0, 1, 0]);
        assert_eq!([0, 1].map(|pool| segments.free(pool)), [4, 2]);
        let mut begin = |pool| segments.begin(WritePoint { pool, stream: 0 }, 0);
        let [first, second, none] = [begin(1), begin(1), begin(1)];
        assert_eq!([first, second, none], [Some(SegmentId(1)), Some(SegmentId(4)), None]);
        segments.set_usage(SegmentId(4), SegmentUse::Free);
        assert_eq!([0, 1].map(|pool| segments.free(pool)), [4, 1]);
    }

    #[test]
    fn segments_that_were_found_are_as_old_as_their_groups() {
        let mut segments = Segments::new([1, 1, 1], 0);
        for (index, last_group) in [(0, 9), (2, 4)] {
            let id = SegmentId::new(index);
            let found = Segment { usage: SegmentUse::Sealed, last_group, ..*segments.get(id) };
            segments.restore(id, found);
        }
        assert_eq!(segments.date(50), 100);
        let times = [0, 2].map(|index| segments.get(SegmentId::new(index)).times);
        assert_eq!(times, [(50, 100), (0, 50)]);
    }

    /// Random losses of power found it: a record that says that content is clean has the version of
    /// the content, and was dropped when that was the oldest content of all.
    #[test]
    fn a_record_is_kept_for_content_of_its_own_version() {
        let mut segments = Segments::new([0, 0], 0);
        let point = WritePoint::default();
        let [content, record] = [0; 2].map(|_| segments.begin(point, 0).unwrap());
        segments.note_entry(content, Version(40), true);
        segments.note_entry(record, Version(40), false);
        assert!(segments.holds_older(Version(40), record));
        assert!(!segments.holds_older(Version(40), content), "it goes with its own segment");
    }
}
