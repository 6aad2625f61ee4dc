//! Blocks that wait to change places on the cache device: swaps asked for, and misplaced blocks.
//!
//! For: which blocks change places next. Must never know: steps, devices, how a change is carried
//! out. Units: blocks. Swaps come first, in the order in which they were asked for; then each
//! tenant's misplaced blocks. A misplaced block moves to a free slot of its region, or against a
//! block that wants the opposite.

use super::ids::ResidentId;
use super::resident_table::{ResidentRef, ResidentTable};
use cachewright_policy::Region;
use std::collections::VecDeque;

/// Swaps that wait at most; the blocks of further ones move by themselves.
const MAX_SWAPS: usize = 1 << 16;

/// Blocks that wait to change places.
#[derive(Clone, Debug, Default)]
pub struct MoveQueue {
    /// Swaps asked for.
    swaps: VecDeque<[ResidentRef; 2]>,
    /// Misplaced blocks of each tenant, by the region they want.
    misplaced: Vec<[VecDeque<ResidentRef>; 3]>,
    /// The misplaced block of each number that is among these.
    noted: Vec<Option<ResidentRef>>,
    /// Swaps and misplaced blocks that wait.
    waiting: usize,
    /// Blocks were added since the last look.
    changed: bool,
}

impl MoveQueue {
    /// Swaps that wait.
    pub fn swaps(&self) -> usize {
        self.swaps.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Whether blocks were added since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Two blocks are to change places: their residents, and the regions they want from now on.
    pub fn swap(&mut self, residents: &mut ResidentTable, pair: [(Option<ResidentId>, Region); 2]) {
        for (id, wanted) in pair {
            if let Some(id) = id {
                residents.places_mut().set_wanted(id, wanted);
            }
        }
        match pair.map(|(id, _)| id) {
            [Some(one), Some(other)] if self.swaps.len() < MAX_SWAPS => {
                self.swaps.push_back([one, other].map(|id| residents.reference(id)));
                self.waiting += 1;
                self.changed = true;
            }
            ids => {
                for id in ids.into_iter().flatten() {
                    self.note_misplaced(residents, id);
                }
            }
        }
    }

    /// Notes a block if it is misplaced, to be moved when it may.
    pub fn note_misplaced(&mut self, residents: &ResidentTable, id: ResidentId) {
        if !residents.places().is_misplaced(id) {
            return;
        }
        if self.noted.len() <= id.index() {
            self.noted.resize(id.index() + 1, None);
        }
        let resident = Some(residents.reference(id));
        if std::mem::replace(&mut self.noted[id.index()], resident) == resident {
            return;
        }
        let place = residents.places().get(id);
        let (tenant, wanted) = (place.tenant().index(), place.wanted());
        if self.misplaced.len() <= tenant {
            self.misplaced.resize(tenant + 1, Default::default());
        }
        self.misplaced[tenant][wanted as usize].extend(resident);
        self.waiting += 1;
        self.changed = true;
    }

    /// The blocks of the next change: two that change slots, or one whose new slot is taken.
    pub fn next(&mut self, residents: &mut ResidentTable) -> Option<Vec<ResidentId>> {
        while let Some(pair) = self.swaps.front().copied() {
            let there = pair.map(|resident| residents.stays(resident));
            let [one, other] = pair.map(ResidentRef::id);
            let moves = |id| residents.places().get(id).change().is_some();
            if there == [true, true] && (moves(one) || moves(other)) {
                break;
            }
            self.swaps.pop_front();
            self.waiting -= 1;
            if there == [true, true] && residents.places().may_swap(one, other) {
                return Some(vec![one, other]);
            }
            for (id, there) in [one, other].into_iter().zip(there) {
                if there {
                    self.note_misplaced(residents, id);
                }
            }
        }
        (0..self.misplaced.len()).find_map(|tenant| self.next_of_tenant(residents, tenant))
    }

    /// The blocks of the next change of a tenant's misplaced blocks.
    fn next_of_tenant(
        &mut self,
        residents: &mut ResidentTable,
        tenant: usize,
    ) -> Option<Vec<ResidentId>> {
        let regions = [Region::Private, Region::Shared, Region::Any];
        let heads = regions.map(|wanted| self.next_misplaced(residents, tenant, wanted));
        if let [Some(one), Some(other), _] = heads
            && one != other
            && residents.places().may_swap(one, other)
        {
            self.unnote(tenant, Region::Private);
            self.unnote(tenant, Region::Shared);
            return Some(vec![one, other]);
        }
        for (head, wanted) in heads.into_iter().zip(regions) {
            if let Some(id) = head.filter(|id| residents.places_mut().begin_move(*id)) {
                self.unnote(tenant, wanted);
                return Some(vec![id]);
            }
        }
        None
    }

    /// The first block of a tenant that wants a region and is not there; blocks that are there, or
    /// on their way, are no longer noted.
    fn next_misplaced(
        &mut self,
        residents: &mut ResidentTable,
        tenant: usize,
        wanted: Region,
    ) -> Option<ResidentId> {
        while let Some(resident) = self.misplaced[tenant][wanted as usize].front().copied() {
            let id = resident.id();
            let there = residents.stays(resident);
            let wants = residents.places().get(id).wanted() == wanted;
            if there && wants && residents.places().is_misplaced(id) {
                return Some(id);
            }
            self.unnote(tenant, wanted);
            if there {
                self.note_misplaced(residents, id);
            }
        }
        None
    }

    fn unnote(&mut self, tenant: usize, wanted: Region) {
        let first = self.misplaced[tenant][wanted as usize].pop_front();
        let Some(resident) = first else { return };
        self.waiting -= 1;
        let noted = &mut self.noted[resident.id().index()];
        if *noted == Some(resident) {
            *noted = None;
        }
    }

    /// Checks that blocks that wait are counted. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        let misplaced: usize = self.misplaced.iter().flatten().map(VecDeque::len).sum();
        let (swaps, waiting) = (self.swaps.len(), self.waiting);
        if misplaced + swaps != waiting {
            return Err(format!("{misplaced} misplaced blocks and {swaps} swaps of {waiting}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::slots::Slots;
    use super::*;
    use cachewright_cache::Cached;
    use cachewright_types::{BlockId, TenantId};

    /// A table with two blocks, which any slot suits, and a block that it does not hold.
    fn table() -> (ResidentTable, Vec<ResidentId>) {
        let mut residents = ResidentTable::new(Slots::plain(4));
        let block = |id: u32| {
            let (tenant, number) = (TenantId(0), u64::from(id));
            Cached { pool: 0, id: BlockId(id), tenant, number, region: Region::Any }
        };
        let ids = (0..3).map(|id| residents.admit(&block(id))).collect::<Vec<_>>();
        residents.evict(&block(2));
        (residents, ids)
    }

    #[test]
    fn swaps_come_in_order_unless_one_block_has_left() {
        let (mut residents, ids) = table();
        let mut queue = MoveQueue::default();
        let any = |id| (Some(id), Region::Any);
        queue.swap(&mut residents, [any(ids[2]), any(ids[0])]);
        queue.swap(&mut residents, [any(ids[0]), any(ids[1])]);
        queue.swap(&mut residents, [(None, Region::Any), any(ids[1])]);
        assert_eq!((queue.swaps(), queue.take_changed(), queue.take_changed()), (2, true, false));
        assert_eq!(queue.audit(), Ok(()));
        assert_eq!(queue.next(&mut residents), Some(vec![ids[0], ids[1]]));
        assert_eq!((queue.next(&mut residents), queue.is_empty()), (None, true));
        queue.note_misplaced(&residents, ids[0]);
        assert!(queue.is_empty(), "it lies where it belongs");
    }
}
