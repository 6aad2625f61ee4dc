//! Blocks that wait to change places on the cache device: swaps asked for, and misplaced blocks.
//!
//! For: which blocks change places next. Must never know: steps, devices, how a change is carried
//! out. Units: blocks. Swaps come first, in the order in which they were asked for; then each
//! tenant's misplaced blocks. A misplaced block moves to a free slot of its region, or against a
//! block that wants the opposite.

use super::ids::ResidentId;
use super::places::ResidentPlaces;
use cachewright_policy::Region;
use cachewright_steps::{ResidentRef, ResidentTable};
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
    pub fn swap(
        &mut self,
        places: &mut ResidentPlaces,
        residents: &ResidentTable,
        pair: [(Option<ResidentId>, Region); 2],
    ) {
        for (id, preferred) in pair {
            if let Some(id) = id {
                places.set_preferred(id, preferred);
            }
        }
        match pair.map(|(id, _)| id) {
            [Some(first), Some(second)] if self.swaps.len() < MAX_SWAPS => {
                self.swaps.push_back([first, second].map(|id| residents.reference(id)));
                self.waiting += 1;
                self.changed = true;
            }
            ids => {
                for id in ids.into_iter().flatten() {
                    self.note_misplaced(places, residents, id);
                }
            }
        }
    }

    /// Notes a block if it is misplaced, to be moved when it may.
    pub fn note_misplaced(
        &mut self,
        places: &ResidentPlaces,
        residents: &ResidentTable,
        id: ResidentId,
    ) {
        if !places.is_misplaced(id) {
            return;
        }
        if self.noted.len() <= id.index() {
            self.noted.resize(id.index() + 1, None);
        }
        let resident = Some(residents.reference(id));
        if std::mem::replace(&mut self.noted[id.index()], resident) == resident {
            return;
        }
        let place = places.get(id);
        let (tenant, preferred) = (place.tenant().index(), place.preferred());
        if self.misplaced.len() <= tenant {
            self.misplaced.resize(tenant + 1, Default::default());
        }
        self.misplaced[tenant][preferred as usize].extend(resident);
        self.waiting += 1;
        self.changed = true;
    }

    /// The blocks of the next change: two that change slots, or one whose new slot is taken.
    pub fn next(
        &mut self,
        places: &mut ResidentPlaces,
        residents: &ResidentTable,
    ) -> Option<Vec<ResidentId>> {
        while let Some(pair) = self.swaps.front().copied() {
            let there = pair.map(|resident| residents.stays(resident));
            let [first, second] = pair.map(ResidentRef::id);
            let moves = |id| places.get(id).change().is_some();
            if there == [true, true] && (moves(first) || moves(second)) {
                break;
            }
            self.swaps.pop_front();
            self.waiting -= 1;
            if there == [true, true] && places.may_swap(first, second) {
                return Some(vec![first, second]);
            }
            for (id, there) in [first, second].into_iter().zip(there) {
                if there {
                    self.note_misplaced(places, residents, id);
                }
            }
        }
        (0..self.misplaced.len()).find_map(|tenant| self.next_of_tenant(places, residents, tenant))
    }

    /// The blocks of the next change of a tenant's misplaced blocks.
    fn next_of_tenant(
        &mut self,
        places: &mut ResidentPlaces,
        residents: &ResidentTable,
        tenant: usize,
    ) -> Option<Vec<ResidentId>> {
        let regions = [Region::Private, Region::Shared, Region::Any];
        let heads =
            regions.map(|preferred| self.next_misplaced(places, residents, tenant, preferred));
        if let [Some(first), Some(second), _] = heads
            && first != second
            && places.may_swap(first, second)
        {
            self.unnote(tenant, Region::Private);
            self.unnote(tenant, Region::Shared);
            return Some(vec![first, second]);
        }
        for (head, preferred) in heads.into_iter().zip(regions) {
            if let Some(id) = head.filter(|id| places.begin_move(*id)) {
                self.unnote(tenant, preferred);
                return Some(vec![id]);
            }
        }
        None
    }

    /// The first block of a tenant that wants a region and is not there; blocks that are there, or
    /// on their way, are no longer noted.
    fn next_misplaced(
        &mut self,
        places: &ResidentPlaces,
        residents: &ResidentTable,
        tenant: usize,
        preferred: Region,
    ) -> Option<ResidentId> {
        while let Some(resident) = self.misplaced[tenant][preferred as usize].front().copied() {
            let id = resident.id();
            let there = residents.stays(resident);
            let wants = places.get(id).preferred() == preferred;
            if there && wants && places.is_misplaced(id) {
                return Some(id);
            }
            self.unnote(tenant, preferred);
            if there {
                self.note_misplaced(places, residents, id);
            }
        }
        None
    }

    fn unnote(&mut self, tenant: usize, preferred: Region) {
        let first = self.misplaced[tenant][preferred as usize].pop_front();
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
    fn table() -> (ResidentPlaces, ResidentTable, Vec<ResidentId>) {
        let (mut places, mut residents) =
            (ResidentPlaces::new(Slots::plain(4)), ResidentTable::default());
        let block = |id: u32| {
            let (tenant, number) = (TenantId(0), u64::from(id));
            Cached { pool: 0, id: BlockId(id), tenant, number, region: Region::Any }
        };
        let mut admit = |id| {
            let resident = residents.admit(&block(id));
            places.admit(resident, TenantId(0), Region::Any);
            resident
        };
        let ids = [0, 1, 2].map(&mut admit);
        residents.evict(&block(2));
        places.leave(ids[2]);
        (places, residents, ids.to_vec())
    }

    #[test]
    fn swaps_come_in_order_unless_one_block_has_left() {
        let (mut places, residents, ids) = table();
        let mut queue = MoveQueue::default();
        let any = |id| (Some(id), Region::Any);
        queue.swap(&mut places, &residents, [any(ids[2]), any(ids[0])]);
        queue.swap(&mut places, &residents, [any(ids[0]), any(ids[1])]);
        queue.swap(&mut places, &residents, [(None, Region::Any), any(ids[1])]);
        assert_eq!((queue.swaps(), queue.take_changed(), queue.take_changed()), (2, true, false));
        assert_eq!(queue.audit(), Ok(()));
        assert_eq!(queue.next(&mut places, &residents), Some(vec![ids[0], ids[1]]));
        assert_eq!((queue.next(&mut places, &residents), queue.is_empty()), (None, true));
        queue.note_misplaced(&places, &residents, ids[0]);
        assert!(queue.is_empty(), "it lies where it belongs");
    }
}
