//! Every parameter of an SSD, declared once.
//!
//! For: names, units, ranges, defaults, meanings and sources. Must never know: what follows from
//! them (see the modules beside this one). The defaults are MQSim's shipped configuration
//! (`ssdconfig.xml`; Tavakkol et al., FAST'18), which is also table 1 of icache. The mark "kept"
//! stands for a constant in that tool's code.

use super::kinds::{
    AddressableBytes, Arbitration, ChannelGroups, ChannelTiming, FillMethod, Interface,
    MapLocation, MapSharing, PlaneLetters, Suspend, UnwrittenReads,
};
use super::priorities::Priorities;
use crate::ssd::flash::CellKind;
use cachewright_types::declare::Scheme;
use cachewright_types::{Bytes, Nanos, declare};

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
