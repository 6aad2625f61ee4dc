//! The resident of each id that the cache gives a block.
//!
//! For: residents by the names of blocks. Must never know: the life of a resident, steps. Ids are
//! those of a pool of the cache. Memory: one word per id.

use crate::ids::ResidentId;
use cachewright_cache::Cached;
use cachewright_types::BlockId;

/// Residents by id; see the top of the file.
#[derive(Clone, Debug, Default)]
pub struct ResidentNames {
    /// Per pool of the cache.
    pools: Vec<Vec<ResidentId>>,
}

impl ResidentNames {
    /// The resident of a block that the cache holds.
    #[inline]
    pub fn get(&self, cached: &Cached) -> Option<ResidentId> {
        let pool = self.pools.get(usize::from(cached.pool))?;
        pool.get(cached.id.index())?.present()
    }

    /// Takes memory for as many ids of each pool.
    pub fn reserve(&mut self, ids: &[usize]) {
        if self.pools.len() < ids.len() {
            self.pools.resize(ids.len(), Vec::new());
        }
        for (pool, ids) in self.pools.iter_mut().zip(ids) {
            pool.reserve(ids.saturating_sub(pool.len()));
        }
    }

    /// A block of the cache has a resident from now on.
    #[inline]
    pub fn set(&mut self, cached: &Cached, resident: ResidentId) {
        let pool = usize::from(cached.pool);
        if self.pools.len() <= pool {
            self.pools.resize(pool + 1, Vec::new());
        }
        let ids = &mut self.pools[pool];
        if ids.len() <= cached.id.index() {
            ids.resize(cached.id.index() + 1, ResidentId::NONE);
        }
        ids[cached.id.index()] = resident;
    }

    /// A block leaves the cache: it has no resident any more. Returns that.
    #[inline]
    pub fn take(&mut self, cached: &Cached) -> Option<ResidentId> {
        let pool = self.pools.get_mut(usize::from(cached.pool))?;
        std::mem::replace(pool.get_mut(cached.id.index())?, ResidentId::NONE).present()
    }

    /// Blocks of a pool have new ids: pairs of an old one and a new one that is not higher, both in
    /// ascending order. All blocks that the cache holds in the pool are among them.
    pub fn rename(&mut self, pool: usize, pairs: &[(BlockId, BlockId)]) {
        let Some(ids) = self.pools.get_mut(pool) else { return };
        let mut kept = 0;
        for (old, new) in pairs {
            debug_assert!(new <= old, "ids are given anew from the lowest on");
            let resident =
                ids.get_mut(old.index()).map(|id| std::mem::replace(id, ResidentId::NONE));
            if let Some(resident) = resident {
                ids[new.index()] = resident;
                kept = new.index() + 1;
            }
        }
        debug_assert!(ids[kept..].iter().all(|id| *id == ResidentId::NONE), "blocks without ids");
        ids.truncate(kept);
        ids.shrink_to_fit();
    }

    /// All residents of blocks that the cache holds.
    pub fn iter(&self) -> impl Iterator<Item = ResidentId> + '_ {
        self.pools.iter().flatten().filter_map(|id| id.present())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_policy::Region;
    use cachewright_types::TenantId;

    fn block(pool: u16, id: u32) -> Cached {
        Cached { pool, id: BlockId(id), tenant: TenantId(0), number: 7, region: Region::Any }
    }

    #[test]
    fn names_follow_blocks_that_get_lower_ids() {
        let mut names = ResidentNames::default();
        let ids = [0, 1, 2].map(ResidentId::new);
        [(1, 4), (1, 6), (0, 0)].into_iter().zip(ids).for_each(|((pool, id), resident)| {
            names.set(&block(pool, id), resident);
        });
        assert_eq!(names.take(&block(1, 5)), None);
        names.rename(1, &[(BlockId(4), BlockId(0)), (BlockId(6), BlockId(1))]);
        let found = [(1, 0), (1, 1), (0, 0), (1, 4)].map(|(pool, id)| names.get(&block(pool, id)));
        assert_eq!(found, [Some(ids[0]), Some(ids[1]), Some(ids[2]), None]);
        assert_eq!((names.take(&block(1, 0)), names.iter().count()), (Some(ids[0]), 2));
    }

    #[test]
    fn reserved_memory_is_enough_for_every_id_of_every_pool() {
        let mut names = ResidentNames::default();
        names.reserve(&[3, 40]);
        let places = |names: &ResidentNames| {
            names.pools.iter().map(|pool| pool.as_ptr()).collect::<Vec<_>>()
        };
        let before = places(&names);
        (0..40).for_each(|id| names.set(&block(1, id), ResidentId::new(0)));
        (0..3).for_each(|id| names.set(&block(0, id), ResidentId::new(0)));
        names.reserve(&[3]);
        assert_eq!((before.len(), places(&names)), (2, before), "nothing moved, no pool is gone");
        assert_eq!(size_of_val(&names.pools[0][0]), 4);
    }
}
