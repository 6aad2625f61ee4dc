//! What a flash back-end is made of, as plain numbers.
//!
//! For: the values the back-end is built from, and the golden base as an example. Must never know:
//! stack files, presets, ranges for users (the SSD's parameter table has them). Units: bytes,
//! nanoseconds, counts, shares; each name says which. Source: MQSim (FAST'18) for the meaning of
//! shares and thresholds, ONFI 4.0 (NV-DDR2) for the bus.

use super::bus::Bus;
use super::order::PlaneOrder;
use super::priority::Priority;
use super::shape::FlashShape;
use cachewright_types::{Value, choices};

choices! {
    /// Bits per cell: how many kinds of pages with times of their own there are.
    pub enum CellKind {
        /// One kind of page.
        Slc = "slc",
        /// Two kinds.
        Mlc = "mlc",
        /// Three kinds.
        Tlc = "tlc",
    }
}

/// The time of work inside a die, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Bits per cell.
    pub kind: CellKind,
    /// Sensing a lower, middle and upper page (MLC: lower and upper are the first two).
    pub read_ns: [u64; 3],
    /// Programming a lower, middle and upper page.
    pub program_ns: [u64; 3],
    /// Erasing a block.
    pub erase_ns: u64,
    /// Halting a program.
    pub suspend_program_ns: u64,
    /// Halting an erase.
    pub suspend_erase_ns: u64,
}

impl Cell {
    /// Which of the three times a page of a block takes. Pages of two bits: lower and upper take
    /// turns. Of three: lower, middle and upper in pairs, after eight pages at the edge of the
    /// block (Yaakobi et al., ICNC'12).
    #[inline]
    pub fn level(&self, page: u32) -> usize {
        match self.kind {
            CellKind::Slc => 0,
            CellKind::Mlc => page as usize % 2,
            CellKind::Tlc if page < 6 => 0,
            CellKind::Tlc if page < 8 => 1,
            CellKind::Tlc => (page as usize - 8) / 2 % 3,
        }
    }
}

/// Which command may go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashSchedule {
    /// Dies of a chip work at the same time; otherwise a chip does one thing at a time.
    pub die_interleave: bool,
    /// One command for pages at the same place in several planes of a die.
    pub multi_plane: bool,
    /// Reads halt a program.
    pub suspend_program: bool,
    /// Reads halt an erase.
    pub suspend_erase: bool,
    /// How often one program or erase may be halted.
    pub max_suspends: u32,
    /// Pages that stay in their plane when they are moved do not cross the channel.
    pub copy_back: bool,
    /// Cleaning waits for the host until free blocks fall below the hard threshold; otherwise it
    /// always goes first.
    pub gc_preemptible: bool,
}

/// Which plane a page goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaneLayout {
    /// The order in which consecutive pages visit channels, ways, dies and planes.
    pub order: PlaneOrder,
    /// One translation layer over all planes of a group, whose erase unit is a block of every
    /// plane. Otherwise there is one per plane, and a page never leaves its plane.
    pub superblock: bool,
    /// Channels of each group that has pages of its own; empty for one group of all channels.
    pub groups: Vec<Vec<u32>>,
}

/// Space kept back, and how it is reclaimed.
#[derive(Clone, Debug, PartialEq)]
pub struct Collect {
    /// Share of raw space that the host does not see.
    pub over_provisioning: f64,
    /// Cleaning starts when the share of free blocks is below this.
    pub soft_threshold: f64,
    /// Cleaning goes before the host when the share of erased blocks is below this.
    pub hard_threshold: f64,
    /// Which pages share a block: a name of the translation layer's registry.
    pub separation: String,
    /// Its settings.
    pub separation_settings: Vec<(String, Value)>,
    /// Which block is cleaned: a name of the registry.
    pub reclaim: String,
    /// Its settings.
    pub reclaim_settings: Vec<(String, Value)>,
    /// The controller's work on each prediction of a separation that learns.
    pub prediction_ns: u64,
    /// Static wear levelling: the least erased block is emptied when the most erased one is ahead
    /// by more than this. Nothing leaves it out. (Free blocks are always used oldest first.)
    pub static_wear_spread: Option<u32>,
}

/// Where the mapping table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapCache {
    /// All of it in memory.
    Ideal,
    /// In flash, with the entries last used in memory.
    Cached {
        /// Memory for entries.
        bytes: u64,
        /// Bytes of an entry in memory.
        entry_bytes: u32,
        /// Bytes of an entry in flash, where its place tells the page.
        stored_bytes: u32,
        /// Tenants the memory is split among equally; 1 for one memory that all share.
        tenants: u32,
        /// Bytes that cross the channel for an entry.
        read_bytes: u32,
    },
}

/// What a read of a page that was never written does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// Returns zeroes without flash.
    Zero,
    /// Gives it a page and reads that, as MQSim does.
    Allocate,
}

/// What the device holds at the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InitialFill {
    /// Nothing.
    Empty,
    /// The first share of each plane's pages, spread over blocks as the theory of uniform writes
    /// says; at once.
    Analytic {
        /// Share of the host's pages.
        occupancy: f64,
    },
    /// The same pages, written in order and then at random; takes as long as the writes do.
    Replay {
        /// Share of the host's pages.
        occupancy: f64,
        /// Random writes per page held.
        overwrites: f64,
    },
}

impl InitialFill {
    /// The word used in results.
    pub fn word(&self) -> &'static str {
        match self {
            InitialFill::Empty => "empty",
            InitialFill::Analytic { .. } => "analytic fill",
            InitialFill::Replay { .. } => "replay",
        }
    }
}

/// The energy of each operation, in joules; 0 where it is not given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Joules {
    /// Sensing a page.
    pub read: f64,
    /// Programming a page.
    pub program: f64,
    /// Erasing a block.
    pub erase: f64,
    /// Moving a byte over a channel.
    pub channel_byte: f64,
}

/// Everything.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashParams {
    /// How many of what.
    pub shape: FlashShape,
    /// The channel's times.
    pub bus: Bus,
    /// The dies' times.
    pub cell: Cell,
    /// Which command may go first.
    pub schedule: FlashSchedule,
    /// The class of each tenant, the last one of all beyond; empty when tenants have none.
    pub priorities: Vec<Priority>,
    /// Which plane a page goes to.
    pub layout: PlaneLayout,
    /// Space kept back.
    pub collect: Collect,
    /// Where the mapping table is.
    pub map: MapCache,
    /// Reads of pages never written.
    pub unwritten: Unwritten,
    /// What the device holds at the start.
    pub fill: InitialFill,
    /// The energy of each operation.
    pub joules: Joules,
}

impl FlashParams {
    /// The 512 GB device of the reference runs: MQSim's shipped configuration with its whole
    /// mapping table in memory, empty.
    pub fn mqsim() -> FlashParams {
        FlashParams {
            shape: FlashShape {
                channels: 8,
                chips_per_channel: 4,
                dies_per_chip: 2,
                planes_per_die: 2,
                blocks_per_plane: 2048,
                pages_per_block: 256,
                page_bytes: 8192,
                sector_bytes: 512,
            },
            bus: Bus::mqsim(333, 1),
            cell: Cell {
                kind: CellKind::Mlc,
                read_ns: [75_000; 3],
                program_ns: [750_000; 3],
                erase_ns: 3_800_000,
                suspend_program_ns: 100_000,
                suspend_erase_ns: 700_000,
            },
            schedule: FlashSchedule {
                die_interleave: false,
                multi_plane: true,
                suspend_program: false,
                suspend_erase: false,
                max_suspends: 8,
                copy_back: false,
                gc_preemptible: false,
            },
            priorities: Vec::new(),
            layout: PlaneLayout { order: PlaneOrder::CWDP, superblock: false, groups: Vec::new() },
            collect: Collect {
                over_provisioning: 0.07,
                soft_threshold: 0.05,
                hard_threshold: 0.005,
                separation: "2r".to_owned(),
                separation_settings: Vec::new(),
                reclaim: "greedy".to_owned(),
                reclaim_settings: Vec::new(),
                prediction_ns: 0,
                static_wear_spread: None,
            },
            map: MapCache::Ideal,
            unwritten: Unwritten::Allocate,
            fill: InitialFill::Empty,
            joules: Joules::default(),
        }
    }

    /// The 16 GiB device of the reference runs: 16 planes of 512 blocks.
    pub fn small() -> FlashParams {
        let base = FlashParams::mqsim();
        let shape = FlashShape {
            channels: 4,
            chips_per_channel: 2,
            dies_per_chip: 1,
            blocks_per_plane: 512,
            ..base.shape
        };
        FlashParams { shape, ..base }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_block_have_levels() {
        let mut cell = FlashParams::mqsim().cell;
        let levels = |cell: Cell| -> Vec<usize> { (0..16).map(|page| cell.level(page)).collect() };
        assert_eq!(levels(cell), [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
        cell.kind = CellKind::Tlc;
        assert_eq!(levels(cell), [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 0, 0]);
        cell.kind = CellKind::Slc;
        assert_eq!(levels(cell), [0; 16]);
    }
}
