//! Which bytes of a volume have space on its backing device.
//!
//! For: clients that copy only what is there. Must never know: protocols. Units: bytes, blocks. A
//! hole of the backing device is one of the volume unless the cache may have newer content: that is
//! found out before the backing device is asked, because a block that is written back meanwhile may
//! be counted as clean after a look that came before its content.

use super::bypass::Passage;
use super::server::{BlockServer, State};
use crate::io::{ALIGNMENT, FileExtent, Io, IoOp, Output, Token};
use cachewright_types::{TenantId, block_numbers};
use std::ops::Range;

/// Blocks that one look covers: beyond them the client asks again.
const MAX_BLOCKS: u64 = 1 << 15;

/// A look at a range of a volume, while its backing device is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationQuery {
    /// The bytes that were asked for, as far as one look goes.
    bytes: Range<u64>,
    /// Runs of bytes of which the backing device may not have the newest content, in order.
    newer: Vec<Range<u64>>,
}

impl AllocationQuery {
    /// What was found, from the start of the range on: at least one extent, and no two alike side
    /// by side. All counts as data where the backing device did not say.
    pub fn end(self, output: Output) -> Vec<FileExtent> {
        let Range { start, end } = self.bytes;
        let of_device = match output {
            Output::Extents(extents) if !extents.is_empty() => extents,
            _ => vec![FileExtent { bytes: u64::MAX, is_hole: false }],
        };
        let mut found: Vec<FileExtent> = Vec::new();
        let mut push = |bytes: u64, is_hole: bool| match found.last_mut() {
            Some(last) if last.is_hole == is_hole => last.bytes += bytes,
            _ => found.push(FileExtent { bytes, is_hole }),
        };
        let mut newer = self.newer.into_iter().peekable();
        let mut position = start / ALIGNMENT as u64 * ALIGNMENT as u64;
        for FileExtent { bytes, is_hole } in of_device {
            let (mut from, to) = (position.max(start), position.saturating_add(bytes).min(end));
            position = to.max(position);
            while is_hole && from < to {
                while newer.next_if(|run| run.end <= from).is_some() {}
                let run = newer.peek().cloned().unwrap_or(end..end);
                let hole = run.start.clamp(from, to);
                let data = run.end.clamp(hole, to);
                [(hole - from, true), (data - hole, false)]
                    .into_iter()
                    .filter(|(bytes, _)| *bytes > 0)
                    .for_each(|(bytes, is_hole)| push(bytes, is_hole));
                from = data;
            }
            if from < to {
                push(to - from, false);
            }
        }
        found
    }
}

impl BlockServer {
    /// Begins to find out which bytes of a range of a tenant's volume are holes, in at most
    /// `max_extents` extents of its backing device; `token` is that of the operation, whose end its
    /// owner is told. Nothing if there is no such volume, or the range ends beyond it.
    pub fn begin_allocation(
        &self,
        io: &mut impl Io,
        token: Token,
        tenant: TenantId,
        bytes: Range<u64>,
        max_extents: usize,
    ) -> Option<AllocationQuery> {
        let state = self.look();
        let volume = state.volumes.get(tenant)?;
        if bytes.is_empty() || bytes.end > volume.bytes {
            return None;
        }
        let first = bytes.start >> state.block_shift;
        let bytes = bytes.start..bytes.end.min((first + MAX_BLOCKS) << state.block_shift);
        let newer = match state.bypass.volume(tenant).map(|volume| volume.passage) {
            None => state.newer(tenant, &bytes),
            Some(Passage::Passes) => Vec::new(),
            Some(_) => vec![bytes.clone()],
        };
        let offset = bytes.start / ALIGNMENT as u64 * ALIGNMENT as u64;
        let (file, length) = (volume.backing, bytes.end - offset);
        io.submit(token, IoOp::Extents { file, offset, length, max_extents });
        Some(AllocationQuery { bytes, newer })
    }
}

impl State {
    /// Runs of bytes of blocks whose newest content the backing device may not have.
    fn newer(&self, tenant: TenantId, bytes: &Range<u64>) -> Vec<Range<u64>> {
        let blocks = block_numbers(bytes.start, bytes.end - bytes.start, self.block_shift);
        let copies = &self.content.copies;
        let leaving = copies.leaving(tenant, blocks.clone());
        let mut left: Vec<u64> = leaving.map(|copy| copies.get(copy).number).collect();
        left.sort_unstable();
        let backing = self.volumes.backing(tenant);
        let mut runs: Vec<Range<u64>> = Vec::new();
        for number in blocks {
            let is_newer = self.is_newer_in_cache(tenant, number)
                || left.binary_search(&number).is_ok()
                || backing.is_behind_log(number)
                || self.has_stranded(tenant, number);
            if !is_newer {
                continue;
            }
            let start = number << self.block_shift;
            let end = start + (1 << self.block_shift);
            match runs.last_mut() {
                Some(run) if run.end == start => run.end = end,
                _ => runs.push(start..end),
            }
        }
        runs
    }

    /// Whether a block is cached and its backing device may have older content.
    fn is_newer_in_cache(&self, tenant: TenantId, number: u64) -> bool {
        let Some(copy) = self.cached(tenant, number) else { return false };
        let stored = self.content.copies.stored(copy);
        // What has not come to the log yet is on its way there.
        stored.is_none_or(|stored| stored.dirty) || self.content.copies.is_changing(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(bytes: u64, is_hole: bool) -> FileExtent {
        FileExtent { bytes, is_hole }
    }

    #[test]
    fn holes_are_those_of_the_device_without_what_the_cache_has() {
        let query =
            |newer: &[Range<u64>]| AllocationQuery { bytes: 4100..40_960, newer: newer.to_vec() };
        let device = || {
            let found = vec![extent(8192, true), extent(4096, false), extent(40_960, true)];
            Output::Extents(found)
        };
        let found = query(&[]).end(device());
        assert_eq!(found, [extent(8188, true), extent(4096, false), extent(24_576, true)]);
        let found = query(&[0..8192, 12_288..16_384, 20_480..24_576, 36_864..45_056]).end(device());
        let expected = [
            extent(4092, false),
            extent(4096, true),
            extent(4096, false),
            extent(4096, true),
            extent(4096, false),
            extent(12_288, true),
            extent(4096, false),
        ];
        assert_eq!(found, expected);
        assert_eq!(found.iter().map(|one| one.bytes).sum::<u64>(), 40_960 - 4100);
        for silent in [Output::Nothing, Output::Extents(Vec::new())] {
            assert_eq!(query(&[]).end(silent), [extent(40_960 - 4100, false)]);
        }
    }
}
