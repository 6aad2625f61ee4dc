//! The messages between host and drive, and what each costs on the link.
//!
//! The times of both protocols are resolved once. Units: bytes, nanoseconds. Sources: NVMe base
//! specification 1.4 (entries, doorbells, the 16 B ranges of dataset management). Serial ATA 3.3,
//! 10 (register frame 20 B, DMA setup 28 B, set device bits 8 B, data frames of at most 8 KiB).

use super::Slot;
use crate::ssd::link::{Pcie, Sata};
use crate::ssd::params::{Interface, SsdParams};
use cachewright_types::{Bytes, Op};

const SATA_DATA_BYTES: u64 = 8_192;
const SATA_REGISTER_BYTES: u64 = 20;
const SATA_SETUP_BYTES: u64 = 28;
const SATA_DONE_BYTES: u64 = 8;
/// Data set management: one range of NVMe, one block of ranges of ATA.
const NVME_TRIM_BYTES: u64 = 16;
const SATA_TRIM_BYTES: u64 = 512;

/// The times of one link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    /// Which messages there are.
    pub interface: Interface,
    /// A doorbell (NVMe).
    pub doorbell_ns: u64,
    /// The drive asks for an entry or for data; on SATA the setup frame before data.
    pub request_ns: u64,
    /// The command itself.
    pub entry_ns: u64,
    /// The drive has taken the command and frees the link (SATA).
    pub release_ns: u64,
    /// The drive says that a command is done.
    pub completion_ns: u64,
    pcie: Pcie,
    sata: Sata,
    /// The last length of data and its time: most are alike.
    last: (u64, u64),
}

impl Protocol {
    /// The times that follow from the parameters.
    pub fn new(params: &SsdParams) -> Protocol {
        let pcie = Pcie {
            lanes: u64::from(params.lanes),
            lane_rate: params.lane_rate,
            packet_payload_bytes: params.packet_payload.0,
            packet_overhead_bytes: params.packet_overhead.0,
        };
        let sata = Sata {
            rate: params.sata_rate,
            frame_payload_bytes: SATA_DATA_BYTES,
            frame_overhead_bytes: params.sata_frame_overhead.0,
        };
        match params.interface {
            Interface::Nvme => Protocol {
                interface: Interface::Nvme,
                doorbell_ns: pcie.payload_ns(params.doorbell.0),
                request_ns: pcie.request_ns(),
                entry_ns: pcie.payload_ns(params.submission_entry.0),
                release_ns: 0,
                completion_ns: pcie.payload_ns(params.completion_entry.0),
                pcie,
                sata,
                last: (0, 0),
            },
            Interface::Sata => Protocol {
                interface: Interface::Sata,
                doorbell_ns: 0,
                request_ns: sata.frame_ns(SATA_SETUP_BYTES),
                entry_ns: sata.frame_ns(SATA_REGISTER_BYTES),
                release_ns: sata.frame_ns(SATA_REGISTER_BYTES),
                completion_ns: sata.frame_ns(SATA_DONE_BYTES),
                pcie,
                sata,
                last: (0, 0),
            },
        }
    }

    /// Whether data follows the command.
    #[inline]
    pub fn fetches_data(&self, op: Op, length: Bytes) -> bool {
        match op {
            Op::Write => length.0 > 0,
            Op::Trim => true,
            Op::Read | Op::Flush => false,
        }
    }

    /// Time of the data that follows a command, if any does.
    #[inline]
    pub fn fetched_ns(&mut self, op: Op, length: Bytes) -> Option<u64> {
        self.fetches_data(op, length).then(|| self.data_to_drive(op, length))
    }

    /// Time of the data that follows a command.
    #[inline]
    pub fn data_to_drive(&mut self, op: Op, length: Bytes) -> u64 {
        let bytes = match (self.interface, op) {
            (Interface::Nvme, Op::Trim) => NVME_TRIM_BYTES,
            (Interface::Sata, Op::Trim) => SATA_TRIM_BYTES,
            _ => length.0,
        };
        self.data_ns(bytes)
    }

    /// Time of the data of a read, with the frame that announces it (SATA).
    #[inline]
    pub fn data_to_host(&mut self, length: Bytes) -> u64 {
        let announced = if self.interface == Interface::Sata { self.request_ns } else { 0 };
        announced + self.data_ns(length.0)
    }

    #[inline]
    fn data_ns(&mut self, bytes: u64) -> u64 {
        if self.last.0 != bytes {
            let time_ns = match self.interface {
                Interface::Nvme => self.pcie.payload_ns(bytes),
                Interface::Sata => self.sata.payload_ns(bytes),
            };
            self.last = (bytes, time_ns);
        }
        self.last.1
    }
}

/// The wire towards the drive; on SATA the only one.
pub const DOWN: usize = 0;
/// The wire towards the host.
pub const UP: usize = 1;

/// What arrives at an end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostArrival {
    /// At the drive: a command was announced.
    Doorbell,
    /// At the host: the drive asks for the entry.
    EntryRequest,
    /// At the drive: the entry.
    Entry,
    /// At the host: the drive asks for the data of a write.
    DataRequest,
    /// At the drive: that data.
    Data,
    /// At the host: the command is done.
    Completion,
    /// In the drive: the controller has worked on the command.
    Worked,
}

/// What arrives, and for which command.
pub type Message = (HostArrival, Slot);
