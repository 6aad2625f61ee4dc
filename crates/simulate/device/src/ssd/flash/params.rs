//! What a flash back-end is made of, as plain numbers, and the refusal of devices that cannot be.
//!
//! Units: bytes, nanoseconds, counts, shares; each name says which. Source: MQSim (FAST'18) for the
//! meaning of shares and thresholds, ONFI 4.0 (NV-DDR2) for the bus.
//!
//! Classes of tenants follow MQSim's `TSU_Priority_OutOfOrder`: urgent commands first; the others
//! take turns in rounds, of which `high` has four, `medium` two and `low` one. Difference: MQSim
//! gives up after four rounds and may return nothing while a command of class `low` waits.

use super::backend::MAX_INDEX;
use super::geometry::{FlashShape, MAX_PLANES, PlaneOrder};
use super::hardware::Bus;
use cachewright_ftl::FtlError;
use cachewright_types::{Value, choices};
use thiserror::Error;

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

/// Units of a channel: their mask is one word.
const MAX_UNITS: u32 = 64;

/// Checks all parameters. Errors: the first one out of its range, by key and value.
pub fn check(params: &FlashParams) -> Result<(), FlashError> {
    shape(params)?;
    shares(params)?;
    groups(params)?;
    let cell = &params.cell;
    let longest = 1_000_000_000_000;
    for (key, times) in [("read", cell.read_ns), ("program", cell.program_ns)] {
        for time in times {
            range(key, time, 1, longest)?;
        }
    }
    range("erase", cell.erase_ns, 1, longest)?;
    range("bus unit", params.bus.unit_ps, 1, longest)?;
    range("bus unit bytes", params.bus.unit_bytes.into(), 1, 64)?;
    if let MapCache::Cached { bytes, entry_bytes, stored_bytes, tenants, read_bytes } = params.map {
        let page = u64::from(params.shape.page_bytes);
        range("map entry bytes", entry_bytes.into(), 1, page)?;
        range("stored map entry bytes", stored_bytes.into(), 1, page)?;
        range("map cache tenants", tenants.into(), 1, u64::from(u16::MAX))?;
        let min = u64::from(entry_bytes) * u64::from(tenants);
        range("map cache bytes", bytes, min, u64::from(u32::MAX - 1) * u64::from(entry_bytes))?;
        range("map read bytes", read_bytes.into(), 1, page)?;
    }
    Ok(())
}

fn shape(params: &FlashParams) -> Result<(), FlashError> {
    let shape = &params.shape;
    let max = u64::from(u16::MAX);
    range("channels", shape.channels.into(), 1, max)?;
    range("chips per channel", shape.chips_per_channel.into(), 1, MAX_UNITS.into())?;
    range("dies per chip", shape.dies_per_chip.into(), 1, MAX_UNITS.into())?;
    range("planes per die", shape.planes_per_die.into(), 1, MAX_PLANES.into())?;
    range("blocks per plane", shape.blocks_per_plane.into(), 4, 1 << 24)?;
    range("pages per block", shape.pages_per_block.into(), 2, 1 << 20)?;
    range("page bytes", shape.page_bytes.into(), shape.sector_bytes.max(1).into(), 1 << 24)?;
    let sectors = shape.page_bytes / shape.sector_bytes.max(1);
    if !shape.page_bytes.is_multiple_of(shape.sector_bytes) || sectors > 64 {
        let found = format!("{} of a page of {} bytes", shape.sector_bytes, shape.page_bytes);
        let expected = "1 to 64 whole sectors in a page".to_owned();
        return Err(FlashError::Range { key: "sector bytes", found, expected });
    }
    let dies = if params.schedule.die_interleave { shape.dies_per_chip } else { 1 };
    let units = u64::from(shape.chips_per_channel) * u64::from(dies);
    range("units per channel", units, 1, MAX_UNITS.into())?;
    range("units", units * u64::from(shape.channels), 1, u64::from(MAX_INDEX))?;
    let per_unit = u64::from(shape.planes_per_die) * u64::from(shape.dies_per_chip);
    range("planes of a chip", per_unit, 1, 64)?;
    let planes = u64::from(shape.channels)
        * u64::from(shape.chips_per_channel)
        * u64::from(shape.dies_per_chip)
        * u64::from(shape.planes_per_die);
    let pages = planes * u64::from(shape.blocks_per_plane) * u64::from(shape.pages_per_block);
    range("pages of the device", pages, 1, u64::from(u32::MAX - 1))
}

fn shares(params: &FlashParams) -> Result<(), FlashError> {
    let collect = &params.collect;
    let share = |key, found: f64, low: f64, high: f64| {
        if (low..=high).contains(&found) {
            return Ok(());
        }
        let expected = format!("{low} to {high}");
        Err(FlashError::Range { key, found: found.to_string(), expected })
    };
    share("over-provisioning", collect.over_provisioning, 0.0, 0.95)?;
    share("soft threshold", collect.soft_threshold, 0.0, 0.5)?;
    share("hard threshold", collect.hard_threshold, 0.0, collect.soft_threshold)?;
    match params.fill {
        InitialFill::Empty => Ok(()),
        InitialFill::Analytic { occupancy } => share("occupancy", occupancy, 0.0, 1.0),
        InitialFill::Replay { occupancy, overwrites } => {
            share("occupancy", occupancy, 0.0, 1.0)?;
            share("overwrites", overwrites, 0.0, 1000.0)
        }
    }
}

fn groups(params: &FlashParams) -> Result<(), FlashError> {
    let channels = params.shape.channels;
    let mut taken = vec![false; channels as usize];
    for (group, members) in params.layout.groups.iter().enumerate() {
        if members.is_empty() {
            let expected = "at least one channel".to_owned();
            let found = format!("group {group} without channels");
            return Err(FlashError::Range { key: "channel groups", found, expected });
        }
        for channel in members {
            match taken.get_mut(*channel as usize) {
                Some(taken) if !*taken => *taken = true,
                _ => {
                    let expected = format!("each of 0..{channels} in one group at most");
                    return Err(FlashError::Group { group, channel: *channel, expected });
                }
            }
        }
    }
    Ok(())
}

fn range(key: &'static str, found: u64, low: u64, high: u64) -> Result<(), FlashError> {
    if (low..=high).contains(&found) {
        return Ok(());
    }
    let expected = format!("{low} to {high}");
    Err(FlashError::Range { key, found: found.to_string(), expected })
}

/// Why a back-end could not be built.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FlashError {
    /// A number lies outside its range.
    #[error("`{key}`: found {found}, expected {expected}")]
    Range {
        /// The parameter.
        key: &'static str,
        /// Its value.
        found: String,
        /// What is accepted.
        expected: String,
    },
    /// A group of channels names one that is not there, or that another group has.
    #[error("channel group {group}: found channel {channel}, expected {expected}")]
    Group {
        /// The group.
        group: usize,
        /// The channel.
        channel: u32,
        /// What is accepted.
        expected: String,
    },
    /// A separation that must know when a page is written again.
    #[error(
        "separation `{separation}`: needs the future of each page, which a device does not have"
    )]
    Future {
        /// The scheme.
        separation: &'static str,
    },
    /// The translation layer refuses.
    #[error(transparent)]
    Ftl(#[from] FtlError),
}
/// Weights by class; `urgent` is outside the rounds.
const WEIGHTS: [u32; 4] = [u32::MAX, 4, 2, 1];
/// Turns after which they begin anew: the largest weight.
const TURNS: u32 = 4;

/// The class of a tenant, the first served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Before all others.
    Urgent,
    /// Four turns of seven.
    #[default]
    High,
    /// Two turns of seven.
    Medium,
    /// One turn of seven.
    Low,
}

impl Priority {
    /// All, in the order of their numbers.
    pub const ALL: [Priority; 4] =
        [Priority::Urgent, Priority::High, Priority::Medium, Priority::Low];

    /// The word of stack files.
    pub fn word(self) -> &'static str {
        match self {
            Priority::Urgent => "urgent",
            Priority::High => "high",
            Priority::Medium => "medium",
            Priority::Low => "low",
        }
    }
}

/// Where the rounds of one kind of command at one unit stand.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    class: usize,
    /// Classes of at least this weight take part.
    weight: u32,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { class: 0, weight: TURNS }
    }
}

impl Turns {
    /// The class to serve, of those for which a command waits; nothing when none does.
    pub fn next(&mut self, waits: [bool; 4]) -> Option<Priority> {
        if waits[0] {
            return Some(Priority::Urgent);
        }
        if !waits.contains(&true) {
            return None;
        }
        // A class of weight 1 takes part once in each sequence of rounds.
        for _ in 0..3 * (TURNS + 1) {
            self.class = if self.class >= 3 { 1 } else { self.class + 1 };
            if self.class == 1 {
                self.weight = if self.weight <= 1 { TURNS } else { self.weight - 1 };
            }
            if waits[self.class] && WEIGHTS[self.class] >= self.weight {
                return Some(Priority::ALL[self.class]);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssd::flash::Backend;
    use cachewright_types::Seed;

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

    fn refusal(change: impl Fn(&mut FlashParams)) -> String {
        let mut params = FlashParams::small();
        change(&mut params);
        Backend::new(&params, Seed(1)).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn devices_that_cannot_be_are_refused_by_parameter_and_value() {
        let zero = refusal(|params| params.shape.channels = 0);
        assert_eq!(zero, "`channels`: found 0, expected 1 to 65535");
        let sectors = refusal(|params| params.shape.sector_bytes = 3000);
        assert!(sectors.starts_with("`sector bytes`: found 3000 of a page of 8192 bytes"));
        let wide = refusal(|params| params.shape.page_bytes = 1 << 17);
        assert!(wide.ends_with("expected 1 to 64 whole sectors in a page"), "{wide}");
        let share = refusal(|params| params.collect.soft_threshold = 0.9);
        assert_eq!(share, "`soft threshold`: found 0.9, expected 0 to 0.5");
        let spare = refusal(|params| params.collect.over_provisioning = 0.01);
        assert!(spare.contains("expected at least") && spare.contains("kept free"), "{spare}");
        let (entry_bytes, stored_bytes) = (8, 8);
        let (tenants, read_bytes) = (1, 512);
        let map = MapCache::Cached { bytes: 4, entry_bytes, stored_bytes, tenants, read_bytes };
        let memory = refusal(|params| params.map = map);
        assert!(memory.starts_with("`map cache bytes`: found 4, expected 8 to"), "{memory}");
        let twice = refusal(|params| params.layout.groups = vec![vec![0, 1], vec![1]]);
        assert!(twice.starts_with("channel group 1: found channel 1, expected each of"), "{twice}");
        let name = refusal(|params| params.collect.separation = "sepbitt".to_owned());
        assert!(name.contains("sepbitt") && name.contains("nearest is `sepbit`"), "{name}");
        let future = refusal(|params| params.collect.separation = "future-knowledge".to_owned());
        assert!(future.contains("future"), "{future}");
        assert_eq!(refusal(|_| ()), "");
    }

    fn picked(waits: [bool; 4], times: usize) -> String {
        let mut rounds = Turns::default();
        let pick = |_| rounds.next(waits).map_or("-", |class| &class.word()[..1]);
        (0..times).map(pick).collect()
    }

    #[test]
    fn urgent_goes_first_and_the_others_share_by_weight() {
        assert_eq!(picked([true; 4], 5), "uuuuu");
        assert_eq!(picked([false, true, true, true], 14), "hhmhmlhhhmhmlh");
        assert_eq!(picked([false, true, false, true], 10), "hhhlhhhhlh");
        assert_eq!(picked([false, false, false, true], 3), "lll");
        assert_eq!(picked([false; 4], 2), "--");
    }
}
