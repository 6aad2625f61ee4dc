//! One pool of the engine: a policy, which of its blocks are dirty, and whose they are.
//!
//! For: one bit per id, and how many are set; the owner of each id where tenants share the pool.
//! Must never know: quotas, write modes, counters. Units: blocks. Ids stay below the length that
//! the engine reserved.

use cachewright_policy::Policy;
use cachewright_policy::renumber::Renumbering;
use cachewright_types::{BlockId, TenantId};

#[derive(Clone, Debug)]
pub(crate) struct PolicyPool<P> {
    pub(crate) policy: P,
    /// One bit per id.
    dirty: Vec<u64>,
    dirty_blocks: u32,
    /// The tenant of each id; empty in a pool of one tenant.
    owner: Vec<u16>,
    /// Its only tenant, or one of several.
    tenant: u16,
    /// Whether several tenants share it.
    common: bool,
}

impl<P: Policy> PolicyPool<P> {
    /// An empty pool of one tenant, or of several, of which `tenant` is one.
    pub(crate) fn new(policy: P, tenant: u16, common: bool) -> PolicyPool<P> {
        let (dirty, owner) = (Vec::new(), Vec::new());
        PolicyPool { policy, dirty, dirty_blocks: 0, owner, tenant, common }
    }

    /// Makes room for ids `0..count`.
    pub(crate) fn reserve_ids(&mut self, count: usize) {
        self.policy.reserve_ids(count);
        if count.div_ceil(64) > self.dirty.len() {
            self.dirty.resize(count.div_ceil(64), 0);
        }
        if self.common && count > self.owner.len() {
            self.owner.resize(count, self.tenant);
        }
    }

    /// Gives the blocks that are kept, all that the policy tracks among them, new ids; returns
    /// whether the policy can.
    pub(crate) fn renumber(&mut self, ids: &Renumbering) -> bool {
        if !self.policy.renumber(ids) {
            return false;
        }
        for (old, new) in ids.pairs() {
            if self.take_dirty(old) {
                self.dirty[new.index() / 64] |= 1 << (new.index() % 64);
                self.dirty_blocks += 1;
            }
        }
        self.dirty.truncate(ids.kept().div_ceil(64));
        self.dirty.shrink_to_fit();
        if self.common {
            ids.close_up(&mut self.owner, 0);
        }
        true
    }

    /// Tenants share the pool from now on.
    pub(crate) fn share(&mut self) {
        if !self.common {
            self.common = true;
            self.owner = vec![self.tenant; self.dirty.len() * 64];
        }
    }

    /// The tenant of a block in the cache.
    #[inline(always)]
    pub(crate) fn owner_of(&self, block: BlockId) -> u16 {
        self.owner.get(block.index()).copied().unwrap_or(self.tenant)
    }

    /// Notes whose block it is that came in.
    #[inline(always)]
    pub(crate) fn set_owner(&mut self, block: BlockId, tenant: TenantId) {
        if let Some(owner) = self.owner.get_mut(block.index()) {
            *owner = tenant.0;
        }
    }

    /// Dirty blocks.
    pub(crate) fn dirty_blocks(&self) -> u32 {
        self.dirty_blocks
    }

    #[inline(always)]
    pub(crate) fn is_dirty(&self, block: BlockId) -> bool {
        self.dirty[block.index() / 64] >> (block.index() % 64) & 1 == 1
    }

    #[inline(always)]
    pub(crate) fn set_dirty(&mut self, block: BlockId) {
        debug_assert!(self.policy.contains(block), "a dirty block is resident");
        let word = &mut self.dirty[block.index() / 64];
        let bit = 1 << (block.index() % 64);
        self.dirty_blocks += u32::from(*word & bit == 0);
        *word |= bit;
    }

    /// Clears the dirty bit and returns what it was.
    #[inline(always)]
    pub(crate) fn take_dirty(&mut self, block: BlockId) -> bool {
        if self.dirty_blocks == 0 {
            return false;
        }
        let word = &mut self.dirty[block.index() / 64];
        let bit = 1 << (block.index() % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        self.dirty_blocks -= u32::from(was);
        was
    }

    /// The first dirty block from `from` on.
    pub(crate) fn next_dirty(&self, from: BlockId) -> Option<BlockId> {
        let mut word = from.index() / 64;
        let mut bits = self.dirty.get(word)? & (u64::MAX << (from.index() % 64));
        while bits == 0 {
            word += 1;
            bits = *self.dirty.get(word)?;
        }
        Some(BlockId(word as u32 * 64 + bits.trailing_zeros()))
    }

    /// Checks that dirty blocks are resident and counted. Errors: the rule broken, in words.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let mut dirty = 0;
        for id in (0..self.dirty.len() as u32 * 64).map(BlockId) {
            if self.is_dirty(id) {
                dirty += 1;
                if !self.policy.contains(id) {
                    return Err(format!("block {} is dirty, not cached", id.0));
                }
            }
        }
        if dirty == self.dirty_blocks {
            Ok(())
        } else {
            Err(format!("{dirty} dirty, {} counted", self.dirty_blocks))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_policy::lru::Lru;
    use cachewright_policy::{Access, Registered};
    use cachewright_types::Seed;
    use cachewright_types::declare::NoSettings;

    /// Blocks in the cache, with room for 200 ids; tenant 3 has them all.
    fn pool(blocks: &[u32], common: bool) -> PolicyPool<Lru> {
        let lru = Lru::new(10, &NoSettings::default(), Seed(0));
        let mut pool = PolicyPool::new(lru, 3, common);
        pool.reserve_ids(200);
        for block in blocks {
            pool.policy.access(Access::read(BlockId(*block)));
        }
        pool
    }

    fn dirty(pool: &PolicyPool<Lru>) -> Vec<u32> {
        let next = |from: u32| pool.next_dirty(BlockId(from)).map(|block| block.0);
        std::iter::successors(next(0), |block| next(block + 1)).take(9).collect()
    }

    /// Ids 5, 63, 64 and 190 lie in the first, first, second and third word of bits.
    #[test]
    fn dirty_blocks_are_counted_once_and_found_in_order() {
        let mut pool = pool(&[190, 64, 5, 63, 70], false);
        for block in [190, 64, 5, 63, 64] {
            pool.set_dirty(BlockId(block));
        }
        assert_eq!((dirty(&pool), pool.dirty_blocks()), (vec![5, 63, 64, 190], 4));
        assert!(pool.is_dirty(BlockId(63)) && !pool.is_dirty(BlockId(70)));
        assert_eq!([64, 64, 70].map(|block| pool.take_dirty(BlockId(block))), [true, false, false]);
        assert_eq!(
            (dirty(&pool), pool.dirty_blocks(), pool.audit()),
            (vec![5, 63, 190], 3, Ok(()))
        );
        let from = |block| pool.next_dirty(BlockId(block)).map(|block| block.0);
        assert_eq!(
            [63, 64, 190, 191, 9999].map(from),
            [Some(63), Some(190), Some(190), None, None]
        );
    }

    #[test]
    fn kept_blocks_stay_dirty_and_their_owners_under_their_new_ids() {
        let mut pool = pool(&[2, 63, 64, 150], true);
        [2, 64, 150].into_iter().for_each(|block| pool.set_dirty(BlockId(block)));
        pool.set_owner(BlockId(64), TenantId(7));
        assert_eq!([63, 64, 199, 200].map(|id| pool.owner_of(BlockId(id))), [3, 7, 3, 3]);
        let kept = [2, 63, 64, 150];
        assert!(pool.renumber(&Renumbering::keeping(200, |id| kept.contains(&id.0))));
        assert_eq!((dirty(&pool), pool.dirty_blocks()), (vec![0, 2, 3], 3));
        assert_eq!([0, 1, 2, 3].map(|id| pool.owner_of(BlockId(id))), [3, 3, 7, 3]);
        assert_eq!((pool.dirty.len(), pool.owner.len(), pool.audit()), (1, 4, Ok(())));
    }

    /// Of 130 ids all are kept but the first: a dirty bit goes over from one word into another.
    #[test]
    fn a_dirty_bit_moves_into_the_word_before() {
        let mut pool = pool(&[64, 65, 129], false);
        [64, 129].into_iter().for_each(|block| pool.set_dirty(BlockId(block)));
        assert!(pool.renumber(&Renumbering::keeping(130, |id| id.0 > 0)));
        assert_eq!((dirty(&pool), pool.dirty.len(), pool.audit()), (vec![63, 128], 3, Ok(())));
    }

    #[test]
    fn blocks_from_before_a_second_tenant_came_are_the_first_ones() {
        let mut pool = pool(&[1, 2], false);
        pool.set_owner(BlockId(1), TenantId(9));
        assert_eq!(pool.owner_of(BlockId(1)), 3, "a pool of one tenant");
        pool.share();
        pool.set_owner(BlockId(2), TenantId(9));
        pool.share();
        assert_eq!([0, 1, 2, 199].map(|id| pool.owner_of(BlockId(id))), [3, 3, 9, 3]);
    }

    #[test]
    fn memory_for_ids_grows_and_never_shrinks() {
        let mut pool = pool(&[], true);
        let lengths = |pool: &PolicyPool<Lru>| (pool.dirty.len(), pool.owner.len());
        assert_eq!(lengths(&pool), (4, 200), "200 bits");
        pool.reserve_ids(10);
        assert_eq!(lengths(&pool), (4, 200));
        pool.reserve_ids(257);
        assert_eq!(lengths(&pool), (5, 257));
    }

    #[test]
    fn the_audit_finds_dirty_blocks_that_are_not_counted() {
        let mut pool = pool(&[1], false);
        pool.set_dirty(BlockId(1));
        pool.dirty_blocks = 2;
        assert_eq!(pool.audit(), Err("1 dirty, 2 counted".to_owned()));
    }
}
