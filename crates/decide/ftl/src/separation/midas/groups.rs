//! MiDAS: the groups at hand, their victims and their changes.
//!
//! For: which superblock is collected, where its valid pages go, how groups are made and merged.
//! Must never know: why a configuration was chosen. Units: superblocks. Source: MiDAS (FAST'24),
//! sections 4.1 and 4.5, and its simulator. Group `i` is stream `i`: the hot group 0, queues of
//! designated size 1..L-1, the last group L, cleaned by the reclaim policy. While *pooled* (no
//! configuration is trusted) L..L+3 are levels of one pool (MiDA): each move lifts a page by one.
//! Where groups merge, the simulator copies or seals half-filled open superblocks. Here pages of
//! the last group fill them first, so that no space is lost.

use super::chain::MAX_GROUPS;
use crate::blocks::{Block, Superblocks};
use crate::separation::{Stream, VictimSource};

/// Levels of the pool.
const LEVELS: u8 = 4;
/// Streams in use at most.
pub const STREAMS: u8 = MAX_GROUPS as u8 + LEVELS - 1;

/// Groups and their designated sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamGroups {
    last: u8,
    pooled: bool,
    /// Sealed superblocks that a queue may hold.
    sizes: [u32; MAX_GROUPS],
    /// Streams whose open superblock has room, a bit each.
    open: u64,
    /// Whether a superblock was sealed on a stream above the highest in use.
    stray: bool,
}

impl Default for StreamGroups {
    /// One pool, of which the hot group is part.
    fn default() -> StreamGroups {
        StreamGroups { last: 1, pooled: true, sizes: [0; MAX_GROUPS], open: 0, stray: false }
    }
}

impl StreamGroups {
    /// The last group.
    pub fn last(&self) -> u8 {
        self.last
    }

    /// Whether the last group and those above are one pool.
    pub fn pooled(&self) -> bool {
        self.pooled
    }

    /// The highest stream in use.
    pub fn top(&self) -> u8 {
        if self.pooled { self.last + LEVELS - 1 } else { self.last }
    }

    /// The stream of pages that the host writes.
    #[inline(always)]
    pub fn user(&mut self, hot: bool) -> Stream {
        let stream = Stream(u8::from(!hot));
        self.open |= stream.mask();
        stream
    }

    /// The stream of valid pages of a victim of `group`.
    #[inline(always)]
    pub fn above(&mut self, group: u8) -> Stream {
        let top = self.top();
        let next = Stream((group + 1).min(top));
        let left_open = self.open >> (top + 1);
        let stream = if next.0 == top && left_open != 0 {
            Stream(top + 1 + left_open.trailing_zeros() as u8)
        } else {
            next
        };
        self.open |= stream.mask();
        stream
    }

    /// A superblock was sealed.
    pub fn sealed(&mut self, block: &Block) {
        self.open &= !block.stream.mask();
        self.stray |= block.stream.0 > self.top();
    }

    /// The next victim and its group. It is the oldest superblock of the first queue that is too
    /// long, else the choice of the reclaim policy in the last group.
    pub fn choose(&mut self, blocks: &mut Superblocks) -> (VictimSource, u8) {
        if self.stray {
            self.stray = false;
            let top = self.top();
            (top + 1..STREAMS).for_each(|stream| move_all(blocks, stream, top));
        }
        if self.last == 1 {
            return (VictimSource::Any, 1);
        }
        for group in 0..self.last {
            let stream = Stream(group);
            if blocks.sealed_in(stream) > self.sizes[usize::from(group)]
                && let Some(oldest) = blocks.oldest(stream)
            {
                return (VictimSource::Block(oldest), group);
            }
        }
        (VictimSource::Among(u64::MAX << self.last), self.last)
    }

    /// Takes on a configuration of these sizes, open superblocks included. Superblocks of the last
    /// group go to the new last group; queues that are too long give their oldest to it.
    pub fn configure(&mut self, sizes: &[u32], blocks: &mut Superblocks) {
        let last = (sizes.len().min(MAX_GROUPS) - 1) as u8;
        let lowest = self.last.min(last);
        (lowest..STREAMS).filter(|stream| *stream != last).for_each(|stream| {
            move_all(blocks, stream, last);
        });
        (self.last, self.pooled, self.stray) = (last, false, false);
        for (group, size) in sizes.iter().enumerate().take(MAX_GROUPS) {
            // One superblock of each queue is open; group 1 keeps one more free.
            self.sizes[group] = size.saturating_sub(if group == 1 { 2 } else { 1 });
        }
        for group in 0..last {
            let stream = Stream(group);
            while blocks.sealed_in(stream) > self.sizes[usize::from(group)]
                && let Some(oldest) = blocks.oldest(stream)
                && blocks.move_to_stream(oldest, Stream(last))
            {}
        }
    }

    /// Merges the groups from `first` (at least 1) up to the last into a pool that begins there.
    pub fn merge(&mut self, first: u8, blocks: &mut Superblocks) {
        let first = first.clamp(1, self.last);
        (first + 1..=self.last).for_each(|stream| move_all(blocks, stream, first));
        if first < self.last && self.pooled {
            (1..LEVELS).for_each(|level| {
                move_all(blocks, self.last + level, first + level);
            });
        }
        (self.last, self.pooled) = (first, true);
    }
}

/// Gives every sealed superblock of a stream to another, the oldest first.
fn move_all(blocks: &mut Superblocks, from: u8, to: u8) {
    while let Some(block) = blocks.oldest(Stream(from)) {
        if from == to || !blocks.move_to_stream(block, Stream(to)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Superblocks sealed on streams, in this order.
    fn sealed_on(streams: &[u8]) -> Superblocks {
        let mut blocks = Superblocks::new(4, crate::CleaningOrder::None);
        for (clock, stream) in streams.iter().enumerate() {
            let id = blocks.grow();
            blocks.open(id, Stream(*stream), clock as u64);
            blocks.seal(id, clock as u64);
        }
        blocks
    }

    fn held(blocks: &Superblocks) -> Vec<u32> {
        (0..6).map(|stream| blocks.sealed_in(Stream(stream))).collect()
    }

    #[test]
    fn queues_that_are_too_long_are_cleaned_first_and_in_order() {
        let mut blocks = sealed_on(&[0, 1, 1, 2, 3, 4, 4]);
        let mut groups = StreamGroups::default();
        assert_eq!(groups.choose(&mut blocks), (VictimSource::Any, 1));
        assert_eq!(
            (groups.above(0), groups.above(3), groups.above(4)),
            (Stream(1), Stream(4), Stream(4))
        );
        // Hot 2, then queues of 4 and 2, then the rest: levels 2, 3 and 4 become group 3.
        groups.configure(&[2, 4, 2, 90], &mut blocks);
        assert_eq!(groups.sizes[..4], [1, 2, 1, 89]);
        assert_eq!(held(&blocks), [1, 0, 0, 6, 0, 0]);
        assert_eq!(groups.choose(&mut blocks), (VictimSource::Among(u64::MAX << 3), 3));
        for stream in [0, 0, 1] {
            let id = blocks.grow();
            blocks.open(id, Stream(stream), 9);
            blocks.seal(id, 9);
        }
        assert_eq!(
            groups.choose(&mut blocks),
            (VictimSource::Block(0), 0),
            "the oldest of the hot"
        );
    }

    #[test]
    fn merged_groups_and_levels_keep_their_order() {
        let mut blocks = sealed_on(&[0, 1, 2, 3]);
        let mut groups = StreamGroups::default();
        groups.configure(&[9, 9, 9, 90], &mut blocks);
        assert_eq!(held(&blocks), [1, 0, 0, 3, 0, 0]);
        groups.merge(3, &mut blocks);
        assert_eq!((groups.last(), groups.top()), (3, 6));
        let mut blocks = sealed_on(&[0, 1, 2, 3, 4, 4, 5, 5, 5]);
        groups.merge(2, &mut blocks);
        assert_eq!((groups.last(), groups.top()), (2, 5));
        assert_eq!(held(&blocks), [1, 1, 2, 2, 3, 0]);
        groups.merge(0, &mut blocks);
        assert_eq!((groups.last(), held(&blocks)), (1, vec![1, 3, 2, 3, 0, 0]));
    }

    #[test]
    fn a_superblock_left_open_is_filled_by_the_last_group() {
        let mut groups = StreamGroups::default();
        assert_eq!(groups.above(3), Stream(4));
        groups.configure(&[2, 4, 90], &mut sealed_on(&[]));
        assert_eq!(groups.above(0), Stream(1));
        assert_eq!(groups.above(1), Stream(4), "rather than group 2");
        let mut blocks = sealed_on(&[4]);
        groups.sealed(&blocks.get(0));
        assert_eq!(groups.above(1), Stream(2));
        groups.choose(&mut blocks);
        assert_eq!(held(&blocks), [0, 0, 1, 0, 0, 0]);
    }
}
