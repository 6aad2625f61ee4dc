//! The flash of a drive: channels, chips, dies and planes under simulated time.
//!
//! For: page-sized transactions in, completions out, with mapping, scheduling, cleaning and the
//! time of each. Must never know: the host's protocol, caches, files. Units: pages, nanoseconds.
//! Invariants (audited): each transaction completes exactly once; a page is read where its newest
//! copy is or was when the read began; nothing is programmed to a block that is still to be erased;
//! a block is erased only when nobody reads it any more. Source: MQSim (FAST'18) for the model; its
//! defects are not copied.
//!
//! A transaction that needs the map or a page on its way stands aside ([`admit`]), then waits in a
//! queue of its unit and is issued ([`schedule`]); events end what was begun ([`flow`]); what the
//! translation layer decides becomes work too ([`cleaning`]).

mod admit;
mod audit;
pub mod bus;
mod check;
mod cleaning;
mod contents;
mod decide;
pub mod error;
mod events;
mod flow;
mod layer;
mod map_cache;
pub mod order;
pub mod params;
pub mod priority;
mod schedule;
mod shape;
mod space;
pub mod stats;
pub mod tenants;
mod transaction;
pub mod unit;

pub use bus::Bus;
pub use error::FlashError;
pub use order::PlaneOrder;
pub use params::{
    Cell, CellKind, Collect, Fill, FlashParams, Joules, Layout, MapCache, Schedule, Shape,
    Unwritten,
};
pub use priority::Priority;
pub use stats::{Counters, FlashStats, Waits};
pub use unit::{Class, Stage};

use crate::energy::Energy;
use crate::layer::Steps;
use crate::spent::Spent;
use cachewright_ftl::{Counts, FtlError, Wear};
use cachewright_types::{Nanos, Seed, TenantId};
use cleaning::Jobs;
use contents::Contents;
use decide::Controller;
use events::Events;
use hashbrown::HashMap;
use map_cache::{MapMemory, TablePage};
use space::Space;
use transaction::{Id, NIL, Slab};
use unit::{CLASSES, Channel, Unit};

/// What the host asks of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its data.
    Read,
    /// To hold new data.
    Write,
    /// To be forgotten.
    Trim,
}

/// One page-sized piece of a host request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Returned with the completion.
    pub tag: u64,
    /// Whose it is.
    pub tenant: TenantId,
    /// Group of channels; 0 unless channels are exposed in groups.
    pub group: u16,
    /// What is asked.
    pub kind: Kind,
    /// Page of the group.
    pub page: u32,
    /// Sectors of the page that are touched, a bit each.
    pub sectors: u64,
}

/// A transaction that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its tag.
    pub tag: u64,
    /// When it was done.
    pub finished: Nanos,
    /// Where the time since it was submitted went.
    pub spent: Spent,
}

/// Where a plane is.
#[derive(Clone, Copy, Debug)]
struct Site {
    unit: u32,
    die: u32,
}

/// The flash of one drive.
pub struct Backend {
    params: FlashParams,
    sites: Vec<Site>,
    units_per_channel: u32,
    now: u64,
    events: Events,
    work: Slab,
    units: Vec<Unit>,
    channels: Vec<Channel>,
    controller: Controller,
    /// Work queued for each plane, by class.
    plane_load: Vec<[u32; CLASSES]>,
    /// Channels to look at before time goes on.
    touched: Vec<u32>,
    /// Physical pages that will be programmed, and by which transaction.
    writing: HashMap<u32, Id, foldhash::fast::FixedState>,
    space: Space,
    steps: Steps,
    jobs: Jobs,
    /// Blocks that will be erased, by plane.
    erasing: Vec<u32>,
    map: Option<MapMemory>,
    /// Pages of the mapping table that are being read, and by which transaction.
    fetching: HashMap<TablePage, Id, foldhash::fast::FixedState>,
    /// Work of now can begin at once: no other comes with it.
    alone: bool,
    done: Vec<Done>,
    outstanding: usize,
    counters: Counters,
    waits: [Waits; CLASSES],
    fault: Option<FtlError>,
    contents: Option<Box<Contents>>,
    /// What the translation layers had done when the device was filled.
    before: Counts,
}

impl Backend {
    /// The flash of a drive, filled as its parameters say. Errors: impossible devices by parameter
    /// and value; unknown schemes; a translation layer without room.
    pub fn new(params: &FlashParams, seed: Seed) -> Result<Backend, FlashError> {
        check::check(params)?;
        let shape = &params.shape;
        let overlap = params.schedule.die_interleave;
        let dies_per_unit = if overlap { 1 } else { shape.dies_per_chip };
        let units_per_channel = shape.chips_per_channel * shape.dies_per_chip / dies_per_unit;
        let site = |plane: u32| {
            let die = plane / shape.planes_per_die;
            Site { unit: die / dies_per_unit, die }
        };
        let channel = |index: u32| Channel::new(index * units_per_channel);
        let unit = |index: u32| Unit::new(index / units_per_channel, index % units_per_channel);
        let mut backend = Backend {
            sites: (0..shape.planes()).map(site).collect(),
            units_per_channel,
            now: 0,
            events: Events::default(),
            work: Slab::new(),
            units: (0..shape.channels * units_per_channel).map(unit).collect(),
            channels: (0..shape.channels).map(channel).collect(),
            controller: Controller::default(),
            plane_load: vec![[0; CLASSES]; shape.planes() as usize],
            touched: Vec::new(),
            writing: HashMap::default(),
            space: Space::new(params, seed)?,
            steps: Steps::default(),
            jobs: Jobs::default(),
            erasing: vec![0; shape.planes() as usize],
            map: None,
            fetching: HashMap::default(),
            alone: false,
            done: Vec::new(),
            outstanding: 0,
            counters: Counters::default(),
            waits: [Waits::default(); CLASSES],
            fault: None,
            contents: None,
            before: Counts::default(),
            params: params.clone(),
        };
        backend.before = backend.layer_counts();
        backend.warm_map(seed);
        backend.note_urgency_everywhere();
        Ok(backend)
    }

    /// Accepts the transactions of one host request at `now`; each completes exactly once. `now`
    /// is not before any time named earlier. A page beyond the end of its group is the caller's
    /// fault, and completes at once.
    pub fn submit(&mut self, now: Nanos, batch: &[Transaction]) {
        debug_assert!(now.0 >= self.now, "time goes on");
        self.now = self.now.max(now.0);
        if let Some(first) = batch.first()
            && first.kind == Kind::Write
            && first.group < self.groups()
        {
            let (tenant, pages) = (first.tenant.0, batch.len() as u32);
            self.space.begin(first.group, tenant, first.page, pages);
        }
        // Pages of one request may share commands, so they are queued together.
        self.alone = batch.len() == 1;
        for transaction in batch {
            self.outstanding += 1;
            self.accept(transaction);
        }
        self.alone = false;
        self.dispatch();
    }

    /// When something next happens inside; nothing when all is done.
    pub fn next_due(&self) -> Option<Nanos> {
        if self.done.is_empty() { self.events.next().map(Nanos) } else { Some(Nanos(self.now)) }
    }

    /// Lets everything due at or before `now` happen, in order of time, and appends what completed,
    /// in the order of completion.
    pub fn advance(&mut self, now: Nanos, done: &mut Vec<Done>) {
        while let Some((time, what, index)) = self.events.pop(now.0) {
            debug_assert!(time >= self.now, "no event in the past");
            self.now = time;
            self.happen(what, index);
            self.dispatch();
        }
        self.now = self.now.max(now.0);
        if done.is_empty() {
            std::mem::swap(done, &mut self.done);
        } else {
            done.append(&mut self.done);
        }
    }

    /// Transactions of the host accepted and not yet handed back.
    pub fn outstanding(&self) -> usize {
        self.outstanding + self.done.len()
    }

    /// Groups of channels.
    pub fn groups(&self) -> u16 {
        self.space.groups()
    }

    /// Pages of a group that the host sees.
    pub fn logical_pages(&self, group: u16) -> u32 {
        self.space.pages(group)
    }

    /// Channels.
    pub fn channels(&self) -> u32 {
        self.channels.len() as u32
    }

    /// Channels that carry a command or data at `now`.
    pub fn busy_channels(&self, now: Nanos) -> u32 {
        let busy = |channel: &&Channel| channel.crossing != NIL || channel.busy_until > now.0;
        self.channels.iter().filter(busy).count() as u32
    }

    /// Whether a page of a group has a place in flash.
    pub fn holds(&self, group: u16, page: u32) -> bool {
        self.space.locate(self.space.of_page(group, page)).is_some()
    }

    /// The mask of all sectors of a page.
    pub fn whole_page(&self) -> u64 {
        self.space.whole()
    }

    /// Why a write could not be done, if one ever could not: the drive is full, and reclaim frees
    /// nothing. Such writes complete without flash.
    pub fn fault(&self) -> Option<&FtlError> {
        self.fault.as_ref()
    }

    /// What all translation layers have done.
    fn layer_counts(&self) -> Counts {
        let mut sum = Counts::default();
        for (_, _, layer) in self.space.layers() {
            let counts = layer.counts();
            sum.user_pages += counts.user_pages;
            sum.collections += counts.collections;
            sum.moved_pages += counts.moved_pages;
        }
        sum
    }

    /// Adds the energy of the operations begun so far.
    pub fn spend(&self, energy: &mut Energy) {
        let (counters, joules) = (&self.counters, &self.params.joules);
        energy.spend("flash reads", joules.read, counters.reads());
        energy.spend("flash programs", joules.program, counters.programs());
        energy.spend("flash erases", joules.erase, counters.erases);
        energy.spend("channels", joules.channel_byte, counters.channel_bytes);
    }

    /// What was done up to `now`, or to the time named last if that is later, filling it apart (but
    /// its erases count as wear).
    pub fn stats(&self, now: Nanos) -> FlashStats {
        let now = now.max(Nanos(self.now));
        let mut stats = FlashStats {
            counters: Counters { events: self.events.made(), ..self.counters },
            channel_busy_ns: self.channels.iter().map(|channel| channel.busy_ns(now.0)).collect(),
            unit_worked_ns: self.units.iter().map(|unit| unit.worked_ns(now.0)).collect(),
            unit_cleaned_ns: self.units.iter().map(|unit| unit.cleaned_ns(now.0)).collect(),
            controller_busy_ns: self.controller.busy_ns(now.0),
            waits: self.waits,
            preconditioned: self.params.fill.word(),
            fault: self.fault.clone(),
            ..FlashStats::default()
        };
        for (stage, _) in Stage::BUSY {
            let units = self.units.iter().map(|unit| unit.stage_ns(stage, now.0));
            stats.stage_ns[stage as usize] = units.sum();
        }
        let layers = || self.space.layers().map(|(_, _, layer)| layer);
        stats.free_blocks = layers().map(|layer| u64::from(layer.free_blocks())).sum();
        stats.mapped_pages = layers().map(|layer| u64::from(layer.mapped_pages())).sum();
        stats.wear = Wear::of(layers().flat_map(|layer| layer.blocks().iter().map(|b| b.erases)));
        let counts = self.layer_counts() - self.before;
        stats.collections = counts.collections;
        stats.moved_pages = counts.moved_pages;
        stats
    }
}
