//! A world of two devices that know which version of which block lies where.
//!
//! Every tenant has one block, so that a command's tenant names the block. Every command is checked
//! when it begins: no block is read for another one, nothing is overwritten that is not elsewhere
//! too.

use cachewright_cache::{Cached, Move, Plan};
use cachewright_device::{Command, Completion, Device, Exposed, Spent};
use cachewright_partition::layout::{ChannelMap, PoolShare};
use cachewright_policy::Region;
use cachewright_system::machines::{Machine, MachineParts, MachineSettings, Slots};
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Rng, TenantId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

/// log2 of the block size.
pub const SHIFT: u32 = 12;

/// A write to the cache device that is still to come.
#[derive(Clone, Copy, Debug)]
enum Write {
    Fill,
    Host(u32),
}

/// What is known of one block; versions count the writes asked for.
#[derive(Clone, Debug, Default)]
struct Block {
    held: bool,
    swapped: bool,
    dirty: bool,
    slot: Option<u64>,
    version: u32,
    latest: u32,
    /// The latest version that was read from the cache device.
    seen: u32,
    fetched: u32,
    backing: u32,
    coming: VecDeque<Write>,
}

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct Begun {
    due_ns: u64,
    command: Command,
    submitted_ns: u64,
    version: u32,
}

/// What lies where, and what was asked of the devices.
#[derive(Default)]
pub struct World {
    slots: HashMap<u64, u16>,
    blocks: Vec<Block>,
    /// Commands are noted and not checked.
    pub blind: bool,
    /// Commands as (microseconds, device, kind, slot or number, tenant).
    pub log: Vec<(u64, char, char, u64, u16)>,
}

impl World {
    fn block(&mut self, tenant: u16) -> &mut Block {
        if self.blocks.len() <= usize::from(tenant) {
            self.blocks.resize(usize::from(tenant) + 1, Block::default());
        }
        &mut self.blocks[usize::from(tenant)]
    }

    /// A command begins; returns the version it carries.
    fn begin(&mut self, cache: bool, command: &Command, others: &[Begun]) -> u32 {
        let (place, tenant) = (command.offset.0 >> SHIFT, command.tenant.0);
        if self.blind {
            return 0;
        }
        assert_eq!(command.length.0, 1 << SHIFT, "one block at a time");
        let here = |other: &&Begun| cache && other.command.offset == command.offset;
        let at_work: Vec<&Begun> = others.iter().filter(here).collect();
        let block = self.block(tenant).clone();
        match (cache, command.op) {
            (false, Op::Read) => block.backing,
            (false, _) => block.seen,
            (true, Op::Read) => {
                assert_eq!(self.slots.get(&place), Some(&tenant), "slot {place} is read");
                let writes = at_work.iter().any(|other| other.command.op == Op::Write);
                assert!(!writes, "slot {place} is being written");
                block.version
            }
            (true, _) => {
                let strangers = at_work.iter().any(|other| other.command.tenant.0 != tenant);
                assert!(!strangers, "slot {place} is in use by another block");
                self.overwrite(place, tenant);
                let moves = block.slot.is_some_and(|slot| slot != place);
                let block = self.block(tenant);
                if moves {
                    assert_eq!(block.seen, block.version, "what moves was read");
                } else {
                    block.version = match block.coming.pop_front() {
                        Some(Write::Fill) => block.fetched,
                        Some(Write::Host(version)) => version,
                        None => panic!("block {tenant} is written to slot {place} for nothing"),
                    };
                }
                block.slot = Some(place);
                let version = block.version;
                self.slots.insert(place, tenant);
                version
            }
        }
    }

    /// What lies in a slot must be safe elsewhere before another block comes there.
    fn overwrite(&mut self, place: u64, tenant: u16) {
        let Some(old) = self.slots.get(&place).copied().filter(|old| *old != tenant) else {
            return;
        };
        let old_block = self.block(old);
        let gone = old_block.slot != Some(place);
        let saved = !old_block.held && old_block.backing >= old_block.version;
        let read = old_block.swapped && old_block.seen == old_block.version;
        assert!(gone || saved || read, "slot {place}: block {old} is lost to {tenant}");
    }

    fn end(&mut self, cache: bool, begun: &Begun) {
        let block = self.block(begun.command.tenant.0);
        let known = match (cache, begun.command.op) {
            (true, Op::Read) => &mut block.seen,
            (false, Op::Read) => &mut block.fetched,
            (false, _) => &mut block.backing,
            (true, _) => return,
        };
        *known = (*known).max(begun.version);
    }

    /// Nothing is under way: every block is where it should be, in its latest version.
    pub fn check_idle(&self) {
        for (number, block) in self.blocks.iter().enumerate() {
            assert!(block.coming.is_empty(), "block {number} waits for {:?}", block.coming);
            if block.held {
                assert_eq!(block.version, block.latest, "block {number} in the cache");
                let slot = block.slot.unwrap();
                assert_eq!(self.slots[&slot], number as u16, "slot {slot}");
            }
            if !block.dirty {
                assert_eq!(block.backing, block.latest, "block {number} at home");
            }
        }
    }

    /// Where a block lies.
    pub fn slot(&self, tenant: u16) -> Option<u64> {
        self.blocks[usize::from(tenant)].slot
    }
}

/// A device of so many at once, with latencies from a range.
struct Watched {
    world: Arc<Mutex<World>>,
    cache: bool,
    latency_ns: (u64, u64),
    rng: Rng,
    begun: Vec<Begun>,
    exposed: Vec<Exposed>,
}

impl Device for Watched {
    fn capacity(&self) -> Bytes {
        Bytes(1 << 30)
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        let mut world = self.world.lock().unwrap();
        let version = world.begin(self.cache, &command, &self.begun);
        let place = command.offset.0 >> SHIFT;
        let (device, op) = (if self.cache { 'c' } else { 'b' }, command.op);
        let kind = if op == Op::Read { 'R' } else { 'W' };
        world.log.push((now.0 / 1000, device, kind, place, command.tenant.0));
        let (least, most) = self.latency_ns;
        let due_ns = now.0 + least + self.rng.below(most - least + 1);
        self.begun.push(Begun { due_ns, command, submitted_ns: now.0, version });
    }

    fn next_due(&self) -> Option<Nanos> {
        self.begun.iter().map(|begun| Nanos(begun.due_ns)).min()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.begun.sort_by_key(|begun| begun.due_ns);
        let count = self.begun.partition_point(|begun| begun.due_ns <= now.0);
        for begun in self.begun.drain(..count) {
            self.world.lock().unwrap().end(self.cache, &begun);
            let mut spent = Spent::default();
            spent.add(cachewright_device::SpentPart::Transfer, begun.due_ns - begun.submitted_ns);
            let (submitted, finished) = (Nanos(begun.submitted_ns), Nanos(begun.due_ns));
            done.push(Completion { tag: begun.command.tag, submitted, finished, spent });
        }
    }

    fn outstanding(&self) -> usize {
        self.begun.len()
    }

    fn exposed(&self) -> Vec<Exposed> {
        self.exposed.clone()
    }

    fn audit(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Channels of so many blocks each.
pub fn channels(blocks: &[u64]) -> Vec<Exposed> {
    let mut start = 0;
    let exposed = blocks.iter().enumerate().map(|(channel, blocks)| {
        let bytes = start..start + (blocks << SHIFT);
        start = bytes.end;
        Exposed { channels: vec![channel as u32], bytes, page: Bytes(1 << SHIFT) }
    });
    exposed.collect()
}

/// A map of pools of channels; of each tenant its shares as (pool, blocks).
pub fn map(pools: &[Vec<u32>], tenants: &[Vec<(usize, u32)>]) -> ChannelMap {
    let share = |(pool, blocks): &(usize, u32)| PoolShare { pool: *pool, blocks: *blocks };
    let shares = tenants.iter().map(|shares| shares.iter().map(share).collect());
    ChannelMap { pools: pools.to_vec(), tenants: shares.collect(), lent: Vec::new() }
}

/// A machine of tenants of one block each, and what it is told.
pub struct Bench {
    pub machine: Machine,
    pub world: Arc<Mutex<World>>,
    pub now_ns: u64,
    pub answers: u64,
    requests: u64,
}

impl Bench {
    /// On slots; latencies in nanoseconds from least to most, of the cache and behind it.
    pub fn new(
        slots: Slots,
        settings: MachineSettings,
        tenants: usize,
        latencies_ns: [(u64, u64); 2],
        seed: u64,
    ) -> Bench {
        let world = Arc::new(Mutex::new(World::default()));
        world.lock().unwrap().blocks = vec![Block::default(); tenants];
        let device = |cache: bool| {
            Box::new(Watched {
                world: Arc::clone(&world),
                cache,
                latency_ns: latencies_ns[usize::from(!cache)],
                rng: cachewright_types::Seed(seed + u64::from(cache)).rng(),
                begun: Vec::new(),
                exposed: Vec::new(),
            }) as cachewright_device::AnyDevice
        };
        let devices = vec![device(true), device(false)];
        let backing_of = vec![1; tenants];
        let parts = MachineParts { settings, block_shift: SHIFT, slots, devices, backing_of };
        let machine = Machine::new(parts).unwrap();
        Bench { machine, world, now_ns: 0, answers: 0, requests: 0 }
    }

    /// The block of a tenant, wanted in a room.
    pub fn named(tenant: u16, room: Region) -> Cached {
        let (id, number) = (BlockId(u32::from(tenant)), u64::from(tenant));
        Cached { pool: 0, id, tenant: TenantId(tenant), number, region: room }
    }

    /// A plan of moves.
    pub fn plan(moves: Vec<Move>) -> Plan {
        Plan { moves, all_hit: false }
    }

    /// Asks for a block: `moves` come before it is served; `fetch`ed first if it is not there.
    pub fn ask(&mut self, block: Cached, op: Op, mut moves: Vec<Move>, fetch: bool) {
        let mut world = self.world.lock().unwrap();
        let known = world.block(block.tenant.0);
        if fetch {
            known.coming.push_back(Write::Fill);
            moves.extend([Move::Fetch(block), Move::Fill(block)]);
        }
        if op == Op::Write {
            known.latest += 1;
            known.coming.push_back(Write::Host(known.latest));
            known.dirty = true;
        }
        known.held = true;
        drop(world);
        moves.push(Move::Serve(block));
        let (offset, length) = (Bytes(block.number << SHIFT), Bytes(1 << SHIFT));
        let request =
            Request { time: Nanos(self.now_ns), offset, length, op, tenant: block.tenant };
        self.requests += 1;
        self.machine.request(self.requests, &request, &Bench::plan(moves), self.now_ns);
    }

    /// The move by which a block leaves.
    pub fn leave(&mut self, tenant: u16) -> Move {
        let mut world = self.world.lock().unwrap();
        let block = world.block(tenant);
        block.held = false;
        let named = Bench::named(tenant, Region::Any);
        if std::mem::take(&mut block.dirty) { Move::WriteBack(named) } else { Move::Drop(named) }
    }

    /// The move by which a block is cleaned, if it is dirty.
    pub fn clean(&mut self, tenant: u16) -> Option<Move> {
        let dirty = std::mem::take(&mut self.world.lock().unwrap().block(tenant).dirty);
        dirty.then_some(Move::Clean(Bench::named(tenant, Region::Any)))
    }

    /// The move by which two blocks change places.
    pub fn swap(&mut self, one: Cached, other: Cached) -> Move {
        let mut world = self.world.lock().unwrap();
        for block in [one, other] {
            world.block(block.tenant.0).swapped = true;
        }
        Move::Swap(Box::new([one, other]))
    }

    /// Carries out moves that no request waits for.
    pub fn beside(&mut self, moves: Vec<Move>) {
        self.machine.background(TenantId(0), &Bench::plan(moves));
    }

    /// Lets time pass until then.
    pub fn until(&mut self, time_ns: u64) {
        while let Some(due_ns) = self.machine.next_due_ns().filter(|due_ns| *due_ns <= time_ns) {
            self.machine.advance(due_ns);
            self.answers += self.machine.drain_answers().count() as u64;
        }
        if time_ns < u64::MAX {
            self.machine.wait_until(time_ns);
            self.now_ns = time_ns;
        }
        self.answers += self.machine.drain_answers().count() as u64;
    }

    /// Lets everything end; all must be well.
    pub fn finish(&mut self, held: u64) {
        self.until(u64::MAX);
        assert_eq!(self.machine.audit(held, true), Ok(()));
        assert_eq!(self.answers, self.requests, "every request is answered");
        self.world.lock().unwrap().check_idle();
    }

    /// The commands so far, and forgets them.
    pub fn log(&self) -> Vec<(u64, char, char, u64, u16)> {
        std::mem::take(&mut self.world.lock().unwrap().log)
    }
}
