//! Messages of the vhost-user protocol: bytes in, requests out, and replies as bytes.
//!
//! A message is a header of twelve bytes (request, flags, bytes of payload), a payload, and
//! descriptors beside its first byte. Numbers are those of the machine. Source: "Vhost-user
//! Protocol" of QEMU's documentation, as of QEMU 9.

/// Bytes of a header.
pub const HEADER_BYTES: usize = 12;
/// Bytes of a payload at most; those that are known have at most 268.
pub const MAX_PAYLOAD_BYTES: usize = 1024;
/// Bytes of the configuration that one message may carry.
pub const MAX_CONFIG_BYTES: usize = 256;
/// Regions of memory that a guest may have.
pub const MAX_REGIONS: usize = 32;
/// Descriptors beside one message.
pub const MAX_DESCRIPTORS: usize = 8;

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const IS_REPLY: u32 = 1 << 2;
const NEEDS_REPLY: u32 = 1 << 3;

/// What a front end and a back end may agree on about the protocol.
pub mod protocol {
    /// Several queues.
    pub const MQ: u64 = 1 << 0;
    /// Every message is answered where the front end asks for that.
    pub const REPLY_ACK: u64 = 1 << 3;
    /// The back end sends messages by a socket of its own.
    pub const BACKEND_REQ: u64 = 1 << 5;
    /// The configuration of the device is the back end's.
    pub const CONFIG: u64 = 1 << 9;
    /// Memory says which requests are under way, and outlives the back end.
    pub const INFLIGHT_SHMFD: u64 = 1 << 12;
    /// The device can be reset.
    pub const RESET_DEVICE: u64 = 1 << 13;
    /// Regions of memory come and go one by one.
    pub const CONFIGURE_MEM_SLOTS: u64 = 1 << 15;
    /// All of them.
    pub const ALL: u64 =
        MQ | REPLY_ACK | BACKEND_REQ | CONFIG | INFLIGHT_SHMFD | RESET_DEVICE | CONFIGURE_MEM_SLOTS;
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The number of the request.
    pub request: u32,
    flags: u32,
    /// Bytes of the payload that follows.
    pub payload_bytes: usize,
}

impl Header {
    /// The header of these bytes, if it is one that a front end may send.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Header> {
        let mut fields = Fields(bytes);
        let (request, flags) = (fields.u32()?, fields.u32()?);
        let payload_bytes = fields.u32()? as usize;
        let is_known = flags & VERSION_MASK == VERSION && flags & IS_REPLY == 0;
        let header = Header { request, flags, payload_bytes };
        (is_known && payload_bytes <= MAX_PAYLOAD_BYTES).then_some(header)
    }

    /// Whether the front end asks for an answer to a message that has none by itself.
    pub fn needs_reply(&self) -> bool {
        self.flags & NEEDS_REPLY != 0
    }
}

/// The reply to a request.
pub fn reply(request: u32, payload: &[u8]) -> Vec<u8> {
    message(request, VERSION | IS_REPLY, payload)
}

/// A message of the back end's own that says that the configuration has changed.
pub fn config_change() -> Vec<u8> {
    const CONFIG_CHANGE: u32 = 2;
    message(CONFIG_CHANGE, VERSION, &[])
}

fn message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    [request, flags, payload.len() as u32]
        .iter()
        .for_each(|field| bytes.extend(field.to_ne_bytes()));
    bytes.extend(payload);
    bytes
}

/// A region of a guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRegion {
    /// Its first byte as the guest numbers it.
    pub guest: u64,
    /// Bytes.
    pub bytes: u64,
    /// Its first byte as the front end numbers it.
    pub user: u64,
    /// Its first byte in the file that holds it.
    pub offset: u64,
}

/// The memory that says which requests are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflightLayout {
    /// Bytes.
    pub bytes: u64,
    /// Its first byte in the file that holds it.
    pub offset: u64,
    /// Queues.
    pub queues: u16,
    /// Descriptors of each queue.
    pub queue_size: u16,
}

impl InflightLayout {
    /// As it goes into a message.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(24);
        bytes.extend(self.bytes.to_ne_bytes());
        bytes.extend(self.offset.to_ne_bytes());
        bytes.extend(self.queues.to_ne_bytes());
        bytes.extend(self.queue_size.to_ne_bytes());
        // The structure of C ends at a multiple of eight bytes.
        bytes.extend([0; 4]);
        bytes
    }
}

/// Where a ring lies, as the front end numbers its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingAddresses {
    /// The table of descriptors.
    pub descriptors: u64,
    /// What the device has used.
    pub used: u64,
    /// What the driver has made available.
    pub available: u64,
}

/// What a front end wants. Numbers of queues are unchecked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VhostRequest {
    /// The features of the device and the back end.
    GetFeatures,
    /// The features that are used.
    SetFeatures(u64),
    /// This connection is the device's owner.
    SetOwner,
    /// It is no more: rings stop.
    ResetOwner,
    /// All memory of the guest, a descriptor beside each region.
    SetMemoryTable(Vec<MemoryRegion>),
    /// The descriptors of a ring.
    SetRingSize {
        /// The queue.
        queue: u32,
        /// How many.
        size: u32,
    },
    /// Where a ring lies.
    SetRingAddresses {
        /// The queue.
        queue: u32,
        /// Where.
        addresses: RingAddresses,
    },
    /// Where a ring goes on.
    SetRingBase {
        /// The queue.
        queue: u32,
        /// The index of the next request.
        base: u32,
    },
    /// A ring stops; the answer says where it goes on.
    GetRingBase {
        /// The queue.
        queue: u32,
    },
    /// The signal that there are requests; a ring begins.
    SetRingKick(RingSignal),
    /// The signal that there are answers.
    SetRingCall(RingSignal),
    /// The signal that a ring is broken.
    SetRingError(RingSignal),
    /// What may be agreed on about the protocol.
    GetProtocolFeatures,
    /// What is agreed on.
    SetProtocolFeatures(u64),
    /// Queues that there may be.
    GetQueueCount,
    /// A ring is served, or pauses.
    EnableRing {
        /// The queue.
        queue: u32,
        /// Which of both.
        enable: bool,
    },
    /// A socket for messages of the back end.
    SetBackendSocket,
    /// Bytes of the configuration.
    GetConfig {
        /// The first.
        offset: u32,
        /// How many.
        bytes: u32,
        /// As the front end wants them back.
        flags: u32,
    },
    /// The driver writes to the configuration.
    SetConfig,
    /// Memory for what is under way.
    GetInflight(InflightLayout),
    /// Memory that says what an earlier back end had under way.
    SetInflight(InflightLayout),
    /// The device is as new: rings stop.
    ResetDevice,
    /// Regions of memory that there may be.
    GetMaxRegions,
    /// One more region of memory.
    AddRegion(MemoryRegion),
    /// A region of memory goes.
    RemoveRegion(MemoryRegion),
}

/// A queue and whether a signal comes with the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSignal {
    /// The queue.
    pub queue: u32,
    /// Whether there is one.
    pub has_signal: bool,
}

impl VhostRequest {
    /// The request of a number with a payload; nothing if it is none, or the payload is another's.
    pub fn parse(request: u32, payload: &[u8]) -> Option<VhostRequest> {
        let mut fields = Fields(payload);
        Some(match request {
            1 => VhostRequest::GetFeatures,
            2 => VhostRequest::SetFeatures(fields.u64()?),
            3 => VhostRequest::SetOwner,
            4 => VhostRequest::ResetOwner,
            5 => {
                let (count, _padding) = (fields.u32()? as usize, fields.u32()?);
                if count > MAX_DESCRIPTORS {
                    return None;
                }
                let regions = (0..count).map(|_| fields.region()).collect::<Option<_>>()?;
                VhostRequest::SetMemoryTable(regions)
            }
            8 => VhostRequest::SetRingSize { queue: fields.u32()?, size: fields.u32()? },
            9 => {
                let (queue, _flags) = (fields.u32()?, fields.u32()?);
                let (descriptors, used, available) = (fields.u64()?, fields.u64()?, fields.u64()?);
                let addresses = RingAddresses { descriptors, used, available };
                VhostRequest::SetRingAddresses { queue, addresses }
            }
            10 => VhostRequest::SetRingBase { queue: fields.u32()?, base: fields.u32()? },
            11 => VhostRequest::GetRingBase { queue: fields.u32()? },
            12 => VhostRequest::SetRingKick(fields.signal()?),
            13 => VhostRequest::SetRingCall(fields.signal()?),
            14 => VhostRequest::SetRingError(fields.signal()?),
            15 => VhostRequest::GetProtocolFeatures,
            16 => VhostRequest::SetProtocolFeatures(fields.u64()?),
            17 => VhostRequest::GetQueueCount,
            18 => VhostRequest::EnableRing { queue: fields.u32()?, enable: fields.u32()? != 0 },
            21 => VhostRequest::SetBackendSocket,
            24 => {
                let (offset, bytes, flags) = (fields.u32()?, fields.u32()?, fields.u32()?);
                VhostRequest::GetConfig { offset, bytes, flags }
            }
            25 => VhostRequest::SetConfig,
            31 => VhostRequest::GetInflight(fields.inflight()?),
            32 => VhostRequest::SetInflight(fields.inflight()?),
            34 => VhostRequest::ResetDevice,
            36 => VhostRequest::GetMaxRegions,
            37 | 38 => {
                let _padding = fields.u64()?;
                let region = fields.region()?;
                match request {
                    37 => VhostRequest::AddRegion(region),
                    _ => VhostRequest::RemoveRegion(region),
                }
            }
            _ => return None,
        })
    }
}

/// The rest of a payload.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (first, rest) = self.0.split_first_chunk::<COUNT>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    fn region(&mut self) -> Option<MemoryRegion> {
        let (guest, bytes) = (self.u64()?, self.u64()?);
        Some(MemoryRegion { guest, bytes, user: self.u64()?, offset: self.u64()? })
    }

    fn signal(&mut self) -> Option<RingSignal> {
        const NO_SIGNAL: u64 = 1 << 8;
        let field = self.u64()?;
        Some(RingSignal { queue: (field & 0xff) as u32, has_signal: field & NO_SIGNAL == 0 })
    }

    fn inflight(&mut self) -> Option<InflightLayout> {
        let (bytes, offset) = (self.u64()?, self.u64()?);
        Some(InflightLayout { bytes, offset, queues: self.u16()?, queue_size: self.u16()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_a_front_end_is_known() {
        let header = |fields: [u32; 3]| {
            let mut bytes = [0; HEADER_BYTES];
            for (chunk, field) in bytes.chunks_mut(4).zip(fields) {
                chunk.copy_from_slice(&field.to_ne_bytes());
            }
            Header::parse(&bytes)
        };
        let found = header([9, 1 | 8, 40]);
        assert_eq!(found.map(|found| (found.request, found.payload_bytes)), Some((9, 40)));
        assert_eq!(found.map(|found| found.needs_reply()), Some(true));
        assert_eq!(header([9, 1, 40]).map(|found| found.needs_reply()), Some(false));
        for other in [[9, 0, 40], [9, 2, 40], [9, 1 | 4, 40], [9, 1, 1025], [9, 1, u32::MAX]] {
            assert_eq!(header(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_payload_that_is_cut_short_is_no_request() {
        let mut payload = Vec::new();
        [3_u32, 0].iter().for_each(|field| payload.extend(field.to_ne_bytes()));
        [0x1000_u64, 0x2000, 0x3000, 0]
            .iter()
            .for_each(|field| payload.extend(field.to_ne_bytes()));
        let addresses = RingAddresses { descriptors: 0x1000, used: 0x2000, available: 0x3000 };
        let expected = VhostRequest::SetRingAddresses { queue: 3, addresses };
        assert_eq!(VhostRequest::parse(9, &payload), Some(expected));
        for bytes in 0..32 {
            assert_eq!(VhostRequest::parse(9, &payload[..bytes]), None);
        }
        let table = |count: u32| [count.to_ne_bytes(), [0; 4]].concat();
        assert_eq!(VhostRequest::parse(5, &table(0)), Some(VhostRequest::SetMemoryTable(vec![])));
        assert_eq!(VhostRequest::parse(5, &table(1)), None);
        assert_eq!(VhostRequest::parse(5, &table(u32::MAX)), None);
    }

    #[test]
    fn a_layout_is_read_as_it_is_written() {
        let layout = InflightLayout { bytes: 77, offset: 4096, queues: 4, queue_size: 128 };
        let bytes = layout.to_bytes();
        assert_eq!(bytes.len(), 24);
        assert_eq!(VhostRequest::parse(32, &bytes), Some(VhostRequest::SetInflight(layout)));
    }
}
