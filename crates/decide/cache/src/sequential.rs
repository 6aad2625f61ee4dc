//! Which requests go past the cache because they continue a long sequential stream, in a recorded
//! trace as in a served volume.
//!
//! A stream is a series of reads, or of writes, of one volume, each of which begins where the one
//! before it ended. A request is cut off if its stream, the request included, has reached the
//! cut-off. Of each volume the streams that were continued last are remembered. Why: C-37 of
//! docs/design/cache.md; Open CAS and bcache cut off by rules of this kind.

use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{Op, Request};
use std::collections::BTreeMap;

/// When requests are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequentialCutoff {
    /// Bytes of a stream from which on its requests go past the cache; at least 1.
    pub bytes: u64,
    /// Streams of a volume that are remembered; at least 1.
    pub streams: u32,
}

/// The streams of all volumes.
#[derive(Clone, Debug, Snapshot)]
pub struct SequentialStreams {
    #[snapshot(settings)]
    cutoff: SequentialCutoff,
    volumes: Vec<VolumeStreams>,
}

impl SequentialStreams {
    /// No streams yet.
    pub fn new(cutoff: SequentialCutoff) -> SequentialStreams {
        SequentialStreams { cutoff, volumes: Vec::new() }
    }

    /// Takes the next read or write of a volume, by the volume's number; returns whether it goes
    /// past the cache. Trims and flushes belong to no stream.
    pub fn cuts_off(&mut self, volume: usize, write: bool, offset: u64, length: u64) -> bool {
        if self.volumes.len() <= volume {
            self.volumes.resize(volume + 1, VolumeStreams::default());
        }
        let volume = &mut self.volumes[volume];
        let bytes = volume.continue_stream(StreamEnd { end: offset, write }, length);
        volume.keep_latest(self.cutoff.streams);
        bytes >= self.cutoff.bytes
    }

    /// The same for the next request of any kind, where each tenant has one volume.
    pub fn cuts_off_next(&mut self, request: &Request) -> bool {
        let is_data = matches!(request.op, Op::Read | Op::Write);
        let (write, length) = (request.op == Op::Write, request.length.0);
        is_data && self.cuts_off(request.tenant.index(), write, request.offset.0, length)
    }
}

/// Where the next request of a stream would begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, SnapshotValue)]
struct StreamEnd {
    end: u64,
    write: bool,
}

/// What is known of a stream.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct Stream {
    /// Its length so far.
    bytes: u64,
    /// The number of its last request among those of the volume.
    last: u64,
}

/// The streams of one volume.
#[derive(Clone, Debug, Default, SnapshotValue)]
struct VolumeStreams {
    /// At most one stream ends at a place: another that comes to end there takes its part.
    by_end: BTreeMap<StreamEnd, Stream>,
    /// The ends of the same streams by the number of their last request.
    by_last: BTreeMap<u64, StreamEnd>,
    requests: u64,
}

impl VolumeStreams {
    /// Continues the stream that ends where a request begins, or begins one; returns its bytes, the
    /// request included.
    fn continue_stream(&mut self, start: StreamEnd, length: u64) -> u64 {
        let before = self.remove(start).map_or(0, |stream| stream.bytes);
        let end = StreamEnd { end: start.end.saturating_add(length), ..start };
        self.remove(end);
        let stream = Stream { bytes: before.saturating_add(length), last: self.requests };
        self.by_end.insert(end, stream);
        self.by_last.insert(stream.last, end);
        self.requests += 1;
        stream.bytes
    }

    fn remove(&mut self, end: StreamEnd) -> Option<Stream> {
        let stream = self.by_end.remove(&end)?;
        self.by_last.remove(&stream.last);
        Some(stream)
    }

    /// Forgets the streams that were not continued for the longest, until so many are left.
    fn keep_latest(&mut self, streams: u32) {
        while self.by_end.len() > streams as usize {
            let Some((_, end)) = self.by_last.pop_first() else { return };
            self.by_end.remove(&end);
        }
    }
}
