//! What is left of a trim that is carried out in pieces.
//!
//! For: the next block or id to look at. Must never know: the index, the policy. A trim may cover a
//! volume, so it costs the smaller of its blocks and the ids that the pool had when it began. By
//! ascending number blocks leave either way, as in a replay: to some policies the order matters.
//! Unit: blocks.

use crate::index::BlockAddress;
use cachewright_types::{BlockId, Request, TenantId, whole_block_numbers};
use std::collections::BTreeSet;
use std::ops::Range;

/// What to look at next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The block of this number.
    Number(u64),
    /// The block of this id: [`TrimRest::note`] is to be told its address.
    Id(BlockId),
}

/// The rest of a trim.
#[derive(Clone, Debug)]
pub struct TrimRest {
    tenant: TenantId,
    /// Numbers of the blocks that lie wholly inside.
    blocks: Range<u64>,
    /// What has not been looked at: numbers, or ids if these are fewer.
    rest: Range<u64>,
    by_id: bool,
    /// Blocks of ids that were looked at.
    found: BTreeSet<u64>,
}

impl TrimRest {
    pub(crate) fn new(request: &Request, block_shift: u32, ids: usize) -> TrimRest {
        let blocks = whole_block_numbers(request.offset.0, request.length.0, block_shift);
        let by_id = blocks.end - blocks.start > ids as u64;
        let rest = if by_id { 0..ids as u64 } else { blocks.clone() };
        let found = BTreeSet::new();
        TrimRest { tenant: request.tenant, blocks, rest, by_id, found }
    }

    /// The tenant whose volume is trimmed.
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    pub(crate) fn next(&mut self) -> Option<Target> {
        match self.rest.next() {
            Some(next) if self.by_id => Some(Target::Id(BlockId(next as u32))),
            Some(next) => Some(Target::Number(next)),
            None => self.found.pop_first().map(Target::Number),
        }
    }

    /// The address of an id that was looked at.
    pub(crate) fn note(&mut self, address: BlockAddress) {
        if address.tenant == self.tenant && self.blocks.contains(&address.number) {
            self.found.insert(address.number);
        }
    }
}
