//! A log with an owner that writes, drops and cleans blocks, and remembers what it did.
//!
//! For: tests that lose power. What recovery finds must be the state after some prefix of what was
//! done, not older than the last sync that was over.

use cachewright_live::io::sim::{Sim, SimFile};
use cachewright_live::io::{FileId, Io, batch};
use cachewright_live::log::format::{
    LogRecordKind, SetId, Version, Volume, VolumeId, data_checksum,
};
use cachewright_live::log::{
    Appended, Cleaner, CleaningError, CleaningLoss, Content, ContentStanding, FormatSettings, Log,
    LogEntry, LogError, LogEvent, LogSettings, OpenSet, Owner, Place, RecoveredLog, SegmentId,
    SegmentUse, WritePoint, format, open, read_log,
};
use cachewright_types::{Rng, Seed};
use std::collections::BTreeMap;
use std::ops::Range;

pub const BLOCK: usize = 4096;
pub const SEGMENT: u32 = 64 << 10;
const CLEANER: u64 = 1 << 40;
const SYNC: u64 = 1;
const READ: u64 = 1 << 30;

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
    log: Log,
    cleaner: Cleaner,
    pub blocks: Blocks,
    /// States after each operation since the last one that is durable for sure.
    history: Vec<State>,
    /// How many operations each sync under way covers, by caller.
    syncs: BTreeMap<u64, usize>,
    next_sync: u64,
    reads: BTreeMap<u64, u64>,
    pub cleaned: u64,
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
        let log = Log::new(set.set.clone(), settings, found.segments, found.last_group, 1);
        World {
            sim,
            log,
            cleaner: Cleaner::new(1, 16, CLEANER),
            blocks,
            history: vec![state],
            syncs: BTreeMap::new(),
            next_sync: SYNC,
            reads: BTreeMap::new(),
            cleaned: 0,
        }
    }

    fn note(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = self.history.last().unwrap().clone();
        change(&mut state);
        self.history.push(state);
    }

    /// Writes a block; false when the log is full.
    pub fn write(&mut self, block: Block, value: u64, dirty: bool) -> bool {
        let decision = self.blocks.decision + 1;
        let data = content(value);
        let entry =
            LogEntry::Content(Content { data: &data, dirty, damaged: false, checksum: None });
        let version = Version::written(decision);
        let point = WritePoint::default();
        let appended = self.log.append(&mut self.sim, point, false, block, version, entry);
        let Ok(appended) = appended else { return false };
        self.blocks.decision = decision;
        let live = Live { place: appended.place, value, dirty };
        if let Some(old) = self.blocks.live.insert(block, live) {
            self.log.note_dead(old.place);
        }
        self.note(|state| {
            state.insert(block, (value, dirty));
        });
        true
    }

    /// Takes blocks out of the cache, or notes that the backing device has them.
    pub fn note_range(&mut self, volume: VolumeId, start: u64, blocks: u32, gone: bool) -> bool {
        let decision = self.blocks.decision + 1;
        let kind =
            if gone { LogRecordKind::Gone { blocks } } else { LogRecordKind::Cleaned { blocks } };
        let version = Version::left_first(decision);
        let entry = LogEntry::Note(kind);
        let point = WritePoint::default();
        let appended =
            self.log.append(&mut self.sim, point, false, (volume, start), version, entry);
        if appended.is_err() {
            return false;
        }
        self.blocks.decision = decision;
        let range = (volume, start)..(volume, start + u64::from(blocks));
        let within: Vec<Block> = self.blocks.live.range(range).map(|(block, _)| *block).collect();
        for block in &within {
            if gone {
                let live = self.blocks.live.remove(block).unwrap();
                self.log.note_dead(live.place);
            } else {
                self.blocks.live.get_mut(block).unwrap().dirty = false;
            }
        }
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
        self.log.sync(&mut self.sim, caller);
        self.advance();
    }

    /// Hands open groups to the devices.
    pub fn commit(&mut self) {
        self.log.commit(&mut self.sim);
    }

    /// Begins to read a block.
    pub fn read(&mut self, block: Block) {
        let Some(live) = self.blocks.live.get(&block).copied() else { return };
        match self.log.content(live.place) {
            Some(data) => assert_eq!(data, &content(live.value)[..]),
            None => {
                let caller = READ + self.reads.len() as u64;
                self.reads.insert(caller, live.value);
                self.log.read(&mut self.sim, live.place, caller);
            }
        }
    }

    /// Begins to clean the sealed segment with the least live content, if none is being cleaned.
    pub fn clean(&mut self) {
        let sealed = self.log.segments().filter(|(_, found)| found.usage == SegmentUse::Sealed);
        let victim = sealed.min_by_key(|(id, found)| (found.live, *id)).map(|(id, _)| id);
        if let Some(victim) = victim.filter(|_| !self.cleaner.is_busy() && self.can_clean()) {
            self.cleaner.begin(&mut self.log, &mut self.sim, victim);
        }
    }

    fn can_clean(&self) -> bool {
        self.log.free_segments(0) <= 6
    }

    fn advance(&mut self) {
        let mut events = Vec::new();
        self.log.advance(&mut self.sim, &mut events);
        self.take(events);
    }

    /// One operation is done; false when none is under way.
    pub fn step(&mut self) -> bool {
        if !self.sim.is_busy() {
            return false;
        }
        let mut done = Vec::new();
        self.sim.wait(&mut done);
        let mut events = Vec::new();
        for done in done {
            assert!(self.log.owns(done.token));
            self.log.on_done(&mut self.sim, done, &mut events);
        }
        self.take(events);
        self.advance();
        true
    }

    fn take(&mut self, events: Vec<LogEvent>) {
        for event in events {
            let (log, blocks, sim) = (&mut self.log, &mut self.blocks, &mut self.sim);
            let result: Result<(), CleaningError> = match event {
                LogEvent::Records(_, records) => self.cleaner.records(log, blocks, sim, records),
                LogEvent::Read(caller, data, result) if caller >= CLEANER => {
                    self.cleaner.read(log, blocks, sim, caller, data, result)
                }
                LogEvent::Read(caller, data, _) => {
                    let value = self.reads[&caller];
                    assert_eq!(&data[..], &content(value)[..], "what was read");
                    Ok(())
                }
                LogEvent::Synced(caller, result) if caller >= CLEANER => {
                    self.cleaned += 1;
                    self.cleaner.settled(&mut self.log, &mut self.sim, result).map_err(Into::into)
                }
                LogEvent::Synced(caller, result) => {
                    result.unwrap();
                    self.forget_before(caller);
                    Ok(())
                }
                LogEvent::Durable(_) => {
                    self.cleaner.go_on(&mut self.log, &mut self.blocks, &mut self.sim)
                }
                LogEvent::Written(_) => Ok(()),
                LogEvent::Failed(error) => Err(LogError::Failed(error).into()),
            };
            assert_eq!(result, Ok(()), "{:?}", self.cleaner);
        }
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
        for block in self.blocks.live.values() {
            *live.entry(self.log.set().locate(block.place).0).or_default() += 1;
        }
        for (id, segment) in self.log.segments() {
            assert_eq!(segment.live, live.get(&id).copied().unwrap_or_default(), "{id:?}");
        }
    }
}

/// A block of one of two small volumes.
pub fn any_block(rng: &mut Rng, blocks: u64) -> Block {
    (VolumeId(rng.below(2) as u32), rng.below(blocks))
}
