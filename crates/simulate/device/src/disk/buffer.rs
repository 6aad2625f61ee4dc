//! The track buffer: what a disk has read and still holds, and what it goes on reading unasked.
//!
//! Units: sectors, nanoseconds. Source: Ruemmler and Wilkes, IEEE Computer 27(3), 1994, "data
//! caching" (segments, read-ahead while idle).
//!
//! One stream is under the heads at a time. After the last read it reads ahead until its limit, or
//! until the arm is needed elsewhere. What it has read then becomes an old segment.

use super::geometry::DiskGeometry;
use std::collections::VecDeque;

/// Sectors held, `first..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SectorRange {
    first: u64,
    end: u64,
}

/// What the heads read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DiskReadAhead {
    /// First sector held.
    first: u64,
    /// The sector that began to pass at `from_ns`; those before are held.
    from: u64,
    /// See `from`.
    from_ns: u64,
    /// Where reading on stops.
    limit: u64,
}

impl DiskReadAhead {
    /// Whether a sector is or will be among those read.
    fn may_hold(&self, sector: u64) -> bool {
        (self.first..=self.limit).contains(&sector)
    }
}

/// The buffer of one disk.
#[derive(Clone, Debug)]
pub struct TrackBuffer {
    stream: Option<DiskReadAhead>,
    /// The most recently used is last.
    old: VecDeque<SectorRange>,
    segments: usize,
    segment_sectors: u64,
    ahead_sectors: u64,
}

impl TrackBuffer {
    /// A buffer of `segments` segments of `segment_sectors`; after each read `ahead_sectors` more
    /// are read, at most a segment. Without segments nothing is held or read ahead.
    pub fn new(segments: usize, segment_sectors: u64, ahead_sectors: u64) -> TrackBuffer {
        let ahead_sectors = ahead_sectors.min(segment_sectors);
        TrackBuffer { stream: None, old: VecDeque::new(), segments, segment_sectors, ahead_sectors }
    }

    /// Whether `first..end` is held at `now_ns`. A hit in the stream lets it read on.
    pub fn hit(&mut self, disk: &DiskGeometry, first: u64, end: u64, now_ns: u64) -> bool {
        if let Some(stream) = self.stream.filter(|stream| stream.may_hold(first)) {
            let reached = self.reached(disk, &stream, now_ns);
            if first >= self.held_from(&stream, reached) && end <= reached {
                self.read_on(disk, end, reached, now_ns);
                return true;
            }
        }
        let holds = |segment: &SectorRange| first >= segment.first && end <= segment.end;
        let Some(found) = self.old.iter().position(holds) else { return false };
        if let Some(segment) = self.old.remove(found) {
            self.old.push_back(segment);
        }
        true
    }

    /// When the stream will have read `first..end`, if it comes there by itself.
    pub fn arrives_ns(
        &self,
        disk: &DiskGeometry,
        first: u64,
        end: u64,
        now_ns: u64,
    ) -> Option<u64> {
        let stream = self.stream.filter(|stream| stream.may_hold(first))?;
        let reached = self.reached(disk, &stream, now_ns);
        let runs = reached < stream.limit;
        let comes = if runs { first < stream.limit } else { end <= stream.limit };
        if !comes || first < self.held_from(&stream, reached) || end <= stream.from {
            return None;
        }
        Some(stream.from_ns + disk.pass_ns(stream.from, end - stream.from))
    }

    /// The stream serves a read up to `end`: it may go on further.
    pub fn serve(&mut self, end: u64, disk: &DiskGeometry) {
        let limit = self.limit_after(end, disk);
        if let Some(stream) = &mut self.stream {
            stream.limit = stream.limit.max(limit);
        }
    }

    /// A new stream begins: `first..end` is asked for and begins to pass at `from_ns`.
    pub fn start(&mut self, first: u64, end: u64, from_ns: u64, disk: &DiskGeometry) {
        if self.segments > 0 {
            let limit = self.limit_after(end, disk);
            self.stream = Some(DiskReadAhead { first, from: first, from_ns, limit });
        }
    }

    /// The arm is wanted elsewhere: returns the sector under the heads, if the stream has moved
    /// them, and keeps what was read.
    pub fn stop(&mut self, disk: &DiskGeometry, now_ns: u64) -> Option<u64> {
        let stream = self.stream.take()?;
        let reached = self.reached(disk, &stream, now_ns);
        let first = self.held_from(&stream, reached);
        if reached > first && self.segments > 1 {
            if self.old.len() + 1 >= self.segments {
                self.old.pop_front();
            }
            self.old.push_back(SectorRange { first, end: reached });
        }
        Some(reached.max(stream.first + 1) - 1)
    }

    /// Forgets what a write makes stale; the stream must have been stopped.
    pub fn invalidate(&mut self, first: u64, end: u64) {
        self.old.retain(|segment| end <= segment.first || first >= segment.end);
    }

    /// Checks that segments are within their size. Errors: the segment that is not, in words.
    pub fn audit(&self) -> Result<(), String> {
        let wrong = |s: &&SectorRange| s.first >= s.end || s.end - s.first > self.segment_sectors;
        match self.old.iter().find(wrong) {
            Some(segment) => Err(format!("segment {segment:?} beyond {}", self.segment_sectors)),
            None if self.old.len() >= self.segments.max(1) => Err("too many segments".to_owned()),
            None => Ok(()),
        }
    }

    fn limit_after(&self, end: u64, disk: &DiskGeometry) -> u64 {
        (end + self.ahead_sectors).min(disk.sectors().max(end))
    }

    /// The first sector not yet read.
    fn reached(&self, disk: &DiskGeometry, stream: &DiskReadAhead, now_ns: u64) -> u64 {
        let time_ns = now_ns.saturating_sub(stream.from_ns);
        stream.from + disk.passed(stream.from, time_ns, stream.limit - stream.from)
    }

    fn held_from(&self, stream: &DiskReadAhead, reached: u64) -> u64 {
        stream.first.max(reached.saturating_sub(self.segment_sectors))
    }

    /// Moves the limit after a hit; a stream that had stopped there waits for its next sector.
    fn read_on(&mut self, disk: &DiskGeometry, end: u64, reached: u64, now_ns: u64) {
        let limit = self.limit_after(end, disk);
        let Some(stream) = &mut self.stream else { return };
        if limit <= stream.limit {
            return;
        }
        if reached == stream.limit {
            stream.from = reached;
            stream.from_ns = now_ns + disk.wait_ns(disk.place(reached).angle, now_ns);
        }
        stream.limit = limit;
    }
}
