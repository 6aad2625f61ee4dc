//! Lives of segments: each from one reset to the next.
//!
//! For: which pages are on their way to a segment, which reads of it are under way, and when it may
//! be reset. Must never know: devices, requests. Units: pages, nanoseconds. A segment that is
//! emptied begins a new life at once, to which pages are already given. None of them is written
//! before the old life has ended. The old life ends when its moved pages lie elsewhere, pages under
//! way to it have arrived, and no read of it is left.

use crate::slab::{NIL, Slab};
use std::collections::BTreeMap;

/// A moment that has not come.
pub const NOT_YET_NS: u64 = u64::MAX;

/// One life of a segment.
#[derive(Clone, Debug, Default)]
pub struct SegmentLife {
    /// The segment.
    pub segment: u32,
    /// When it could first be written to.
    pub opened_ns: u64,
    /// Pages of requests that can be written, by their place.
    pub host: BTreeMap<u32, u32>,
    /// Other pages that can be written, by their place.
    pub moves: BTreeMap<u32, u32>,
    /// Pages that are still to arrive.
    pub pending: u32,
    /// Those of them that requests write.
    pub host_pending: u32,
    /// Appends under way.
    pub under_way: u32,
    /// Reads under way or queued.
    pub readers: u32,
    /// Pages moved out of it that have not arrived elsewhere.
    pub moves_left: u32,
    /// The life that follows; [`NIL`] while it is not emptied.
    pub next: u32,
    /// The reset has begun.
    pub resetting: bool,
}

impl SegmentLife {
    /// Whether the segment can be written to.
    pub fn is_open(&self) -> bool {
        self.opened_ns != NOT_YET_NS
    }

    /// Whether nothing of an emptied segment is needed any more.
    pub fn is_over(&self) -> bool {
        let left = self.pending + self.readers + self.moves_left;
        self.next != NIL && !self.resetting && left == 0 && self.is_open()
    }
}

/// All lives under way.
#[derive(Clone, Debug)]
pub struct Lives {
    all: Slab<SegmentLife>,
    /// The life of each segment to which pages are given.
    current: Vec<u32>,
}

impl Lives {
    /// The first lives of so many segments, open.
    pub fn new(segments: u32) -> Lives {
        let mut all = Slab::default();
        let current = (0..segments)
            .map(|segment| all.insert(SegmentLife { segment, next: NIL, ..SegmentLife::default() }))
            .collect();
        Lives { all, current }
    }

    /// The life to which pages of a segment are given.
    pub fn life_of(&self, segment: u32) -> u32 {
        self.current[segment as usize]
    }

    /// A life.
    pub fn get(&self, life: u32) -> Option<&SegmentLife> {
        self.all.get(life)
    }

    /// A life, to be changed.
    pub fn get_mut(&mut self, life: u32) -> Option<&mut SegmentLife> {
        self.all.get_mut(life)
    }

    /// A segment was emptied: its next life begins. Returns the one that is to end.
    pub fn condemn(&mut self, segment: u32) -> u32 {
        let ending = self.life_of(segment);
        let fresh =
            SegmentLife { segment, opened_ns: NOT_YET_NS, next: NIL, ..SegmentLife::default() };
        let next = self.all.insert(fresh);
        self.current[segment as usize] = next;
        if let Some(life) = self.all.get_mut(ending) {
            life.next = next;
        }
        ending
    }

    /// A life has ended: the one after it is open from now on. Returns that one and how many pages
    /// of requests have waited for it.
    pub fn end(&mut self, life: u32, now_ns: u64) -> Option<(u32, u32)> {
        let next = self.all.take(life)?.next;
        let opened = self.all.get_mut(next)?;
        opened.opened_ns = now_ns;
        Some((next, opened.host_pending))
    }

    /// Every life with its number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &SegmentLife)> {
        self.all.iter()
    }

    /// Checks that every segment has one life to which pages are given, and that pages that can be
    /// written are among those to arrive. Errors: the rule broken.
    pub fn audit(&self) -> Result<(), String> {
        for (segment, life) in self.current.iter().enumerate() {
            match self.all.get(*life) {
                Some(found) if found.segment as usize == segment && found.next == NIL => {}
                _ => return Err(format!("segment {segment} has no life of its own")),
            }
        }
        for (number, life) in self.iter() {
            let ready = (life.host.len() + life.moves.len()) as u32;
            if ready > life.pending || life.host_pending > life.pending {
                return Err(format!("life {number}: {ready} of {} pages ready", life.pending));
            }
            if life.is_over() {
                return Err(format!("life {number} is over and its segment is not reset"));
            }
        }
        Ok(())
    }
}
