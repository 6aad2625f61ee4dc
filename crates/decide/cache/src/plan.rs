//! What must be done for one request, in order.
//!
//! A plan is reused from request to request; it holds no data, only names of blocks. That a write
//! must be durable before it is answered (FUA) is not a decision: it stays with the request. A
//! write that bypasses the cache is sent to the backing store once no older copy of its block can
//! come back. A store that keeps copies in a log first makes a tombstone durable, also where the
//! plan has no [`Move::Discard`]: the log may hold an older copy of a block that has left.

use crate::AccessOutcome;
use cachewright_policy::{BackgroundOp, Region, Verdict};
use cachewright_types::{BlockId, TenantId};

/// A block named on both sides: where it is cached and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cached {
    /// The pool and id under which the cache knows it.
    pub pool: u16,
    /// See `pool`.
    pub id: BlockId,
    /// The tenant whose volume it belongs to.
    pub tenant: TenantId,
    /// Its number on that volume, in units of the block size.
    pub number: u64,
    /// The region of the cache device in which the policy wants it.
    pub region: Region,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Read the block from the cache, or write it there.
    Serve(Cached),
    /// Read the block from the backing store.
    Fetch(Cached),
    /// Put the fetched block into the cache.
    Fill(Cached),
    /// Write a dirty block from the cache to the backing store; it leaves the cache.
    WriteBack(Cached),
    /// Write the request's bytes of the block to the backing store as well.
    WriteThrough(Cached),
    /// Write a dirty block from the cache to the backing store; it stays.
    Clean(Cached),
    /// Two blocks change places on the cache device.
    Swap(Box<[Cached; 2]>),
    /// Forget the cached copy, which the backing store has as well.
    Drop(Cached),
    /// Forget the cached copy, whose content is void: a trim, an invalidation, a copy that is lost.
    Discard {
        /// The block.
        cached: Cached,
        /// The backing store has older content.
        dirty: bool,
    },
    /// Read or write the block on the backing store only.
    Bypass {
        /// The tenant whose volume it belongs to.
        tenant: TenantId,
        /// Its number on that volume.
        number: u64,
    },
    /// Pass the request's own trim on to the backing store.
    Trim,
    /// Make earlier writes durable.
    Flush,
}

impl Move {
    /// The block that leaves the cache by it.
    #[inline(always)]
    pub(crate) fn leaving(&self) -> Option<&Cached> {
        match self {
            Move::WriteBack(cached) | Move::Drop(cached) | Move::Discard { cached, .. } => {
                Some(cached)
            }
            _ => None,
        }
    }
}

/// The steps of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which they depend on each other.
    pub moves: Vec<Move>,
    /// Whether every block of the request was found in the cache.
    pub all_hit: bool,
}

impl Plan {
    /// Holds no move from now on.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.moves.clear();
        self.all_hit = true;
    }

    /// A block leaves the cache: it is written back if it is dirty.
    #[inline(always)]
    pub(crate) fn leave(&mut self, cached: Cached, dirty: bool) {
        self.moves.push(if dirty { Move::WriteBack(cached) } else { Move::Drop(cached) });
    }

    /// A policy's background operation is carried out, on a block that is dirty or not; `named`
    /// gives the names of blocks.
    #[inline(always)]
    pub(crate) fn operate(
        &mut self,
        op: BackgroundOp,
        dirty: bool,
        named: impl Fn(BlockId) -> Cached,
    ) {
        match op {
            BackgroundOp::Demote(block) => self.leave(named(block), dirty),
            BackgroundOp::Clean(block) if dirty => self.moves.push(Move::Clean(named(block))),
            BackgroundOp::Clean(_) => {}
            BackgroundOp::Swap(one, other) => {
                self.moves.push(Move::Swap(Box::new([named(one), named(other)])));
            }
        }
    }

    /// A block is read; `named` gives the name of the block that leaves for it.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        cached: Cached,
        outcome: AccessOutcome,
        named: impl Fn(BlockId) -> Cached,
    ) {
        match outcome.verdict {
            Verdict::Hit => self.moves.push(Move::Serve(cached)),
            Verdict::Admit { evicted } => {
                self.evict(evicted, outcome.writeback, named);
                self.moves.extend([Move::Fetch(cached), Move::Fill(cached), Move::Serve(cached)]);
            }
            Verdict::Bypass => self.bypass(cached),
        }
    }

    /// A block is written, the `whole` of it or a part; `through`: to the backing store as well.
    /// `named` gives the name of the block that leaves for it.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        cached: Cached,
        outcome: AccessOutcome,
        whole: bool,
        through: bool,
        named: impl Fn(BlockId) -> Cached,
    ) {
        match outcome.verdict {
            Verdict::Hit => {}
            Verdict::Admit { evicted } => {
                self.evict(evicted, outcome.writeback, named);
                if !whole {
                    self.fetch(cached);
                }
            }
            Verdict::Bypass => {
                if outcome.invalidated {
                    self.moves.push(Move::Discard { cached, dirty: false });
                }
                return self.bypass(cached);
            }
        }
        self.moves.push(Move::Serve(cached));
        if through {
            self.moves.push(Move::WriteThrough(cached));
        }
    }

    /// The block that was evicted for another one, if there is one, leaves.
    #[inline(always)]
    pub(crate) fn evict(
        &mut self,
        evicted: Option<BlockId>,
        dirty: bool,
        named: impl Fn(BlockId) -> Cached,
    ) {
        if let Some(evicted) = evicted {
            self.leave(named(evicted), dirty);
        }
    }

    /// A block is put into the cache from the backing store.
    #[inline(always)]
    pub(crate) fn fetch(&mut self, cached: Cached) {
        self.moves.extend([Move::Fetch(cached), Move::Fill(cached)]);
    }

    #[inline(always)]
    fn bypass(&mut self, cached: Cached) {
        let Cached { tenant, number, .. } = cached;
        self.moves.push(Move::Bypass { tenant, number });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_block_is_written_to_what_was_fetched() {
        let (id, tenant) = (BlockId(1), TenantId(0));
        let cached = Cached { pool: 0, id, tenant, number: 5, region: Region::Any };
        let moves = |verdict, invalidated, whole| {
            let mut plan = Plan::default();
            let outcome = AccessOutcome { verdict, writeback: false, invalidated };
            plan.write(cached, outcome, whole, true, |id| Cached { id, ..cached });
            plan.moves
        };
        let written = [Move::Serve(cached), Move::WriteThrough(cached)];
        let admitted = Verdict::Admit { evicted: None };
        assert_eq!(moves(Verdict::Hit, false, false), written);
        assert_eq!(moves(admitted, false, true), written);
        let fetched = [Move::Fetch(cached), Move::Fill(cached)];
        assert_eq!(moves(admitted, false, false), [&fetched[..], &written].concat());
        let passed = Move::Bypass { tenant, number: 5 };
        let void = Move::Discard { cached, dirty: false };
        assert_eq!(moves(Verdict::Bypass, true, false), [void, passed.clone()]);
        assert_eq!(moves(Verdict::Bypass, false, true), [passed]);
        let evicted = [Move::Drop(Cached { id: BlockId(3), ..cached })];
        let admitted = Verdict::Admit { evicted: Some(BlockId(3)) };
        assert_eq!(moves(admitted, false, true), [&evicted[..], &written].concat());
    }
}
