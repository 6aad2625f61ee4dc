//! The slots of the cache device: who may take which, and who waits for one.
//!
//! For: carrying out a layout: a tenant's blocks lie in the slots of its pools of channels, in the
//! room that its policy wants where it has one. Must never know: layouts' reasons, devices, time.
//! Units: blocks (a slot holds one). Without a layout all slots are one pool. Rules for a block
//! that wants a slot, in this order:
//!
//! 1. a free slot of the wanted room: its pools that are the tenant's alone, or those that others
//!    share too; any pool where the room is all the same or the tenant has none of the kind;
//! 2. it waits while a slot of that room is on its way: one whose block leaves;
//! 3. a free slot of another pool of its tenant, else it waits while one of those is on its way;
//! 4. a free slot of anybody's channels, those of no pool first. That happens after a relay only:
//!    others' blocks may stay where it belongs for ever, so it does not wait for those.
//!
//! Blocks of one tenant get slots in the order in which they ask. Nobody takes more than its quota
//! and the spare blocks, nor more of a pool than its share.

use super::free::{Free, blocks_of, cut, unit_of};
use cachewright_device::Exposed;
use cachewright_layout::ChannelMap;
use cachewright_policy::Room;
use std::collections::VecDeque;

/// No limit.
const ANY: u32 = u32::MAX;

/// Slots held, and those of them whose blocks leave.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    used: u32,
    leaving: u32,
}

/// A share of a pool, as it is used.
#[derive(Clone, Copy, Debug)]
struct Share {
    pool: usize,
    most: u32,
    held: Held,
}

/// Tenants with the same rights.
#[derive(Clone, Debug)]
struct Class {
    shares: Vec<Share>,
    /// Slots taken, and how many may be.
    used: u32,
    allowed: u32,
    /// Slots held by channel.
    by_channel: Vec<Held>,
    /// Who waits for a slot, in order.
    waiting: VecDeque<Waiting>,
}

/// A residence that waits for a slot.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Its order among all that ever waited.
    arrival: u64,
    residence: u32,
    room: Room,
}

/// A slot and who has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The slot.
    pub slot: u32,
    class: u16,
}

/// Blocks of a tenant that stay, by where they lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InRooms {
    /// In channels that are its alone.
    pub own_blocks: u32,
    /// In channels that it shares.
    pub common_blocks: u32,
    /// In channels that are not its own by the map.
    pub elsewhere_blocks: u32,
}

/// What is done about a block that wants a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Pool(usize),
    Anywhere,
    Wait,
}

/// All slots.
#[derive(Clone, Debug)]
pub struct Slots {
    free: Free,
    classes: Vec<Class>,
    /// Of each pool: whether it is one tenant's alone, and its slots that are on their way.
    exclusive: Vec<bool>,
    coming: Vec<u32>,
    /// Slots that each tenant may take beside its quota; nothing where all have the same rights.
    spare: Option<u32>,
    waiting: usize,
    arrivals: u64,
}

impl Slots {
    /// The first `count` blocks of a device, for everybody.
    pub fn plain(count: u32) -> Slots {
        Slots::shared(Free::new(Some(0..count), 1, &[vec![0]]))
    }

    /// The first `count` blocks going round all `channels`, for everybody.
    pub fn striped(channels: &[Exposed], block_shift: u32, count: u32) -> Slots {
        let ranges = channels.iter().map(|range| blocks_of(range, block_shift)).collect::<Vec<_>>();
        let (unit, all) = (unit_of(channels, block_shift), (0..ranges.len() as u32).collect());
        Slots::shared(Free::new(cut(&ranges, unit, count), unit, &[all]))
    }

    /// One pool for everybody.
    fn shared(free: Free) -> Slots {
        let shares = vec![Share { pool: 0, most: ANY, held: Held::default() }];
        let classes = vec![Class::new(shares, free.channels())];
        let (exclusive, coming) = (vec![false], vec![0]);
        Slots { free, classes, exclusive, coming, spare: None, waiting: 0, arrivals: 0 }
    }

    /// The pools of a layout over what a drive shows of its channels. Each tenant may take its
    /// quota and `spare` slots, once [`Slots::allow`] has told its quota.
    pub fn laid_out(map: &ChannelMap, channels: &[Exposed], block_shift: u32, spare: u32) -> Slots {
        let ranges = channels.iter().map(|range| blocks_of(range, block_shift));
        let free = Free::new(ranges, unit_of(channels, block_shift), &[]);
        let class = || Class::new(Vec::new(), channels.len());
        let classes = map.tenants.iter().map(|_| class()).collect();
        let (exclusive, coming) = (Vec::new(), Vec::new());
        let spare = Some(spare);
        let mut slots = Slots { free, classes, exclusive, coming, spare, waiting: 0, arrivals: 0 };
        slots.relay(map);
        slots
    }

    /// Follows another map from now on; returns who gets a slot for it. Slots that are held stay so
    /// until they are given back, then they are their channel's pool's of the new map, or nobody's.
    /// A tenant without shares has none. Slots that follow no map stay as they are.
    pub fn relay(&mut self, map: &ChannelMap) -> Vec<(u32, Taken)> {
        if self.spare.is_none() {
            return Vec::new();
        }
        self.free.relay(&map.pools);
        self.exclusive = (0..map.pools.len()).map(|pool| map.is_exclusive(pool)).collect();
        self.coming = vec![0; map.pools.len()];
        for (number, class) in self.classes.iter_mut().enumerate() {
            let shares = map.tenants.get(number).map_or(&[][..], Vec::as_slice);
            class.shares.clear();
            for share in shares {
                let (pool, most) = (share.pool, share.blocks);
                match class.shares.iter_mut().find(|known| known.pool == pool) {
                    Some(known) => known.most = known.most.saturating_add(most),
                    None => class.shares.push(Share { pool, most, held: Held::default() }),
                }
            }
            for (channel, held) in class.by_channel.iter().enumerate() {
                let pool = self.free.pool_of(channel);
                if let Some(share) = class.shares.iter_mut().find(|share| share.pool == pool) {
                    share.held.used += held.used;
                    share.held.leaving += held.leaving;
                }
                if let Some(coming) = self.coming.get_mut(pool) {
                    *coming += held.leaving;
                }
            }
        }
        self.serve()
    }

    /// The slot after the last.
    pub fn end(&self) -> u32 {
        self.free.end()
    }

    /// Slots there are.
    pub fn count(&self) -> u32 {
        self.free.count()
    }

    /// Slots that are free.
    pub fn free(&self) -> impl Iterator<Item = u32> {
        self.free.all()
    }

    fn class_of(&self, tenant: usize) -> usize {
        if self.spare.is_some() { tenant } else { 0 }
    }

    /// The room in which a tenant holds a slot: [`Room::Any`] in channels that are not its own by
    /// the map, or not any more.
    pub fn room_of(&self, taken: Taken) -> Room {
        let pool = self.free.pool_of(self.free.channel_of(taken.slot));
        let shares = &self.classes[usize::from(taken.class)].shares;
        if shares.iter().any(|share| share.pool == pool) { self.room(pool) } else { Room::Any }
    }

    fn room(&self, pool: usize) -> Room {
        if self.exclusive[pool] { Room::Own } else { Room::Common }
    }

    /// Whether a pool is where a block belongs that wants `room`.
    fn suits(&self, class: &Class, pool: usize, room: Room) -> bool {
        let is = |pool: usize| self.room(pool) == room;
        room == Room::Any || is(pool) || !class.shares.iter().any(|share| is(share.pool))
    }

    /// Whether a block of who holds `taken` that wants `room` belongs in `slot`; anywhere while its
    /// tenant has no share at all.
    pub fn suits_in(&self, taken: Taken, slot: u32, room: Room) -> bool {
        let class = &self.classes[usize::from(taken.class)];
        let pool = self.free.pool_of(self.free.channel_of(slot));
        let shared = class.shares.iter().any(|share| share.pool == pool);
        class.shares.is_empty() || shared && self.suits(class, pool, room)
    }

    /// A free slot where a block of who holds `taken` belongs, unless somebody of its tenant waits
    /// for one.
    pub fn take_home(&mut self, taken: Taken, room: Room) -> Option<Taken> {
        let class = &self.classes[usize::from(taken.class)];
        let may = class.waiting.is_empty() && class.used < class.allowed;
        let suits = |share: &&Share| {
            let suits = self.suits(class, share.pool, room);
            may && suits && share.held.used < share.most && self.free.has(share.pool)
        };
        let pool = class.shares.iter().find(suits)?.pool;
        let slot = self.free.take(pool)?;
        Some(self.taken(usize::from(taken.class), slot))
    }

    /// Two slots change hands; of each whether its block leaves.
    pub fn exchange(&mut self, held: [(Taken, bool); 2]) -> [Taken; 2] {
        let slots = held.map(|(taken, _)| taken.slot);
        for (taken, leaves) in held {
            if leaves {
                self.stay(taken);
            }
            self.note(taken, |held| held.used -= 1);
        }
        let new = [Taken { slot: slots[1], ..held[0].0 }, Taken { slot: slots[0], ..held[1].0 }];
        for (taken, (_, leaves)) in new.into_iter().zip(held) {
            self.note(taken, |held| held.used += 1);
            if leaves {
                self.leave(taken);
            }
        }
        new
    }

    /// The blocks of a tenant by where they lie; nothing where there is no map.
    pub fn by_room(&self, tenant: usize) -> Option<InRooms> {
        self.spare?;
        let class = self.classes.get(tenant)?;
        let staying = |held: &Held| held.used - held.leaving;
        let elsewhere_blocks = class.by_channel.iter().map(staying).sum();
        let mut found = InRooms { elsewhere_blocks, ..InRooms::default() };
        for share in &class.shares {
            let blocks = staying(&share.held);
            found.elsewhere_blocks -= blocks;
            match self.room(share.pool) {
                Room::Common => found.common_blocks += blocks,
                Room::Own | Room::Any => found.own_blocks += blocks,
            }
        }
        Some(found)
    }

    /// A slot for a block of a tenant, unless it is to wait for one.
    pub fn take(&mut self, tenant: usize, room: Room) -> Option<Taken> {
        let class = self.class_of(tenant);
        if self.classes.get(class)?.waiting.is_empty() { self.take_by(class, room) } else { None }
    }

    fn take_by(&mut self, class: usize, room: Room) -> Option<Taken> {
        let slot = match self.choose(&self.classes[class], room) {
            Choice::Pool(pool) => self.free.take(pool),
            Choice::Anywhere => self.free.take_any(),
            Choice::Wait => None,
        }?;
        Some(self.taken(class, slot))
    }

    /// Notes that a slot is taken.
    fn taken(&mut self, class: usize, slot: u32) -> Taken {
        let taken = Taken { slot, class: class as u16 };
        self.note(taken, |held| held.used += 1);
        self.classes[class].used += 1;
        taken
    }

    fn choose(&self, class: &Class, room: Room) -> Choice {
        if class.used >= class.allowed {
            return Choice::Wait;
        }
        for wanted in [true, false] {
            let mut coming = 0;
            for share in &class.shares {
                if self.suits(class, share.pool, room) != wanted {
                    continue;
                }
                let may = share.held.used < share.most;
                if may && self.free.has(share.pool) {
                    return Choice::Pool(share.pool);
                }
                coming += if may { self.coming[share.pool] } else { share.held.leaving };
            }
            if coming > 0 {
                return Choice::Wait;
            }
        }
        Choice::Anywhere
    }

    /// A residence of a tenant waits for a slot.
    pub fn wait(&mut self, tenant: usize, room: Room, residence: u32) {
        let class = self.class_of(tenant);
        let arrival = self.arrivals;
        self.classes[class].waiting.push_back(Waiting { arrival, residence, room });
        self.arrivals += 1;
        self.waiting += 1;
    }

    /// The block in a slot leaves: the slot will be given back.
    pub fn leave(&mut self, taken: Taken) {
        if let Some(coming) = self.note(taken, |held| held.leaving += 1) {
            *coming += 1;
        }
    }

    /// The opposite of [`Slots::leave`].
    fn stay(&mut self, taken: Taken) {
        if let Some(coming) = self.note(taken, |held| held.leaving -= 1) {
            *coming -= 1;
        }
    }

    /// Gives a slot back whose block has left; returns who gets one for it.
    pub fn give_back(&mut self, taken: Taken) -> Vec<(u32, Taken)> {
        self.stay(taken);
        self.note(taken, |held| held.used -= 1);
        self.classes[usize::from(taken.class)].used -= 1;
        self.free.give_back(taken.slot);
        self.serve()
    }

    /// Changes what is counted of a slot's holder, by its channel and by the share of its pool;
    /// returns what is on its way to that pool.
    fn note(&mut self, taken: Taken, change: impl Fn(&mut Held)) -> Option<&mut u32> {
        let channel = self.free.channel_of(taken.slot);
        let pool = self.free.pool_of(channel);
        let class = &mut self.classes[usize::from(taken.class)];
        change(&mut class.by_channel[channel]);
        if let Some(share) = class.shares.iter_mut().find(|share| share.pool == pool) {
            change(&mut share.held);
        }
        self.coming.get_mut(pool)
    }

    /// Gives slots to those who wait longest and may take one.
    fn serve(&mut self) -> Vec<(u32, Taken)> {
        let mut served = Vec::new();
        while self.waiting > 0
            && let Some(one) = self.serve_one()
        {
            served.push(one);
        }
        served
    }

    fn serve_one(&mut self) -> Option<(u32, Taken)> {
        let classes = self.classes.iter().enumerate();
        let heads = classes.filter_map(|(class, held)| Some((class, *held.waiting.front()?)));
        let mut heads: Vec<(usize, Waiting)> = heads.collect();
        heads.sort_unstable_by_key(|(_, head)| head.arrival);
        for (class, head) in heads {
            if let Some(taken) = self.take_by(class, head.room) {
                self.classes[class].waiting.pop_front();
                self.waiting -= 1;
                return Some((head.residence, taken));
            }
        }
        None
    }

    /// Tells the tenants' quotas where a layout bounds what each may take; returns who gets a slot
    /// for it.
    pub fn allow(&mut self, quotas: &[u32]) -> Vec<(u32, Taken)> {
        let Some(spare) = self.spare else { return Vec::new() };
        for (class, quota) in self.classes.iter_mut().zip(quotas) {
            class.allowed = quota.saturating_add(spare);
        }
        self.serve()
    }
}

impl Class {
    fn new(shares: Vec<Share>, channels: usize) -> Class {
        let by_channel = vec![Held::default(); channels];
        Class { shares, used: 0, allowed: ANY, by_channel, waiting: VecDeque::new() }
    }
}

#[cfg(test)]
mod tests;
