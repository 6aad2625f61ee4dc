//! Requests of a virtio disk, and its configuration.
//!
//! A request is a header of 16 bytes that the device reads, data, and a byte of status that it
//! writes last. Source: "Block Device" of Virtual I/O Device (VIRTIO) Version 1.2.

use super::memory::SharedMemory;
use super::ring::{Chain, RingFault, Segment, behind, bytes_of, gather};
use crate::blocks::BlockOp;

/// Bytes of a sector.
pub const SECTOR: u64 = 512;
/// Bytes of the name that a guest can ask for.
pub const ID_BYTES: usize = 20;
/// Data of one request at most.
pub const MAX_DATA_BYTES: u64 = SEGMENTS as u64 * SEGMENT_BYTES as u64;

const HEADER_BYTES: u64 = 16;
/// Segments of a request, and bytes of one, that a guest is told to use at most.
const SEGMENTS: u32 = 126;
const SEGMENT_BYTES: u32 = 256 << 10;
/// Sectors of a discard or of zeroes at most: 1 GiB.
const MAX_CLEARED_SECTORS: u32 = 1 << 21;

/// What a disk can do.
pub mod feature {
    /// Bytes of a segment are bounded.
    pub const SIZE_MAX: u64 = 1 << 1;
    /// Segments of a request are bounded.
    pub const SEG_MAX: u64 = 1 << 2;
    /// It cannot be written to.
    pub const READ_ONLY: u64 = 1 << 5;
    /// It says how large its sectors are.
    pub const BLK_SIZE: u64 = 1 << 6;
    /// It can flush: what was written may be lost before.
    pub const FLUSH: u64 = 1 << 9;
    /// It says how it is best used.
    pub const TOPOLOGY: u64 = 1 << 10;
    /// It has several queues.
    pub const MQ: u64 = 1 << 12;
    /// It can discard.
    pub const DISCARD: u64 = 1 << 13;
    /// It can write zeroes.
    pub const WRITE_ZEROES: u64 = 1 << 14;
    /// Requests may have tables of descriptors of their own.
    pub const INDIRECT: u64 = 1 << 28;
    /// Both sides say when they want a signal.
    pub const EVENT_INDEX: u64 = 1 << 29;
    /// There is a protocol of vhost-user to agree on.
    pub const PROTOCOL: u64 = 1 << 30;
    /// It is of version 1.
    pub const VERSION_1: u64 = 1 << 32;
    /// All but `READ_ONLY`.
    pub const ALL: u64 = SIZE_MAX
        | SEG_MAX
        | BLK_SIZE
        | FLUSH
        | TOPOLOGY
        | MQ
        | DISCARD
        | WRITE_ZEROES
        | INDIRECT
        | EVENT_INDEX
        | PROTOCOL
        | VERSION_1;
}

/// The configuration of a disk of so many bytes, as a guest reads it.
pub fn configuration(bytes: u64, block_bytes: u64, queues: u16) -> Vec<u8> {
    let block_sectors = (block_bytes / SECTOR) as u32;
    let mut config = Vec::with_capacity(60);
    config.extend((bytes / SECTOR).to_le_bytes());
    config.extend(SEGMENT_BYTES.to_le_bytes());
    config.extend(SEGMENTS.to_le_bytes());
    config.extend([0; 4]); // cylinders, heads, sectors
    config.extend((SECTOR as u32).to_le_bytes());
    // Pages are best, from the first sector on; then whole blocks of the cache.
    config.extend([3, 0]);
    config.extend(8_u16.to_le_bytes());
    config.extend(block_sectors.to_le_bytes());
    config.extend([0, 0]); // the driver cannot turn caching off
    config.extend(queues.to_le_bytes());
    for discards in [MAX_CLEARED_SECTORS, 1, block_sectors] {
        config.extend(discards.to_le_bytes());
    }
    // Zeroes may be holes.
    for zeroes in [MAX_CLEARED_SECTORS, 1, 1] {
        config.extend(zeroes.to_le_bytes());
    }
    config
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DiskStatus {
    /// All is well.
    Ok,
    /// Input or output failed, or the request is wrong.
    Failed,
    /// The disk does not know such a request.
    Unsupported,
}

/// What a guest wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskCommand {
    /// Something of a range of the volume.
    Range {
        /// What.
        op: BlockOp,
        /// The first byte.
        offset: u64,
        /// Bytes.
        bytes: u64,
    },
    /// What was answered is durable.
    Flush,
    /// The name of the disk.
    Id,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskRequest {
    /// What is wanted; or why it is not done.
    pub command: Result<DiskCommand, DiskStatus>,
    /// Where the status goes.
    pub status: u64,
    /// Data of the guest, without the header.
    pub from_guest: Vec<Segment>,
    /// Where data for the guest goes.
    pub to_guest: Vec<Segment>,
}

impl DiskRequest {
    /// The request of a chain. Errors: there is no header, or no place for the status.
    pub fn parse(memory: &SharedMemory, chain: Chain) -> Result<DiskRequest, RingFault> {
        if bytes_of(&chain.readable) < HEADER_BYTES {
            return Err(RingFault::Order);
        }
        let mut to_guest = chain.writable;
        while to_guest.last().is_some_and(|last| last.bytes == 0) {
            to_guest.pop();
        }
        let last = to_guest.last_mut().ok_or(RingFault::Order)?;
        last.bytes -= 1;
        let status = last.guest + u64::from(last.bytes);
        let mut header = [0; HEADER_BYTES as usize];
        gather(memory, &chain.readable, &mut header)?;
        let from_guest = behind(&chain.readable, HEADER_BYTES);
        let command = command(memory, header, &from_guest, &to_guest)?;
        Ok(DiskRequest { command, status, from_guest, to_guest })
    }
}

fn command(
    memory: &SharedMemory,
    header: [u8; HEADER_BYTES as usize],
    from_guest: &[Segment],
    to_guest: &[Segment],
) -> Result<Result<DiskCommand, DiskStatus>, RingFault> {
    let [a, b, c, d, _, _, _, _, sector @ ..] = header;
    let sector = u64::from_le_bytes(sector);
    let range = |op: BlockOp, bytes: u64| {
        let offset = sector.checked_mul(SECTOR).ok_or(DiskStatus::Failed)?;
        let is_whole = bytes.is_multiple_of(SECTOR) && bytes > 0 && bytes <= MAX_DATA_BYTES;
        match is_whole {
            true => Ok(DiskCommand::Range { op, offset, bytes }),
            false => Err(DiskStatus::Failed),
        }
    };
    Ok(match u32::from_le_bytes([a, b, c, d]) {
        0 => range(BlockOp::Read, bytes_of(to_guest)),
        1 => range(BlockOp::Write, bytes_of(from_guest)),
        4 => Ok(DiskCommand::Flush),
        8 if bytes_of(to_guest) >= ID_BYTES as u64 => Ok(DiskCommand::Id),
        8 => Err(DiskStatus::Failed),
        kind @ (11 | 13) => {
            let mut cleared = [0; 16];
            if bytes_of(from_guest) != 16 {
                return Ok(Err(DiskStatus::Unsupported));
            }
            gather(memory, from_guest, &mut cleared)?;
            cleared_range(kind == 13, cleared)
        }
        _ => Err(DiskStatus::Unsupported),
    })
}

/// A range that is discarded, or becomes zeroes, which may be a hole if the guest says so.
fn cleared_range(zeroes: bool, bytes: [u8; 16]) -> Result<DiskCommand, DiskStatus> {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
    let sector = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let sectors = u32::from_le_bytes([i, j, k, l]);
    let op = match (zeroes, u32::from_le_bytes([m, n, o, p])) {
        (false, 0) => BlockOp::Trim,
        (true, 0) => BlockOp::Provision,
        (true, 1) => BlockOp::Zero,
        _ => return Err(DiskStatus::Unsupported),
    };
    let offset = sector.checked_mul(SECTOR).ok_or(DiskStatus::Failed)?;
    match (1..=MAX_CLEARED_SECTORS).contains(&sectors) {
        true => Ok(DiskCommand::Range { op, offset, bytes: u64::from(sectors) * SECTOR }),
        false => Err(DiskStatus::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_lies_where_guests_look_for_it() {
        let config = configuration(1 << 30, 65536, 4);
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| config[at + byte]));
        assert_eq!(config.len(), 60);
        assert_eq!((u32_at(0), u32_at(4)), (1 << 21, 0));
        assert_eq!((u32_at(8), u32_at(12), u32_at(20)), (SEGMENT_BYTES, SEGMENTS, 512));
        assert_eq!((config[24], u32_at(28), config[34]), (3, 128, 4));
        assert_eq!([36, 40, 44].map(u32_at), [MAX_CLEARED_SECTORS, 1, 128]);
        assert_eq!([48, 52, 56].map(u32_at), [MAX_CLEARED_SECTORS, 1, 1]);
    }

    #[test]
    fn ranges_that_are_cleared_have_known_flags_and_sizes() {
        let cleared = |zeroes, sectors: u32, flags: u32| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&8_u64.to_le_bytes());
            bytes[8..12].copy_from_slice(&sectors.to_le_bytes());
            bytes[12..].copy_from_slice(&flags.to_le_bytes());
            cleared_range(zeroes, bytes)
        };
        let range = |op| Ok(DiskCommand::Range { op, offset: 4096, bytes: 512 });
        assert_eq!(cleared(false, 1, 0), range(BlockOp::Trim));
        assert_eq!(cleared(true, 1, 0), range(BlockOp::Provision));
        assert_eq!(cleared(true, 1, 1), range(BlockOp::Zero));
        assert_eq!(cleared(false, 1, 1), Err(DiskStatus::Unsupported));
        assert_eq!(cleared(true, 1, 2), Err(DiskStatus::Unsupported));
        assert_eq!(cleared(true, 0, 0), Err(DiskStatus::Failed));
        assert_eq!(cleared(true, u32::MAX, 0), Err(DiskStatus::Failed));
    }
}
