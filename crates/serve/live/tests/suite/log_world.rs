//! A log with an owner that writes, drops and cleans blocks, and remembers what it did.
//!
//! For: tests that lose power. What recovery finds must be the state after some prefix of what was
//! done, not older than the last sync that was over.

use cachewright_live::io::executor::{Executor, OpId, Signal};
use cachewright_live::io::sim::{Sim, SimFile};
use cachewright_live::io::token::Submitter;
use cachewright_live::io::{FileId, Io, IoError, Output, batch};
use cachewright_live::log::format::{
    LogRecordKind, SetId, Version, Volume, VolumeId, data_checksum,
};
use cachewright_live::log::{
    Appended, CleaningLoss, CleaningSite, Content, ContentStanding, FormatSettings, Log, LogEntry,
    LogEvent, LogSettings, OpenSet, Owner, Place, RecoveredLog, SegmentId, SegmentUse, WritePoint,
    clean, format, open, read_log,
};
use cachewright_types::{Rng, Seed};
use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

pub const BLOCK: usize = 4096;
pub const SEGMENT: u32 = 64 << 10;
/// Callers from here on are those of syncs, and of reads; smaller ones are the cleaner's.
const SYNC: u64 = 1 << 40;
const READ: u64 = 1 << 50;

pub type Block = (VolumeId, u64);

/// The content of a block: a number, and whether the backing device has older content.
pub type State = BTreeMap<Block, (u64, bool)>;

#[derive(Clone, Copy, Debug)]
struct Live {
    place: Place,
    value: u64,
    dirty: bool,
}

/// What the owner of the log knows.
#[derive(Default)]
pub struct Blocks {
    live: BTreeMap<Block, Live>,
    decision: u64,
}

impl Owner for Blocks {
    fn standing(&self, volume: VolumeId, number: u64, place: Place) -> ContentStanding {
        match self.live.get(&(volume, number)).filter(|live| live.place == place) {
            None => ContentStanding::Dead,
            Some(Live { dirty: true, .. }) => ContentStanding::Dirty,
            Some(_) => ContentStanding::Clean,
        }
    }

    fn moved(&mut self, volume: VolumeId, number: u64, _from: Place, to: &Appended) {
        if let Some(live) = self.live.get_mut(&(volume, number)) {
            live.place = to.place;
        }
    }

    fn stream(&mut self, _log: &Log, _volume: VolumeId, _number: u64, _from: Place) -> usize {
        1
    }

    fn is_cold(&self, _volume: VolumeId, _number: u64, _place: Place) -> bool {
        false
    }

    fn forget(&mut self, _volume: VolumeId, _number: u64, _loss: CleaningLoss) {
        unreachable!("no read fails here");
    }

    fn may_return(&self, _volume: VolumeId, _blocks: Range<u64>) -> bool {
        false
    }

    fn last_decision(&self) -> u64 {
        self.decision
    }
}

/// A log, its owner, and all that may be found after a loss of power.
pub struct World {
    pub sim: Sim,
    site: Site,
    tasks: Executor,
    /// Segments that were cleaned, and whether one is being cleaned.
    cleaning: Rc<Cell<(u64, bool)>>,
    /// States after each operation since the last one that is durable for sure.
    history: Vec<State>,
    /// How many operations each sync under way covers, by caller.
    syncs: BTreeMap<u64, usize>,
    next_sync: u64,
    reads: BTreeMap<u64, u64>,
}

/// The log and its owner, as the cleaner shares them.
#[derive(Clone)]
struct Site {
    shared: Rc<RefCell<(Log, Blocks)>>,
    tasks: Executor,
    /// Groups have become durable.
    durable: Signal,
}

impl CleaningSite for Site {
    fn with<R>(&self, work: impl FnOnce(&mut Log, &mut Executor, &mut dyn Owner) -> R) -> R {
        let (log, blocks) = &mut *self.shared.borrow_mut();
        work(log, &mut self.tasks.clone(), blocks)
    }

    async fn goes_on(&self) -> bool {
        true
    }

    async fn waits(&self, _room: bool) -> bool {
        self.durable.wait().await;
        true
    }
}

fn content(value: u64) -> Vec<u8> {
    value.to_le_bytes().repeat(BLOCK / 8)
}

/// A set of formatted devices in a new simulation.
pub fn formatted(seed: Seed, devices: usize, segments: u64) -> (Sim, Vec<FileId>) {
    let mut sim = Sim::new(seed);
    let bytes = (2 << 20) + segments * u64::from(SEGMENT);
    let files: Vec<FileId> = (0..devices).map(|_| sim.add_file(SimFile::new(bytes))).collect();
    let volume =
        |id: u32| Volume { id: VolumeId(id), name: format!("volume-{id}"), bytes: 1 << 30 };
    let settings = FormatSettings {
        set: SetId(7),
        block_bytes: BLOCK as u32,
        segment_bytes: SEGMENT,
        volumes: vec![volume(0), volume(1)],
    };
    format(&mut sim, &files, &settings).unwrap();
    (sim, files)
}

/// Opens and recovers what a simulation holds.
pub fn recovered(sim: &mut Sim, files: &[FileId]) -> Option<(OpenSet, RecoveredLog)> {
    let set = open(sim, files).ok()?;
    let found = read_log(sim, &set).ok()?;
    assert!(!found.has_lost(), "devices keep what they have synced");
    let found = found.settle(sim).ok()?;
    Some((set, found))
}

/// What was found, with the content that was read from the devices.
pub fn state_of(sim: &mut Sim, set: &OpenSet, found: &RecoveredLog) -> State {
    let set = &set.set;
    let read = |(place, sim): (Place, &mut Sim)| {
        let (segment, page) = set.locate(place);
        let start = set.page(segment, page);
        batch::read(sim, [(start.file, start.offset, BLOCK)]).pop().unwrap().unwrap()
    };
    let mut state = State::new();
    for block in &found.blocks {
        let data = read((block.place, sim));
        let key = (block.volume, block.number);
        assert_eq!(data_checksum(key.0, key.1, &data), block.checksum, "content of {key:?}");
        let value = u64::from_le_bytes(data[..8].try_into().unwrap());
        assert_eq!(&data[..], &content(value)[..], "one value in {key:?}");
        state.insert(key, (value, block.dirty));
    }
    state
}

impl World {
    /// Goes on with what recovery found.
    pub fn new(sim: Sim, set: &OpenSet, found: RecoveredLog, state: State) -> World {
        let settings = LogSettings {
            streams: 2,
            user_streams: 1,
            moved_streams: 1,
            group_blocks: 4,
            spare_segments: 4,
        };
        let live = |block: &cachewright_live::log::RecoveredBlock| {
            let key = (block.volume, block.number);
            let (value, dirty) = state[&key];
            (key, Live { place: block.place, value, dirty })
        };
        let live = found.blocks.iter().map(live).collect();
        let blocks = Blocks { live, decision: found.last_decision };
        let log = Log::new(set.set.clone(), settings, found.segments, found.last_group);
        let tasks = Executor::default();
        let durable = tasks.signal();
        let shared = Rc::new(RefCell::new((log, blocks)));
        World {
            sim,
            site: Site { shared, tasks: tasks.clone(), durable },
            tasks,
            cleaning: Rc::default(),
            history: vec![state],
            syncs: BTreeMap::new(),
            next_sync: SYNC,
            reads: BTreeMap::new(),
        }
    }

    fn log(&self) -> RefMut<'_, Log> {
        RefMut::map(self.site.shared.borrow_mut(), |(log, _)| log)
    }

    /// What the owner of the log knows.
    pub fn blocks(&self) -> RefMut<'_, Blocks> {
        RefMut::map(self.site.shared.borrow_mut(), |(_, blocks)| blocks)
    }

    /// Segments that were cleaned.
    pub fn cleaned(&self) -> u64 {
        self.cleaning.get().0
    }

    fn note(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = self.history.last().unwrap().clone();
        change(&mut state);
        self.history.push(state);
    }

    /// Writes a block; false when the log is full.
    pub fn write(&mut self, block: Block, value: u64, dirty: bool) -> bool {
        let decision = self.blocks().decision + 1;
        let data = content(value);
        let entry =
            LogEntry::Content(Content { data: &data, dirty, damaged: false, checksum: None });
        let version = Version::written(decision);
        let point = WritePoint::default();
        let (mut log, mut tasks) = (self.log(), self.tasks.clone());
        let appended = log.append(&mut tasks, point, false, block, version, entry);
        drop(log);
        let Ok(appended) = appended else { return false };
        self.blocks().decision = decision;
        let live = Live { place: appended.place, value, dirty };
        let old = self.blocks().live.insert(block, live);
        if let Some(old) = old {
            self.log().note_dead(old.place);
        }
        self.tasks.take_ops(&mut self.sim);
        self.note(|state| {
            state.insert(block, (value, dirty));
        });
        true
    }

    /// Takes blocks out of the cache, or notes that the backing device has them.
    pub fn note_range(&mut self, volume: VolumeId, start: u64, blocks: u32, gone: bool) -> bool {
        let decision = self.blocks().decision + 1;
        let kind =
            if gone { LogRecordKind::Gone { blocks } } else { LogRecordKind::Cleaned { blocks } };
        let version = Version::left_first(decision);
        let entry = LogEntry::Note(kind);
        let point = WritePoint::default();
        let (mut log, mut tasks) = (self.log(), self.tasks.clone());
        let appended = log.append(&mut tasks, point, false, (volume, start), version, entry);
        drop(log);
        if appended.is_err() {
            return false;
        }
        self.blocks().decision = decision;
        let range = (volume, start)..(volume, start + u64::from(blocks));
        let within: Vec<Block> = self.blocks().live.range(range).map(|(block, _)| *block).collect();
        for block in &within {
            if gone {
                let live = self.blocks().live.remove(block).unwrap();
                self.log().note_dead(live.place);
            } else {
                self.blocks().live.get_mut(block).unwrap().dirty = false;
            }
        }
        self.tasks.take_ops(&mut self.sim);
        self.note(|state| {
            for block in &within {
                if gone {
                    state.remove(block);
                } else {
                    state.get_mut(block).unwrap().1 = false;
                }
            }
        });
        true
    }

    /// Begins a sync of all that was done.
    pub fn sync(&mut self) {
        let caller = self.next_sync;
        self.next_sync += 1;
        self.syncs.insert(caller, self.history.len() - 1);
        let mut tasks = self.tasks.clone();
        self.log().sync(&mut tasks, caller);
        self.advance();
    }

    /// Hands open groups to the devices.
    pub fn commit(&mut self) {
        let mut tasks = self.tasks.clone();
        self.log().commit(&mut tasks);
        self.tasks.take_ops(&mut self.sim);
    }

    /// Begins to read a block.
    pub fn read(&mut self, block: Block) {
        let Some(live) = self.blocks().live.get(&block).copied() else { return };
        let (mut log, mut tasks) = (self.site.shared.borrow_mut(), self.tasks.clone());
        match log.0.content(live.place) {
            Some(data) => assert_eq!(data, &content(live.value)[..]),
            None => {
                let caller = READ + self.reads.len() as u64;
                self.reads.insert(caller, live.value);
                log.0.read(&mut tasks, live.place, caller);
            }
        }
        drop(log);
        self.tasks.take_ops(&mut self.sim);
    }

    /// Begins to clean the sealed segment with the least live content, if none is being cleaned.
    pub fn clean(&mut self) {
        let log = self.log();
        let sealed = log.segments().filter(|(_, found)| found.usage == SegmentUse::Sealed);
        let victim = sealed.min_by_key(|(id, found)| (found.live, *id)).map(|(id, _)| id);
        let can_clean = log.free_segments(0) <= 6 && !self.cleaning.get().1;
        drop(log);
        if let Some(victim) = victim.filter(|_| can_clean) {
            let (site, cleaning) = (self.site.clone(), self.cleaning.clone());
            cleaning.set((self.cleaned(), true));
            self.tasks.spawn(async move {
                assert_eq!(clean(&site, victim).await, Ok(()));
                cleaning.set((cleaning.get().0 + 1, false));
            });
            self.go_on();
        }
    }

    /// Lets the cleaner go on, and begins what it and the log have begun.
    fn go_on(&mut self) {
        self.tasks.run();
        self.tasks.take_ops(&mut self.sim);
    }

    fn advance(&mut self) {
        let (mut events, mut tasks) = (Vec::new(), self.tasks.clone());
        self.log().advance(&mut tasks, &mut events);
        self.take(events);
    }

    /// One operation is done; false when none is under way.
    pub fn step(&mut self) -> bool {
        if !self.sim.is_busy() {
            return false;
        }
        let mut done = Vec::new();
        self.sim.wait(&mut done);
        let (mut events, mut tasks) = (Vec::new(), self.tasks.clone());
        for done in done {
            assert_eq!(Submitter::of(done.token), Some(Submitter::Log));
            self.log().on_done(&mut tasks, done, &mut events);
        }
        self.take(events);
        self.advance();
        true
    }

    fn take(&mut self, events: Vec<LogEvent>) {
        for event in events {
            match event {
                LogEvent::Read(caller, data, _) if caller >= READ => {
                    let value = self.reads[&caller];
                    assert_eq!(&data[..], &content(value)[..], "what was read");
                }
                LogEvent::Read(caller, data, result) => {
                    let length = data.len();
                    let result = result.map(|()| Output::Buffer(data, length));
                    self.tasks.end_op(OpId(caller as u32), result);
                }
                LogEvent::Synced(caller, result) if caller >= SYNC => {
                    result.unwrap();
                    self.forget_before(caller);
                }
                LogEvent::Synced(caller, result) => {
                    let result = result.map(|()| Output::Nothing).map_err(|_| IoError::IO);
                    self.tasks.end_op(OpId(caller as u32), result);
                }
                LogEvent::Durable(_) => self.site.durable.give(),
                LogEvent::Written(_) => {}
                LogEvent::Failed(error) => panic!("the log has failed: {error}"),
            }
        }
        self.go_on();
    }

    /// A sync is over: what was done before it is durable.
    fn forget_before(&mut self, caller: u64) {
        let covered = self.syncs.remove(&caller).unwrap();
        self.history.drain(..covered);
        for position in self.syncs.values_mut() {
            *position = position.saturating_sub(covered);
        }
    }

    /// Whether that is the state after some of what was done since the last sync that is over.
    pub fn allows(&self, found: &State) -> bool {
        self.history.contains(found)
    }

    /// What the log holds now.
    pub fn state(&self) -> &State {
        self.history.last().unwrap()
    }

    /// Checks what was found after a loss of power.
    pub fn check(&self, found: &State, context: &dyn Fn() -> String) {
        let allowed = self.allows(found);
        let last = self.history.last().unwrap();
        assert!(
            allowed,
            "{}\nfound {found:?}\nlast  {last:?}\n{} states",
            context(),
            self.history.len()
        );
    }

    /// Live blocks per segment are those that the owner knows.
    pub fn audit(&self) {
        let mut live: BTreeMap<SegmentId, u32> = BTreeMap::new();
        let (log, blocks) = &*self.site.shared.borrow();
        for block in blocks.live.values() {
            *live.entry(log.set().locate(block.place).0).or_default() += 1;
        }
        for (id, segment) in log.segments() {
            assert_eq!(segment.live, live.get(&id).copied().unwrap_or_default(), "{id:?}");
        }
    }
}

/// The cleaner holds the executor, which holds it.
impl Drop for World {
    fn drop(&mut self) {
        self.tasks.clear();
    }
}

/// A block of one of two small volumes.
pub fn any_block(rng: &mut Rng, blocks: u64) -> Block {
    (VolumeId(rng.below(2) as u32), rng.below(blocks))
}
