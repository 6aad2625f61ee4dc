//! What each step of a command costs on the link.
//!
//! For: the times of all messages of both protocols, resolved once. Must never know: queues, time.
//! Units: bytes, nanoseconds. Sources: NVMe base specification 1.4 (entries, doorbells, the 16 B
//! ranges of dataset management); Serial ATA 3.3, 10 (register frame 20 B, DMA setup 28 B, set
//! device bits 8 B, data frames of at most 8 KiB).

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

    /// Time of the data that follows a command.
    #[inline]
    pub fn data_to_drive(&self, op: Op, length: Bytes) -> u64 {
        match (self.interface, op) {
            (Interface::Nvme, Op::Trim) => self.pcie.payload_ns(NVME_TRIM_BYTES),
            (Interface::Sata, Op::Trim) => self.sata.payload_ns(SATA_TRIM_BYTES),
            (Interface::Nvme, _) => self.pcie.payload_ns(length.0),
            (Interface::Sata, _) => self.sata.payload_ns(length.0),
        }
    }

    /// Times of the messages that carry the data of a read, one after the other.
    #[inline]
    pub fn data_to_host(&self, length: Bytes) -> [u64; 2] {
        match self.interface {
            _ if length.0 == 0 => [0, 0],
            Interface::Nvme => [0, self.pcie.payload_ns(length.0)],
            Interface::Sata => [self.request_ns, self.sata.payload_ns(length.0)],
        }
    }
}
