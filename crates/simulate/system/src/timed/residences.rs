//! Which block of the cache device holds which cached block, and until when.
//!
//! For: slots of the cache device, given out and taken back. Must never know: devices, time,
//! requests. Units: blocks. A residence begins when the cache admits a block and ends when the
//! block has left it and nothing that was begun for it is still under way: only then may another
//! block take the slot, so that no dirty block is overwritten before it is written back.

use super::graph::StepRef;
use super::slots::{InRooms, Slots, Taken};
use cachewright_cache::Cached;
use cachewright_layout::ChannelMap;
use cachewright_policy::Room;
use cachewright_types::TenantId;

/// No residence, or no slot yet.
pub const NONE: u32 = u32::MAX;

/// One block's stay on the cache device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residence {
    /// Its slot, or [`NONE`] while it waits for one.
    pub slot: u32,
    /// By what right it has it.
    taken: Option<Taken>,
    /// The slot it comes from, while it goes to another that nobody had.
    old: Option<Taken>,
    /// Whose it is, and where its policy wants it.
    pub tenant: TenantId,
    /// See `tenant`.
    pub wanted: Room,
    /// The change of places it takes part in, or [`NONE`].
    pub moving: u32,
    /// It is noted as one that is not where it belongs.
    pub queued: bool,
    /// Steps under way that touch it.
    pub pins: u32,
    /// The cache has given it up.
    pub leaving: bool,
    /// Told apart from earlier residences of the same number.
    pub generation: u32,
    /// The last plan that has something to do with it.
    pub noted: u64,
    /// The step that waits for its slot.
    pub room: StepRef,
    /// The step that reads it from the backing device.
    pub fetch: StepRef,
    /// The step that puts it on the cache device.
    pub fill: StepRef,
    /// The last step that writes to it.
    pub writer: StepRef,
}

/// All residences.
#[derive(Clone, Debug)]
pub struct Residences {
    /// The residence of each id, per pool.
    of_id: Vec<Vec<u32>>,
    all: Vec<Residence>,
    free: Vec<u32>,
    slots: Slots,
    /// Slots have been given back, or may be taken that might not before.
    freed: bool,
}

impl Residence {
    /// The slot it is in or goes to.
    pub fn goes_to(&self) -> u32 {
        self.taken.map_or(self.slot, |taken| taken.slot)
    }
}

impl Residences {
    /// An empty cache device.
    pub fn new(slots: Slots) -> Residences {
        Residences { of_id: Vec::new(), all: Vec::new(), free: Vec::new(), slots, freed: false }
    }

    /// The residence of a block the cache holds, or [`NONE`].
    pub fn find(&self, cached: &Cached) -> u32 {
        let pool = self.of_id.get(usize::from(cached.pool));
        pool.and_then(|ids| ids.get(cached.id.index())).copied().unwrap_or(NONE)
    }

    /// A residence by its number.
    pub fn get(&self, number: u32) -> &Residence {
        &self.all[number as usize]
    }

    /// A residence by its number, to be changed.
    pub fn get_mut(&mut self, number: u32) -> &mut Residence {
        &mut self.all[number as usize]
    }

    /// The cache has admitted a block: its residence begins, with a slot if its tenant may take one
    /// and nobody waits for it, else in the queue for one.
    pub fn admit(&mut self, cached: &Cached) -> u32 {
        let taken = self.slots.take(cached.tenant.index(), cached.room);
        let number = self.free.pop().unwrap_or(self.all.len() as u32);
        let generation =
            self.all.get(number as usize).map_or(0, |old| old.generation.wrapping_add(1));
        let fresh = Residence {
            slot: taken.map_or(NONE, |taken| taken.slot),
            taken,
            old: None,
            tenant: cached.tenant,
            wanted: cached.room,
            moving: NONE,
            queued: false,
            pins: 0,
            leaving: false,
            generation,
            noted: 0,
            room: StepRef::DONE,
            fetch: StepRef::DONE,
            fill: StepRef::DONE,
            writer: StepRef::DONE,
        };
        match self.all.get_mut(number as usize) {
            Some(place) => *place = fresh,
            None => self.all.push(fresh),
        }
        if taken.is_none() {
            self.slots.wait(cached.tenant.index(), cached.room, number);
        }
        let pool = usize::from(cached.pool);
        if self.of_id.len() <= pool {
            self.of_id.resize(pool + 1, Vec::new());
        }
        let ids = &mut self.of_id[pool];
        if ids.len() <= cached.id.index() {
            ids.resize(cached.id.index() + 1, NONE);
        }
        ids[cached.id.index()] = number;
        number
    }

    /// The cache has given a block up; returns its residence, or [`NONE`].
    pub fn give_up(&mut self, cached: &Cached) -> u32 {
        let number = self.find(cached);
        if number != NONE {
            self.of_id[usize::from(cached.pool)][cached.id.index()] = NONE;
            let residence = &mut self.all[number as usize];
            residence.leaving = true;
            if let Some(taken) = residence.taken {
                self.slots.leave(taken);
            }
        }
        number
    }

    /// A step begins to touch a residence.
    pub fn pin(&mut self, number: u32) {
        self.all[number as usize].pins += 1;
    }

    /// A step no longer touches a residence; returns those that get slots for it.
    pub fn unpin(&mut self, number: u32) -> Vec<u32> {
        let residence = &mut self.all[number as usize];
        residence.pins -= 1;
        self.settle(number)
    }

    /// Ends a residence that is over; returns those that get slots for it.
    pub fn settle(&mut self, number: u32) -> Vec<u32> {
        let residence = &mut self.all[number as usize];
        if !residence.leaving || residence.pins > 0 {
            return Vec::new();
        }
        residence.slot = NONE;
        residence.leaving = false;
        residence.generation = residence.generation.wrapping_add(1);
        let taken = residence.taken.take();
        self.free.push(number);
        self.freed = true;
        let served = taken.map_or(Vec::new(), |taken| self.slots.give_back(taken));
        self.give(served)
    }

    fn give(&mut self, served: Vec<(u32, Taken)>) -> Vec<u32> {
        let give = |(number, taken): (u32, Taken)| {
            let residence = &mut self.all[number as usize];
            (residence.slot, residence.taken) = (taken.slot, Some(taken));
            if residence.leaving {
                self.slots.leave(taken);
            }
            number
        };
        served.into_iter().map(give).collect()
    }

    /// Quotas have changed; returns the residences that get slots for it.
    pub fn allow(&mut self, quotas: &[u32]) -> Vec<u32> {
        self.freed = true;
        let served = self.slots.allow(quotas);
        self.give(served)
    }

    /// The channels are laid out anew; returns the residences that get slots for it.
    pub fn relay(&mut self, map: &ChannelMap) -> Vec<u32> {
        let served = self.slots.relay(map);
        self.give(served)
    }

    /// Whether slots have been given back, or rights have changed, since the last call.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.freed)
    }

    /// Numbers of residences there ever were.
    pub fn numbers(&self) -> u32 {
        self.all.len() as u32
    }

    /// The blocks of a tenant by where they lie; nothing where channels are not laid out.
    pub fn by_room(&self, tenant: usize) -> Option<InRooms> {
        self.slots.by_room(tenant)
    }

    /// Whether a block lies still in a place that is not where it belongs.
    pub fn is_astray(&self, number: u32) -> bool {
        let found = self.get(number);
        let still = !found.leaving && found.moving == NONE;
        found
            .taken
            .is_some_and(|taken| still && !self.slots.suits_in(taken, taken.slot, found.wanted))
    }

    /// Whether two blocks that lie still should change places: each then lies in the room it wants
    /// and one did not, or neither wants any.
    pub fn may_swap(&self, one: u32, other: u32) -> bool {
        let (a, b) = (self.get(one), self.get(other));
        let Some((at, bt)) = a.taken.zip(b.taken).filter(|_| one != other) else { return false };
        if a.moving != NONE || b.moving != NONE {
            return false;
        }
        if (a.wanted, b.wanted) == (Room::Any, Room::Any) {
            return true;
        }
        let suits = |taken: Taken, slot, room| self.slots.suits_in(taken, slot, room);
        suits(at, bt.slot, a.wanted)
            && suits(bt, at.slot, b.wanted)
            && (self.is_astray(one) || self.is_astray(other))
    }

    /// Takes a free slot for a block where it belongs, if there is one and nobody waits for it; the
    /// block goes there.
    pub fn set_out(&mut self, number: u32) -> bool {
        let found = self.get(number);
        let Some(old) = found.taken.filter(|_| found.moving == NONE) else { return false };
        let Some(new) = self.slots.take_home(old, found.wanted) else { return false };
        self.slots.leave(old);
        let residence = self.get_mut(number);
        (residence.taken, residence.old) = (Some(new), Some(old));
        true
    }

    /// The block that has set out is where it goes to.
    pub fn arrive(&mut self, number: u32) {
        let residence = self.get_mut(number);
        residence.slot = residence.goes_to();
    }

    /// The block that has set out has left its old slot; returns the residences that get slots.
    pub fn moved(&mut self, number: u32) -> Vec<u32> {
        let Some(old) = self.get_mut(number).old.take() else { return Vec::new() };
        self.freed = true;
        let served = self.slots.give_back(old);
        self.give(served)
    }

    /// Two blocks change slots.
    pub fn exchange(&mut self, one: u32, other: u32) {
        let held = [one, other].map(|number| {
            let found = self.get(number);
            found.taken.map(|taken| (taken, found.leaving))
        });
        let [Some(a), Some(b)] = held else { return };
        for (number, taken) in [one, other].into_iter().zip(self.slots.exchange([a, b])) {
            let residence = self.get_mut(number);
            (residence.slot, residence.taken) = (taken.slot, Some(taken));
        }
    }

    /// Checks that every slot has one holder. `held` is the number of blocks the cache holds.
    /// Errors: the rule broken, in words.
    pub fn audit(&self, held: u64) -> Result<(), String> {
        let mut seen = vec![false; self.slots.end() as usize];
        let ended: std::collections::HashSet<u32> = self.free.iter().copied().collect();
        let alive = || (0..self.all.len() as u32).filter(|number| !ended.contains(number));
        let slots = alive().flat_map(|number| [self.get(number).taken, self.get(number).old]);
        for slot in slots.flatten().map(|taken| taken.slot).chain(self.slots.free()) {
            if std::mem::replace(&mut seen[slot as usize], true) {
                return Err(format!("slot {slot} is there twice"));
            }
        }
        let found = seen.iter().filter(|seen| **seen).count();
        if found != self.slots.count() as usize {
            return Err(format!("{found} slots are known of {}", self.slots.count()));
        }
        let staying = alive().filter(|number| !self.get(*number).leaving).count() as u64;
        if staying == held {
            Ok(())
        } else {
            Err(format!("{staying} stay, the cache holds {held}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_policy::Room;
    use cachewright_types::{BlockId, TenantId};

    fn block(id: u32) -> Cached {
        Cached {
            pool: 0,
            id: BlockId(id),
            tenant: TenantId(0),
            number: u64::from(id),
            room: Room::Any,
        }
    }

    #[test]
    fn a_slot_is_not_given_out_again_before_its_block_is_gone() {
        let mut all = Residences::new(Slots::plain(2));
        let (a, b) = (all.admit(&block(0)), all.admit(&block(1)));
        assert_eq!((all.get(a).slot, all.get(b).slot), (0, 1));
        all.pin(a);
        assert_eq!(all.give_up(&block(0)), a);
        assert!(all.settle(a).is_empty(), "a step is under way");
        let c = all.admit(&block(2));
        assert_eq!((all.get(c).slot, all.find(&block(0))), (NONE, NONE));
        assert_eq!(all.audit(2), Ok(()));
        assert_eq!(all.unpin(a), [c]);
        assert_eq!(all.get(c).slot, 0);
        assert_eq!(all.audit(2), Ok(()));
        assert!(all.audit(3).is_err());
        assert_eq!(all.give_up(&block(9)), NONE);
    }
}
