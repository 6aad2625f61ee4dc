//! What an SSD is made of: the table of its parameters, their checks, and the flash settings from
//! them.
//!
//! [`SsdParams`] is the one table from which stack files, errors and docs come. The defaults are
//! MQSim's shipped configuration (`ssdconfig.xml`; Tavakkol et al., FAST'18), which is also table 1
//! of icache. The mark "kept" stands for a constant in that tool's code. The table gives each
//! parameter its range; rules that tie several together are in `check`, which names key, value and
//! what was expected. Units: bytes, nanoseconds, counts, blocks of one plane.

use super::drive::Power;
pub use super::flash::CellKind;
use super::flash::{
    self, Bus, Cell, Collect, FlashParams, FlashSchedule, FlashShape, Joules, MapCache,
    PlaneLayout, Priority,
};
use cachewright_ftl::{layer, reclaim};
pub use cachewright_types::declare::{Declared, Scheme};
use cachewright_types::declare::{Mismatch, ValueKind};
use cachewright_types::registry::{RegistryError, Resolved};
use cachewright_types::{Bytes, Nanos, SettingError, Value, choices, declare, parse_bytes};

declare! {
    /// Everything an SSD is made of.
    pub struct SsdParams {
        "host interface" {
            /// protocol between host and drive
            interface: Interface = Interface::Nvme, "-"; "MQSim HostInterface_Type";
            /// commands a tenant may have under way; more wait in the host
            queue_depth: u32 = 65_535, "commands", 1 ..= 65_536; "MQSim IO_Queue_Depth";
            /// commands of one tenant that the drive works on at once
            fetch_size: u32 = 512, "commands", 1 ..= 65_536; "MQSim Queue_Fetch_Size";
            /// commands of all tenants that the drive works on at once (SATA: 32 at most)
            command_slots: u32 = 65_536, "commands", 1 ..= 65_536; "MQSim has no such limit";
            /// which queue's command is fetched next when several wait
            arbitration: Arbitration = Arbitration::Arrival, "-";
                "NVMe base specification 1.4, 4.13";
            /// commands fetched from one queue before the next has its turn
            arbitration_burst: u32 = 1, "commands", 1 ..= 256; "NVMe base specification 1.4, 4.13";
            /// work of the controller on each command, one after the other
            command_time: Nanos = Nanos(0), "time", 0 ..= 1e9; "MQSim has none";
        }
        "link" {
            /// PCIe lanes
            lanes: u32 = 4, "lanes", 1 ..= 32; "MQSim PCIe_Lane_Count";
            /// rate of a lane after encoding
            lane_rate: f64 = 1.0, "GB/s", 0.01 ..= 100_000.0; "MQSim PCIe_Lane_Bandwidth";
            /// most payload of a PCIe packet
            packet_payload: Bytes = Bytes(128), "bytes", 64 ..= 4_096; "MQSim, kept";
            /// header, link-layer and framing bytes of a PCIe packet
            packet_overhead: Bytes = Bytes(28), "bytes", 0 ..= 256; "MQSim, kept: 20 + 6 + 2";
            /// payload of a doorbell
            doorbell: Bytes = Bytes(2), "bytes", 1 ..= 64; "MQSim, kept (NVMe: 4 B)";
            /// a submission queue entry
            submission_entry: Bytes = Bytes(72), "bytes", 1 ..= 4_096; "MQSim, kept (NVMe: 64 B)";
            /// a completion queue entry
            completion_entry: Bytes = Bytes(16), "bytes", 1 ..= 4_096;
                "NVMe base specification 1.4";
            /// rate of a SATA link after encoding
            sata_rate: f64 = 0.6, "GB/s", 0.01 ..= 16.0; "SATA 3.3: 6 Gb/s, 8b/10b";
            /// start, header, check, end and handshake of a SATA frame
            sata_frame_overhead: Bytes = Bytes(32), "bytes", 0 ..= 1_024; "SATA 3.3, 9 and 10";
        }
        "memory" {
            /// cycles of the memory per second; two bursts move in each
            dram_rate: f64 = 100.0, "MT/s", 1.0 ..= 100_000.0; "MQSim Data_Cache_DRAM_Data_Rate";
            /// bytes of one burst
            dram_burst: Bytes = Bytes(1), "bytes", 1 ..= 256;
                "MQSim Data_Cache_DRAM_Data_Busrt_Size";
            /// channels, each of which serves one access at a time
            dram_channels: u32 = 1, "channels", 1 ..= 16; "MQSim, kept";
            /// bytes of one row
            dram_row: Bytes = Bytes(8_192), "bytes", 64 ..= 1_048_576;
                "MQSim Data_Cache_DRAM_Row_Size";
            /// opening a row
            dram_trcd: Nanos = Nanos(13), "time", 0 ..= 10_000; "MQSim Data_Cache_DRAM_tRCD";
            /// from the command to the first byte
            dram_tcl: Nanos = Nanos(13), "time", 0 ..= 10_000; "MQSim Data_Cache_DRAM_tCL";
            /// closing a row
            dram_trp: Nanos = Nanos(13), "time", 0 ..= 10_000; "MQSim Data_Cache_DRAM_tRP";
        }
        "write buffer" {
            /// memory for writes on their way to flash; they complete once in it; 0 is none
            write_buffer: Bytes = Bytes(0), "bytes", 0 ..= 1e12; "MQSim: see the data cache";
            /// work of the controller on each write that it takes in, one after the other
            write_buffer_time: Nanos = Nanos(0), "time", 0 ..= 1e9; "MQSim has none";
        }
        "flash" {
            /// channels
            channels: u32 = 8, "channels", 1 ..= 256; "MQSim Flash_Channel_Count";
            /// chips on each channel
            chips: u32 = 4, "chips", 1 ..= 256; "MQSim Chip_No_Per_Channel";
            /// dies in each chip
            dies: u32 = 2, "dies", 1 ..= 64; "MQSim Die_No_Per_Chip";
            /// planes on each die
            planes: u32 = 2, "planes", 1 ..= 16; "MQSim Plane_No_Per_Die";
            /// erase blocks on each plane
            blocks: u32 = 2_048, "blocks", 4 ..= 1_048_576; "MQSim Block_No_Per_Plane";
            /// bytes of an erase block
            block: Bytes = Bytes(2_097_152), "bytes", 1_024 ..= 1e9; "MQSim Page_No_Per_Block: 256";
            /// bytes of a page
            page: Bytes = Bytes(8_192), "bytes", 512 ..= 262_144; "MQSim Page_Capacity";
            /// bytes that can be moved and kept on their own
            sector: Bytes = Bytes(512), "bytes", 512 ..= 4_096; "MQSim, kept";
            /// bits per cell
            cell: CellKind = CellKind::Mlc, "-"; "MQSim Flash_Technology";
            /// sensing a page; of the first kind where a cell holds several
            read_time: Nanos = Nanos(75_000), "time", 0 ..= 1e9; "MQSim Page_Read_Latency_LSB";
            /// sensing a middle page (tlc)
            read_time_csb: Nanos = Nanos(75_000), "time", 0 ..= 1e9; "MQSim Page_Read_Latency_CSB";
            /// sensing a page of the last kind (mlc, tlc)
            read_time_msb: Nanos = Nanos(75_000), "time", 0 ..= 1e9; "MQSim Page_Read_Latency_MSB";
            /// programming a page; of the first kind where a cell holds several
            program_time: Nanos = Nanos(750_000), "time", 0 ..= 1e9;
                "MQSim Page_Program_Latency_LSB";
            /// programming a middle page (tlc)
            program_time_csb: Nanos = Nanos(750_000), "time", 0 ..= 1e9;
                "MQSim Page_Program_Latency_CSB";
            /// programming a page of the last kind (mlc, tlc)
            program_time_msb: Nanos = Nanos(750_000), "time", 0 ..= 1e9;
                "MQSim Page_Program_Latency_MSB";
            /// erasing a block
            erase_time: Nanos = Nanos(3_800_000), "time", 0 ..= 1e10; "MQSim Block_Erase_Latency";
            /// which running operations a read may interrupt
            suspend: Suspend = Suspend::None, "-";
                "MQSim CMD_Suspension_Support says erase, but none happens";
            /// interrupting a program
            suspend_program_time: Nanos = Nanos(100_000), "time", 0 ..= 1e9;
                "MQSim Suspend_Program_Time";
            /// interrupting an erase
            suspend_erase_time: Nanos = Nanos(700_000), "time", 0 ..= 1e9;
                "MQSim Suspend_Erase_Time";
            /// times one operation may be interrupted
            suspends_most: u32 = 8, "times", 1 ..= 1_000; "bounds the delay of a write";
        }
        "channel" {
            /// transfers per second on a channel
            channel_rate: u32 = 333, "MT/s", 1 ..= 100_000; "MQSim Channel_Transfer_Rate";
            /// bytes moved by one transfer
            channel_width: u32 = 1, "bytes", 1 ..= 8; "MQSim Flash_Channel_Width";
            /// how the time of a transfer is rounded
            channel_timing: ChannelTiming = ChannelTiming::Truncated, "-"; "MQSim, kept";
        }
        "scheduling" {
            /// dies of one chip work at the same time
            die_interleave: bool = false, "-"; "MQSim, kept: its dies never overlap";
            /// one command reads, programs or erases several planes of a die
            multi_plane: bool = true, "-"; "MQSim, kept";
            /// pages move inside a die when a block is cleaned
            copy_back: bool = false, "-"; "MQSim Use_Copyback_for_GC";
            /// host commands go before cleaning while free blocks last
            preemptible_cleaning: bool = false, "-"; "MQSim Preemptible_GC_Enabled";
            /// class of each tenant at the dies, in the order of the stack file
            priority_classes: Priorities = Priorities(Vec::new()), "-";
                "MQSim Priority_Class of a flow";
        }
        "translation" {
            /// order in which consecutive pages go round: c channel, w chip, d die, p plane
            plane_order: PlaneLetters = PlaneLetters::CWDP, "-"; "MQSim Plane_Allocation_Scheme";
            /// blocks of the same number on all planes of a group are written and cleaned as one
            superblock: bool = false, "-"; "MQSim has none; shiro, table III";
            /// channels that share a translation of their own and a range of addresses
            channel_groups: ChannelGroups = ChannelGroups::All, "-"; "MQSim Channel_IDs of a flow";
            /// bytes the host may address; auto is what over_provisioning leaves
            capacity: AddressableBytes = AddressableBytes::Auto, "bytes"; "MQSim has no such key";
            /// share of the pages kept from the host
            over_provisioning: f64 = 0.07, "ratio", 0.0 ..= 0.9; "MQSim Overprovisioning_Ratio";
            /// share of free blocks below which blocks are cleaned
            clean_below: f64 = 0.05, "ratio", 0.0 ..= 0.9; "MQSim GC_Exec_Threshold";
            /// share of free blocks below which cleaning goes before host commands
            clean_hard_below: f64 = 0.005, "ratio", 0.0 ..= 0.9; "MQSim GC_Hard_Threshold";
            /// which pages share a block
            separation: Scheme = Scheme::named("2r"), "-"; "MQSim, kept: moved pages apart";
            /// work of the controller on each prediction of a separation that learns
            prediction_time: Nanos = Nanos(0), "time", 0 ..= 1e9; "MQSim has none";
            /// which block is cleaned next
            reclaim: Scheme = Scheme {
                name: "d-choices".to_owned(),
                pairs: vec![("d".to_owned(), cachewright_types::Value::Int(11))],
            }, "-"; "MQSim GC_Block_Selection_Policy RGA: d = log2 of the blocks of a plane";
            /// difference of erase counts beyond which data moves to level wear; 0 is never
            wear_spread: u32 = 0, "erases", 0 ..= 1_000_000; "MQSim Static_Wearleveling_Threshold";
            /// where the mapping table is
            mapping: MapLocation = MapLocation::Cached, "-"; "MQSim Ideal_Mapping_Table";
            /// memory for entries of the mapping table
            map_cache: Bytes = Bytes(2_097_152), "bytes", 64 ..= 1e12; "MQSim CMT_Capacity";
            /// one entry in that memory
            map_entry: Bytes = Bytes(8), "bytes", 1 ..= 64;
                "MQSim: two addresses and a bit per sector, 8 B at 16 GiB";
            /// one entry in flash
            map_stored_entry: Bytes = Bytes(8), "bytes", 1 ..= 64;
                "as in memory; MQSim: an address and a bit per sector";
            /// bytes moved for a mapping entry read from flash
            map_read: Bytes = Bytes(512), "bytes", 1 ..= 65_536; "MQSim, kept";
            /// which tenants share that memory
            map_sharing: MapSharing = MapSharing::Shared, "-"; "MQSim CMT_Sharing_Mode";
            /// what reading a page costs that was never written
            unwritten: UnwrittenReads = UnwrittenReads::Zero, "-"; "MQSim allocates";
        }
        "energy and wear" {
            /// power of the drive all the time; 0 is not given
            idle_power: f64 = 0.0, "W", 0.0 ..= 1_000.0; "not given";
            /// power beyond that and the energies below while commands are inside; 0 is not given
            active_power: f64 = 0.0, "W", 0.0 ..= 1_000.0; "not given";
            /// energy of sensing a page; 0 is not given
            read_energy: f64 = 0.0, "uJ", 0.0 ..= 1_000_000.0; "not given";
            /// energy of programming a page; 0 is not given
            program_energy: f64 = 0.0, "uJ", 0.0 ..= 1_000_000.0; "not given";
            /// energy of erasing a block; 0 is not given
            erase_energy: f64 = 0.0, "uJ", 0.0 ..= 1_000_000.0; "not given";
            /// energy of moving data over a channel; 0 is not given
            channel_energy: f64 = 0.0, "pJ/bit", 0.0 ..= 100_000.0; "not given";
            /// program/erase cycles that a block is rated for; 0 is not given
            endurance: u32 = 10_000, "cycles", 0 ..= 100_000_000; "MQSim Block_PE_Cycles_Limit";
        }
        "before a run" {
            /// how the drive came to its state
            fill: FillMethod = FillMethod::Analytic, "-"; "MQSim Enabled_Preconditioning";
            /// share of the addresses that hold data
            occupancy: f64 = 0.7, "ratio", 0.0 ..= 1.0; "MQSim Initial_Occupancy_Percentage";
            /// times the data was overwritten at random (replay)
            overwrites: f64 = 3.0, "times", 0.0 ..= 100.0; "three are steady within 1 % of WAF";
        }
    }
}

choices! {
    /// The protocol between host and drive.
    pub enum Interface {
        /// Submission and completion queues per tenant over PCIe.
        Nvme = "nvme",
        /// One queue of commands over a link that carries one direction at a time.
        Sata = "sata",
    }
}

choices! {
    /// Whose command the drive fetches next.
    pub enum Arbitration {
        /// The one announced first, of any tenant.
        Arrival = "arrival",
        /// One burst of each tenant in turn.
        RoundRobin = "round-robin",
        /// As many bursts of each tenant in turn as its weight says.
        Weighted = "weighted",
    }
}

choices! {
    /// Which running operations a read may interrupt.
    pub enum Suspend {
        /// None.
        None = "none",
        /// Programs.
        Program = "program",
        /// Erases.
        Erase = "erase",
        /// Programs and erases.
        Both = "both",
    }
}

choices! {
    /// How the time of a byte on a channel is rounded.
    pub enum ChannelTiming {
        /// Whole nanoseconds per transfer, rounded down (333 MT/s become 3 ns).
        Truncated = "truncated",
        /// Picoseconds.
        Exact = "exact",
    }
}

choices! {
    /// Where the entries of the mapping table are.
    pub enum MapLocation {
        /// All in memory.
        Ideal = "ideal",
        /// In flash, with a bounded cache of them in memory.
        Cached = "cached",
    }
}

choices! {
    /// How tenants use the cache of mapping entries.
    pub enum MapSharing {
        /// All tenants together.
        Shared = "shared",
        /// Each tenant an equal part.
        Split = "split",
    }
}

choices! {
    /// What a read of a page costs that was never written.
    pub enum UnwrittenReads {
        /// Nothing in flash: zeros come from the controller.
        Zero = "zero",
        /// A page is allocated and read, as MQSim does.
        Allocate = "allocate",
    }
}

choices! {
    /// How the drive is brought to its state before a run.
    pub enum FillMethod {
        /// Nothing was ever written.
        Empty = "empty",
        /// The steady state of uniform random writes, computed.
        Analytic = "analytic",
        /// Written in order, then overwritten at random, page by page.
        Replay = "replay",
    }
}

/// The order in which consecutive pages go round the flash: a permutation of `c` (channel), `w`
/// (chip), `d` (die) and `p` (plane), the first changing fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneLetters(pub [u8; 4]);

impl PlaneLetters {
    /// Channel, chip, die, plane.
    pub const CWDP: PlaneLetters = PlaneLetters(*b"cwdp");

    /// The letters.
    pub fn word(&self) -> String {
        self.0.iter().map(|letter| char::from(*letter)).collect()
    }
}

impl ValueKind for PlaneLetters {
    const KIND: &'static str = "the letters c, w, d and p in an order of your own (`cwdp`)";

    fn read(value: &Value) -> Result<PlaneLetters, Mismatch> {
        let bytes = value.as_text().map(str::as_bytes);
        let letters: Option<[u8; 4]> = bytes.and_then(|bytes| bytes.try_into().ok());
        let all = |letters: &[u8; 4]| b"cwdp".iter().all(|letter| letters.contains(letter));
        letters.filter(all).map(PlaneLetters).ok_or(Mismatch::Kind)
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(self.word()))
    }
}

/// Bytes that the host may address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressableBytes {
    /// What over-provisioning leaves.
    Auto,
    /// So many, rounded down to whole pages.
    Bytes(Bytes),
}

impl ValueKind for AddressableBytes {
    const KIND: &'static str = "`auto`, or a number with a unit (`480GB`)";

    fn read(value: &Value) -> Result<AddressableBytes, Mismatch> {
        match value.as_text().ok_or(Mismatch::Kind)? {
            "auto" => Ok(AddressableBytes::Auto),
            text => parse_bytes(text).map(AddressableBytes::Bytes).map_err(|_| Mismatch::Kind),
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(match self {
            AddressableBytes::Auto => "auto".to_owned(),
            AddressableBytes::Bytes(bytes) => bytes.exact(),
        }))
    }
}

/// Which channels work together under a translation of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelGroups {
    /// All channels under one.
    All,
    /// Each channel under its own.
    Each,
    /// These.
    Lists(Vec<Vec<u32>>),
}

impl ChannelGroups {
    /// The lists for a drive of so many channels; empty for one group of all.
    pub fn lists(&self, channels: u32) -> Vec<Vec<u32>> {
        match self {
            ChannelGroups::All => Vec::new(),
            ChannelGroups::Each => (0..channels).map(|channel| vec![channel]).collect(),
            ChannelGroups::Lists(lists) => lists.clone(),
        }
    }

    fn parse(text: &str) -> Option<ChannelGroups> {
        match text {
            "all" => return Some(ChannelGroups::All),
            "each" => return Some(ChannelGroups::Each),
            _ => {}
        }
        let lists: Option<Vec<Vec<u32>>> = text.split_whitespace().map(parse_list).collect();
        lists.filter(|lists| !lists.is_empty()).map(ChannelGroups::Lists)
    }
}

/// Reads `0-3,8` as 0, 1, 2, 3 and 8.
fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last - first > 1 << 16 {
            return None;
        }
        list.extend(first..=last);
    }
    Some(list)
}

impl ValueKind for ChannelGroups {
    const KIND: &'static str = "`all`, `each`, or lists of channels (`0-3 4-7`, `0,2 1,3`)";

    fn read(value: &Value) -> Result<ChannelGroups, Mismatch> {
        value.as_text().and_then(ChannelGroups::parse).ok_or(Mismatch::Kind)
    }

    fn value(&self) -> Option<Value> {
        let words = match self {
            ChannelGroups::All => "all".to_owned(),
            ChannelGroups::Each => "each".to_owned(),
            ChannelGroups::Lists(lists) => {
                let list = |list: &Vec<u32>| {
                    let numbers: Vec<String> = list.iter().map(u32::to_string).collect();
                    numbers.join(",")
                };
                lists.iter().map(list).collect::<Vec<String>>().join(" ")
            }
        };
        Some(Value::Text(words))
    }
}

/// The class of each tenant in the order of the stack file, the last one of all beyond; empty when
/// tenants have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Priorities(pub Vec<Priority>);

impl ValueKind for Priorities {
    const KIND: &'static str =
        "`none`, or a class for each tenant: urgent, high, medium or low (`urgent high`)";

    fn read(value: &Value) -> Result<Priorities, Mismatch> {
        let text = value.as_text().ok_or(Mismatch::Kind)?;
        if text == "none" {
            return Ok(Priorities::default());
        }
        let class = |word: &str| Priority::ALL.into_iter().find(|class| class.word() == word);
        let classes: Option<Vec<Priority>> = text.split_whitespace().map(class).collect();
        classes.filter(|all| !all.is_empty()).map(Priorities).ok_or(Mismatch::Kind)
    }

    fn value(&self) -> Option<Value> {
        let words: Vec<&str> = self.0.iter().map(|class| class.word()).collect();
        Some(Value::Text(if words.is_empty() { "none".to_owned() } else { words.join(" ") }))
    }
}

impl SsdParams {
    /// What the back-end is built from, for a drive of so many tenants.
    pub fn flash(&self, tenants: u32) -> FlashParams {
        FlashParams {
            shape: self.shape(),
            bus: match self.channel_timing {
                ChannelTiming::Truncated => Bus::mqsim(self.channel_rate, self.channel_width),
                ChannelTiming::Exact => Bus::exact(self.channel_rate, self.channel_width),
            },
            cell: self.cells(),
            schedule: FlashSchedule {
                die_interleave: self.die_interleave,
                multi_plane: self.multi_plane,
                suspend_program: matches!(self.suspend, Suspend::Program | Suspend::Both),
                suspend_erase: matches!(self.suspend, Suspend::Erase | Suspend::Both),
                max_suspends: self.suspends_most,
                copy_back: self.copy_back,
                gc_preemptible: self.preemptible_cleaning,
            },
            priorities: self.priority_classes.0.clone(),
            layout: PlaneLayout {
                order: order(self.plane_order),
                superblock: self.superblock,
                groups: self.channel_groups.lists(self.channels),
            },
            collect: self.collect(),
            map: match self.mapping {
                MapLocation::Ideal => MapCache::Ideal,
                MapLocation::Cached => MapCache::Cached {
                    bytes: self.map_cache.0,
                    entry_bytes: self.map_entry.0 as u32,
                    stored_bytes: self.map_stored_entry.0 as u32,
                    tenants: match self.map_sharing {
                        MapSharing::Shared => 1,
                        MapSharing::Split => tenants.max(1),
                    },
                    read_bytes: self.map_read.0 as u32,
                },
            },
            unwritten: match self.unwritten {
                UnwrittenReads::Zero => flash::Unwritten::Zero,
                UnwrittenReads::Allocate => flash::Unwritten::Allocate,
            },
            joules: Joules {
                read: self.read_energy * 1e-6,
                program: self.program_energy * 1e-6,
                erase: self.erase_energy * 1e-6,
                channel_byte: self.channel_energy * 8e-12,
            },
            fill: match self.fill {
                FillMethod::Empty => flash::InitialFill::Empty,
                FillMethod::Analytic => flash::InitialFill::Analytic { occupancy: self.occupancy },
                FillMethod::Replay => flash::InitialFill::Replay {
                    occupancy: self.occupancy,
                    overwrites: self.overwrites,
                },
            },
        }
    }

    /// What the drive draws beside the energy of its flash.
    pub fn power(&self) -> Power {
        Power { idle: self.idle_power, active: self.active_power }
    }

    fn shape(&self) -> FlashShape {
        FlashShape {
            channels: self.channels,
            chips_per_channel: self.chips,
            dies_per_chip: self.dies,
            planes_per_die: self.planes,
            blocks_per_plane: self.blocks,
            pages_per_block: self.pages_per_block(),
            page_bytes: self.page.0 as u32,
            sector_bytes: self.sector.0 as u32,
        }
    }

    /// The back-end numbers the kinds of pages from the first; with two kinds the second is last.
    fn cells(&self) -> Cell {
        let kinds = |first: u64, middle: u64, last: u64| match self.cell {
            CellKind::Slc => [first; 3],
            CellKind::Mlc => [first, last, last],
            CellKind::Tlc => [first, middle, last],
        };
        let read = [self.read_time, self.read_time_csb, self.read_time_msb].map(|time| time.0);
        let program = [self.program_time, self.program_time_csb, self.program_time_msb];
        let program = program.map(|time| time.0);
        Cell {
            kind: self.cell,
            read_ns: kinds(read[0], read[1], read[2]),
            program_ns: kinds(program[0], program[1], program[2]),
            erase_ns: self.erase_time.0,
            suspend_program_ns: self.suspend_program_time.0,
            suspend_erase_ns: self.suspend_erase_time.0,
        }
    }

    fn collect(&self) -> Collect {
        Collect {
            over_provisioning: self.spare_share(),
            soft_threshold: self.clean_below,
            hard_threshold: self.clean_hard_below,
            separation: self.separation.name.clone(),
            separation_settings: self.separation.pairs.clone(),
            reclaim: self.reclaim.name.clone(),
            reclaim_settings: self.reclaim.pairs.clone(),
            prediction_ns: self.prediction_time.0,
            static_wear_spread: (self.wear_spread > 0).then_some(self.wear_spread),
        }
    }

    /// Pages of an erase block.
    pub fn pages_per_block(&self) -> u32 {
        (self.block.0 / self.page.0.max(1)) as u32
    }

    /// Planes of the whole drive.
    pub fn plane_count(&self) -> u64 {
        u64::from(self.channels)
            * u64::from(self.chips)
            * u64::from(self.dies)
            * u64::from(self.planes)
    }

    /// Pages of the whole drive, spare ones included.
    pub fn raw_pages(&self) -> u64 {
        self.plane_count() * u64::from(self.blocks) * u64::from(self.pages_per_block())
    }

    /// The share of pages kept from the host: `over_provisioning`, or what `capacity` leaves.
    pub fn spare_share(&self) -> f64 {
        match self.capacity {
            AddressableBytes::Auto => self.over_provisioning,
            AddressableBytes::Bytes(bytes) => {
                let pages = (bytes.0 / self.page.0.max(1)) as f64;
                1.0 - (pages + 0.5) / self.raw_pages() as f64
            }
        }
    }

    /// Refuses a drive that cannot be. Errors: the first rule broken, by key.
    pub fn check(&self) -> Result<(), SettingError> {
        self.check_pages()?;
        self.check_spare()?;
        self.check_groups()?;
        self.check_schemes()
    }

    fn check_pages(&self) -> Result<(), SettingError> {
        let (page, sector, block) = (self.page.0, self.sector.0, self.block.0);
        if !sector.is_power_of_two() {
            return refuse("sector", &self.sector, "a power of two");
        }
        if !page.is_multiple_of(sector) || page / sector > SECTORS_LIMIT {
            let sector = self.sector;
            let expected = format!("1 to {SECTORS_LIMIT} whole sectors of {sector}");
            return refuse("page", &self.page, &expected);
        }
        if !block.is_multiple_of(page) || !(2..=1 << 16).contains(&(block / page)) {
            let expected = format!("2 to 65536 whole pages of {}", self.page);
            return refuse("block", &self.block, &expected);
        }
        let pages = self.raw_pages();
        if pages >= PAGES_LIMIT {
            let expected = format!(
                "fewer than {PAGES_LIMIT} pages on the drive, not {pages}: take larger pages"
            );
            return refuse("blocks", &self.blocks, &expected);
        }
        Ok(())
    }

    /// The largest `clean_below` that leaves room for the data; nothing where none does.
    pub fn largest_clean_below(&self) -> Option<f64> {
        let spare = (self.spare_share() * f64::from(self.blocks)).floor();
        let free = spare - f64::from(OPEN_BLOCKS);
        // Rounded down, so that no block too many is kept free.
        (free >= 1.0).then(|| (free / f64::from(self.blocks) * 1e4).floor() / 1e4)
    }

    /// Beside the data, a plane needs the blocks kept free and those open for writing.
    fn check_spare(&self) -> Result<(), SettingError> {
        let free = (self.clean_below * f64::from(self.blocks)).ceil() as u32;
        let needed = free + OPEN_BLOCKS;
        let spare = self.spare_share() * f64::from(self.blocks);
        if self.clean_hard_below > self.clean_below {
            let expected = format!("at most clean_below = {}", self.clean_below);
            return refuse("clean_hard_below", &self.clean_hard_below, &expected);
        }
        if spare >= f64::from(needed) {
            return Ok(());
        }
        let why = format!(
            "{needed} of the {} blocks of a plane are spare: {free} kept free (clean_below = {}) \
             and {OPEN_BLOCKS} open for writing",
            self.blocks, self.clean_below
        );
        match self.capacity {
            AddressableBytes::Auto => {
                let min = f64::from(needed) / f64::from(self.blocks);
                let expected = format!("at least {:.4}, so that {why}", (min * 1e4).ceil() / 1e4);
                refuse("over_provisioning", &self.over_provisioning, &expected)
            }
            AddressableBytes::Bytes(_) => {
                let share = 1.0 - f64::from(needed) / f64::from(self.blocks);
                let max = (share.max(0.0) * self.raw_pages() as f64) as u64 * self.page.0;
                let max = cachewright_types::Bytes(max);
                refuse("capacity", &self.capacity, &format!("at most {max}, so that {why}"))
            }
        }
    }

    fn check_groups(&self) -> Result<(), SettingError> {
        let ChannelGroups::Lists(lists) = &self.channel_groups else { return Ok(()) };
        let mut seen = vec![false; self.channels as usize];
        for channel in lists.iter().flatten() {
            match seen.get_mut(*channel as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    let expected = format!(
                        "each channel below {} at most once, not {channel} again or beyond",
                        self.channels
                    );
                    return refuse("channel_groups", &self.channel_groups, &expected);
                }
            }
        }
        Ok(())
    }

    fn check_schemes(&self) -> Result<(), SettingError> {
        let entries = reclaim::entries();
        let known: Vec<&'static str> = entries.iter().map(|entry| entry.name).collect();
        check_scheme("reclaim", &self.reclaim, &known, reclaim::resolved)?;
        check_scheme("separation", &self.separation, &layer::names(), layer::resolved)
    }
}

/// The back-end's own form of a checked permutation.
fn order(order: PlaneLetters) -> flash::PlaneOrder {
    flash::PlaneOrder::parse(&order.word()).unwrap_or(flash::PlaneOrder::CWDP)
}

/// Most sectors of a page: which of them are touched is a 64-bit mask.
const SECTORS_LIMIT: u64 = 64;
/// Blocks of a plane that are open for writing at most: for the host, for cleaning, for the map.
const OPEN_BLOCKS: u32 = 3;
/// Pages of a drive are counted in 32 bits.
const PAGES_LIMIT: u64 = 1 << 31;

/// Reads the settings of a scheme by name.
type Read = fn(&str, &[(String, Value)]) -> Result<Resolved, RegistryError>;

fn check_scheme(
    key: &str,
    scheme: &Scheme,
    known: &[&'static str],
    read: Read,
) -> Result<(), SettingError> {
    match read(&scheme.name, &scheme.pairs) {
        Ok(_) => Ok(()),
        Err(RegistryError::Setting { error, .. }) => {
            Err(SettingError { key: format!("{key}.{}", error.key), ..error })
        }
        Err(_) => {
            let near = cachewright_types::nearest(&scheme.name, known.iter().copied());
            let hint = near.map_or(String::new(), |near| format!("; nearest is `{near}`"));
            refuse(key, scheme, &format!("one of {}{hint}", known.join(", ")))
        }
    }
}

fn refuse<K: ValueKind>(key: &str, found: &K, expected: &str) -> Result<(), SettingError> {
    let found = found.value().map(|value| value.shown()).unwrap_or_default();
    Err(SettingError { key: key.to_owned(), found, expected: expected.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(text: &str) -> Option<ChannelGroups> {
        ChannelGroups::read(&Value::Text(text.to_owned())).ok()
    }

    #[test]
    fn channel_groups_are_read_and_written() {
        let lists = vec![vec![0, 1, 2], vec![5, 3]];
        let given = groups("0-2 5,3").unwrap();
        assert_eq!(given, ChannelGroups::Lists(lists.clone()));
        assert_eq!(given.value(), Some(Value::Text("0,1,2 5,3".into())));
        assert_eq!(given.lists(8), lists);
        assert_eq!(groups("each").unwrap().lists(3), [[0], [1], [2]]);
        assert!(groups("all").unwrap().lists(3).is_empty());
        for bad in ["", "3-1", "0-", "a", "0,,1", "0-4000000000"] {
            assert_eq!(groups(bad), None, "`{bad}`");
        }
    }

    fn classes(text: &str) -> Option<Priorities> {
        Priorities::read(&Value::Text(text.to_owned())).ok()
    }

    #[test]
    fn classes_are_read_and_written() {
        let given = classes("urgent  low").unwrap();
        assert_eq!(given.0, [Priority::Urgent, Priority::Low]);
        assert_eq!(given.value(), Some(Value::Text("urgent low".into())));
        assert_eq!(classes("none").unwrap().value(), Some(Value::Text("none".into())));
        for bad in ["", "none high", "HIGH", "urgent,high"] {
            assert_eq!(classes(bad), None, "`{bad}`");
        }
        assert_eq!(Priorities::read(&Value::Int(1)), Err(Mismatch::Kind));
    }

    /// The defaults are the reference base of the back-end, except for the map, the spare-block
    /// policies and the state before a run. Users rarely want those as the reference runs had them.
    #[test]
    fn the_defaults_are_the_reference_base() {
        let ours = SsdParams::default().flash(1);
        let theirs = FlashParams::mqsim();
        assert_eq!(ours.shape, theirs.shape);
        assert_eq!((ours.bus, ours.cell), (theirs.bus, theirs.cell));
        assert_eq!((ours.schedule, &ours.layout), (theirs.schedule, &theirs.layout));
        let base = &theirs.collect;
        assert_eq!(ours.collect.over_provisioning, base.over_provisioning);
        assert_eq!(ours.collect.separation, base.separation);
        let (entry_bytes, stored_bytes) = (8, 8);
        let (bytes, tenants, read_bytes) = (2 << 20, 1, 512);
        let map = MapCache::Cached { bytes, entry_bytes, stored_bytes, tenants, read_bytes };
        assert_eq!(ours.map, map);
    }

    fn refusal(pairs: &[(&str, Value)]) -> String {
        let mut params = SsdParams::default();
        for (key, value) in pairs {
            if let Err(error) = params.set(key, value) {
                return error.to_string();
            }
        }
        params.check().unwrap_err().to_string()
    }

    fn text(words: &str) -> Value {
        Value::Text(words.to_owned())
    }

    #[test]
    fn the_default_drive_is_possible() {
        let params = SsdParams::default();
        assert_eq!(params.check(), Ok(()));
        assert_eq!(params.plane_count(), 128);
        assert_eq!(params.raw_pages() * 8192, 512 << 30);
    }

    #[test]
    fn impossible_drives_are_refused_by_key_and_value() {
        assert_eq!(
            refusal(&[("channels", Value::Int(0))]),
            "`channels`: found `0`, expected a whole number from 1 to 256 (channels)"
        );
        assert_eq!(
            refusal(&[("block", text("4KiB"))]),
            "`block`: found 4KiB, expected 2 to 65536 whole pages of 8KiB"
        );
        assert_eq!(
            refusal(&[("page", text("64KiB"))]),
            "`page`: found 64KiB, expected 1 to 64 whole sectors of 512B"
        );
        let spare = refusal(&[("over_provisioning", Value::Float(0.02))]);
        let start = "`over_provisioning`: found 0.02, expected at least 0.0518, so that 106 of";
        assert!(spare.starts_with(start), "{spare}");
        let spare = refusal(&[("capacity", text("512GiB"))]);
        assert!(
            spare.starts_with("`capacity`: found 512GiB, expected at most 485.5GiB"),
            "{spare}"
        );
        let blocks = refusal(&[("blocks", Value::Int(1 << 20))]);
        assert!(blocks.starts_with("`blocks`: found 1048576, expected fewer than"), "{blocks}");
    }

    #[test]
    fn groups_and_schemes_are_checked() {
        let groups = refusal(&[("channel_groups", text("0-3 3-7"))]);
        assert!(groups.starts_with("`channel_groups`: found 0,1,2,3 3,4,"), "{groups}");
        let scheme = refusal(&[("reclaim", text("gready"))]);
        assert!(scheme.ends_with("nearest is `greedy`"), "{scheme}");
        let setting = refusal(&[("reclaim.d", Value::Int(0))]);
        assert!(setting.starts_with("`reclaim.d`: found "), "{setting}");
        let setting = refusal(&[("reclaim.e", Value::Int(1))]);
        assert!(setting.starts_with("`reclaim.e`: found an unknown key"), "{setting}");
    }
}
