//! What to read before it is asked for, as Linux does.
//!
//! Source: Wu, Xi and Xu, "On the design of a new Linux readahead framework", OSR 42(5), 2008: the
//! window starts small, doubles with each window used up, and the next one is asked for when half
//! of the last is left. A random read takes over the stream used longest ago and halves the window
//! of the one used last, so that seldom-sequential readers read little ahead.

use super::machine::{MachineSettings, ReadAhead};

/// One stream of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ReadStream {
    /// The block that continues it.
    next: u64,
    /// The first block not yet asked for.
    ahead: u64,
    /// Blocks of the last window.
    last: u64,
    /// Blocks of the next window.
    window: u64,
    /// When it was last used, in reads of its tenant.
    used: u64,
}

/// The streams of one tenant.
#[derive(Clone, Debug)]
pub struct ReadStreams {
    streams: Vec<ReadStream>,
    max_streams: usize,
    min_blocks: u64,
    max_blocks: u64,
    reads: u64,
}

impl ReadStreams {
    /// What a machine with blocks of `1 << shift` bytes reads ahead for one tenant, if anything.
    pub fn for_machine(settings: &MachineSettings, shift: u32) -> Option<ReadStreams> {
        let streams = ReadStreams::new(
            settings.read_ahead_streams as usize,
            settings.read_ahead_min.0 >> shift,
            settings.read_ahead_max.0 >> shift,
        );
        (settings.read_ahead != ReadAhead::None).then_some(streams)
    }

    /// Up to `max_streams` streams with windows from `min_blocks` to `max_blocks`, at least one
    /// block.
    fn new(max_streams: usize, min_blocks: u64, max_blocks: u64) -> ReadStreams {
        let min_blocks = min_blocks.max(1);
        let max_blocks = max_blocks.max(min_blocks);
        ReadStreams { streams: Vec::new(), max_streams, min_blocks, max_blocks, reads: 0 }
    }

    /// Tells of a read of `first..end`; returns the blocks to read ahead, often none.
    pub fn read(&mut self, first: u64, end: u64) -> std::ops::Range<u64> {
        self.reads += 1;
        let (reads, max) = (self.reads, self.max_blocks);
        // Two reads of one block in a row are still sequential.
        let continues = |stream: &&mut ReadStream| first <= stream.next && stream.next <= end;
        let Some(stream) = self.streams.iter_mut().find(continues) else {
            self.start(end);
            return 0..0;
        };
        stream.used = reads;
        stream.next = end;
        stream.ahead = stream.ahead.max(end);
        if 2 * (stream.ahead - end) > stream.last {
            return 0..0;
        }
        let wanted = stream.ahead..stream.ahead + stream.window;
        stream.ahead = wanted.end;
        stream.last = stream.window;
        stream.window = (2 * stream.window).min(max);
        wanted
    }

    /// A random read: a stream begins, and the one used last is trusted less.
    fn start(&mut self, end: u64) {
        let min = self.min_blocks;
        if let Some(last) = self.streams.iter_mut().max_by_key(|stream| stream.used) {
            last.window = (last.window / 2).max(min);
        }
        let fresh = ReadStream { next: end, ahead: end, last: 0, window: min, used: self.reads };
        if self.streams.len() < self.max_streams {
            self.streams.push(fresh);
        } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used) {
            *oldest = fresh;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_doubles_behind_sequential_reads() {
        let mut streams = ReadStreams::new(1, 4, 32);
        assert_eq!(streams.read(0, 1), 0..0, "the first read may be random");
        assert_eq!(streams.read(1, 2), 2..6);
        assert_eq!(streams.read(2, 3), 0..0);
        assert_eq!(streams.read(3, 4), 6..14, "half of the last window is left");
        let mut windows = Vec::new();
        for block in 4..100 {
            let ahead = streams.read(block, block + 1);
            if !ahead.is_empty() {
                windows.push(ahead.end - ahead.start);
            }
        }
        assert_eq!(windows, [16, 32, 32, 32]);
    }

    #[test]
    fn random_reads_read_nothing_ahead_and_shrink_the_window() {
        let mut streams = ReadStreams::new(2, 4, 32);
        for block in 0..40 {
            streams.read(block, block + 1);
        }
        for far in [1000, 5000, 9000] {
            assert_eq!(streams.read(far, far + 1), 0..0);
        }
        assert_eq!(streams.read(40, 41), 0..0, "the old stream has been given up");
        assert_eq!(streams.read(41, 42), 42..46, "and begins small again");
    }

    #[test]
    fn streams_in_turn_are_told_apart() {
        let mut streams = ReadStreams::new(2, 4, 32);
        streams.read(0, 1);
        streams.read(1000, 1001);
        assert_eq!(streams.read(1, 2), 2..6);
        assert_eq!(streams.read(1001, 1002), 1002..1006);
    }
}
