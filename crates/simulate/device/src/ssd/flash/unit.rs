//! Units of flash that do one thing at a time, and the channels they share.
//!
//! For: the state of a unit (a chip, or a die where dies overlap) and of a channel. Must never
//! know: why work is queued. Units: nanoseconds. Invariant: a unit is in one [`Stage`]; its busy
//! time by kind never exceeds the time that has passed.

use super::priority::Rounds;
use super::transaction::{NIL, Purpose, Queue, Step, Work};

/// Queues of a unit.
pub const CLASSES: usize = 7;

/// Which queue work waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Reads for the mapping table.
    MapRead,
    /// Reads of the host, and reads that its writes of part of a page need.
    HostRead,
    /// Reads of pages to move.
    CleanRead,
    /// Writes of the mapping table.
    MapWrite,
    /// Writes of the host.
    HostWrite,
    /// Writes of moved pages.
    CleanWrite,
    /// Erases.
    Erase,
}

impl Class {
    /// All, in the order of their numbers.
    pub const ALL: [Class; CLASSES] = [
        Class::MapRead,
        Class::HostRead,
        Class::CleanRead,
        Class::MapWrite,
        Class::HostWrite,
        Class::CleanWrite,
        Class::Erase,
    ];

    /// The queue of work in its present step.
    #[inline]
    pub fn of(work: &Work) -> Class {
        match (work.step, work.purpose) {
            (Step::Read, Purpose::MapRead | Purpose::MapWrite) => Class::MapRead,
            (Step::Read, Purpose::Move) => Class::CleanRead,
            (Step::Read, _) => Class::HostRead,
            (Step::Erase, _) => Class::Erase,
            (_, Purpose::MapWrite) => Class::MapWrite,
            (_, Purpose::Move | Purpose::Meta) => Class::CleanWrite,
            _ => Class::HostWrite,
        }
    }

    /// Whether it reads.
    #[inline]
    pub fn reads(self) -> bool {
        matches!(self, Class::MapRead | Class::HostRead | Class::CleanRead)
    }

    /// The word used in tables.
    pub fn word(self) -> &'static str {
        match self {
            Class::MapRead => "map read",
            Class::HostRead => "read",
            Class::CleanRead => "cleaning read",
            Class::MapWrite => "map write",
            Class::HostWrite => "write",
            Class::CleanWrite => "cleaning write",
            Class::Erase => "erase",
        }
    }
}

/// Kinds of [`Stage`].
pub const STAGES: usize = 6;

/// What a unit is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing; perhaps something is halted.
    Idle,
    /// Takes a read command or senses.
    Sensing,
    /// Has sensed; data waits for the channel or crosses it.
    DataOut,
    /// Takes a program command with its data, or programs.
    Programming,
    /// Takes an erase command or erases.
    Erasing,
    /// Halts a program or erase.
    Halting,
}

impl Stage {
    /// All but idleness, with the words used in tables.
    pub const BUSY: [(Stage, &str); STAGES - 1] = [
        (Stage::Sensing, "sensing"),
        (Stage::DataOut, "data out"),
        (Stage::Programming, "programming"),
        (Stage::Erasing, "erasing"),
        (Stage::Halting, "halting"),
    ];
}

/// A program or erase that was halted.
#[derive(Clone, Copy, Debug)]
pub struct Halted {
    /// Its transactions.
    pub active: Queue,
    /// Time left.
    pub left_ns: u64,
    /// Programming or erasing.
    pub stage: Stage,
    /// How often it was halted.
    pub times: u32,
    /// Whether it cleans.
    pub cleans: bool,
}

/// A block that will be erased; what belongs to its next life is not programmed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condemned {
    /// Its plane.
    pub plane: u32,
    /// The block.
    pub block: u32,
    /// The number of this erase, never given twice.
    pub serial: u32,
}

/// A chip, or a die where dies overlap.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Its channel.
    pub channel: u32,
    /// Its bit in the channel's mask.
    pub bit: u32,
    /// What it is doing.
    pub stage: Stage,
    /// The transactions it works on.
    pub active: Queue,
    /// When its program or erase ends.
    pub ends_at: u64,
    /// How often that was halted.
    pub halts: u32,
    /// What is halted.
    pub halted: Option<Halted>,
    /// Work in its queues.
    pub queues: [Queue; CLASSES],
    /// Work in all of them.
    pub queued: u32,
    /// Whose turn it is among classes of tenants: reads, writes.
    pub rounds: [Rounds; 2],
    /// Blocks that will be erased.
    pub condemned: Vec<Condemned>,
    /// Planes where cleaning goes first, a bit each (numbers modulo 64).
    pub urgent_planes: u64,
    /// Sensed pages that have not crossed the channel.
    pub leaving: u32,
    /// Since when it does what it does.
    since: u64,
    /// Whether it cleans.
    cleans: bool,
    worked_ns: u64,
    cleaned_ns: u64,
    /// Time in each stage.
    stage_ns: [u64; STAGES],
}

impl Unit {
    /// An idle unit.
    pub fn new(channel: u32, bit: u32) -> Unit {
        Unit {
            channel,
            bit,
            stage: Stage::Idle,
            active: Queue::default(),
            ends_at: 0,
            halts: 0,
            halted: None,
            queues: [Queue::default(); CLASSES],
            queued: 0,
            rounds: [Rounds::default(); 2],
            condemned: Vec::new(),
            urgent_planes: 0,
            leaving: 0,
            since: 0,
            cleans: false,
            worked_ns: 0,
            cleaned_ns: 0,
            stage_ns: [0; STAGES],
        }
    }

    /// Begins to do something.
    #[inline]
    pub fn begin(&mut self, stage: Stage, cleans: bool, now: u64) {
        self.settle(now);
        self.stage = stage;
        self.cleans = cleans;
    }

    /// Ends what it did.
    #[inline]
    pub fn rest(&mut self, now: u64) {
        self.settle(now);
        self.stage = Stage::Idle;
    }

    /// Accounts the time up to now.
    #[inline]
    fn settle(&mut self, now: u64) {
        let passed = now - self.since;
        self.stage_ns[self.stage as usize] += passed;
        match (self.stage, self.cleans) {
            (Stage::Idle, _) => {}
            (_, false) => self.worked_ns += passed,
            (_, true) => self.cleaned_ns += passed,
        }
        self.since = now;
    }

    /// Time it has worked for the host (and its map) up to now.
    #[inline]
    pub fn worked_ns(&self, now: u64) -> u64 {
        let running = self.stage != Stage::Idle && !self.cleans;
        self.worked_ns + if running { now - self.since } else { 0 }
    }

    /// Time it has cleaned up to now.
    #[inline]
    pub fn cleaned_ns(&self, now: u64) -> u64 {
        let running = self.stage != Stage::Idle && self.cleans;
        self.cleaned_ns + if running { now - self.since } else { 0 }
    }

    /// Time in a stage up to now.
    pub fn stage_ns(&self, stage: Stage, now: u64) -> u64 {
        let running = if self.stage == stage { now - self.since } else { 0 };
        self.stage_ns[stage as usize] + running
    }

    /// Whether it cleans at present.
    pub fn cleans(&self) -> bool {
        self.cleans
    }
}

/// Queues of data that waits for a channel.
pub const OUTS: usize = 4;

/// A channel.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Until when it is taken.
    pub busy_until: u64,
    /// Whether an event at that time will look at what waits (the end of a crossing does anyway).
    pub waking: bool,
    /// Data of reads that waits: copy-backs, the map's, the host's, cleaning's.
    pub outs: [Queue; OUTS],
    /// Reads in all of them.
    pub waiting: u32,
    /// The read whose data crosses, if one does.
    pub crossing: u32,
    /// Units that may have a command to take, a bit each.
    pub ready: u64,
    /// The unit whose turn is next.
    pub turn: u32,
    /// First unit.
    pub first_unit: u32,
    /// Time it was taken, to the end of what takes it now.
    busy_ns: u64,
    /// Whether it is in the list of those to look at.
    pub touched: bool,
}

impl Channel {
    /// A free channel whose units begin at `first_unit`.
    pub fn new(first_unit: u32) -> Channel {
        Channel {
            busy_until: 0,
            waking: false,
            outs: [Queue::default(); OUTS],
            waiting: 0,
            crossing: NIL,
            ready: 0,
            turn: 0,
            first_unit,
            busy_ns: 0,
            touched: false,
        }
    }

    /// Takes it for some time.
    #[inline]
    pub fn take(&mut self, now: u64, time_ns: u64) {
        debug_assert!(self.busy_until <= now);
        self.busy_until = now + time_ns;
        self.busy_ns += time_ns;
    }

    /// Time it was taken up to now.
    pub fn busy_ns(&self, now: u64) -> u64 {
        self.busy_ns - self.busy_until.saturating_sub(now)
    }

    /// The ready unit whose turn comes first.
    #[inline]
    pub fn next_ready(&self) -> Option<u32> {
        if self.ready == 0 {
            return None;
        }
        let later = self.ready >> self.turn << self.turn;
        let bits = if later == 0 { self.ready } else { later };
        Some(bits.trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round() {
        let mut channel = Channel::new(8);
        channel.ready = 0b1011;
        channel.turn = 2;
        assert_eq!(channel.next_ready(), Some(3));
        channel.turn = 0;
        assert_eq!(channel.next_ready(), Some(0));
        channel.ready = 0b0010;
        channel.turn = 3;
        assert_eq!(channel.next_ready(), Some(1));
    }

    #[test]
    fn busy_time_is_told_apart() {
        let mut unit = Unit::new(0, 0);
        unit.begin(Stage::Sensing, false, 10);
        unit.begin(Stage::Erasing, true, 30);
        assert_eq!((unit.worked_ns(40), unit.cleaned_ns(40)), (20, 10));
        unit.rest(50);
        assert_eq!((unit.worked_ns(90), unit.cleaned_ns(90)), (20, 20));
    }
}
