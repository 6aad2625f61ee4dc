//! The link between host and drive: how long a message takes, and whose turn it is.
//!
//! Units: bytes, nanoseconds. Sources: PCIe 3.0 packets as MQSim counts them (Tavakkol et al.,
//! FAST'18). A payload is cut into packets, each with the overhead of its header and of the layers
//! below. A read request carries an address and no payload.

use std::collections::VecDeque;

/// Bytes of address in a read request, beyond the overhead of a packet.
const ADDRESS_BYTES: u64 = 4;

/// Times of messages over PCIe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pcie {
    /// Lanes, each of which carries every lanes-th byte.
    pub lanes: u64,
    /// Bytes per nanosecond (GB/s) of one lane, after encoding.
    pub lane_rate: f64,
    /// Most payload of a packet.
    pub packet_payload_bytes: u64,
    /// Header, framing and link-layer bytes of a packet.
    pub packet_overhead_bytes: u64,
}

impl Pcie {
    /// Time of a message that carries `bytes`.
    pub fn payload_ns(&self, bytes: u64) -> u64 {
        let whole = bytes / self.packet_payload_bytes;
        let rest = bytes % self.packet_payload_bytes;
        let mut total = whole * (self.packet_payload_bytes + self.packet_overhead_bytes);
        if rest > 0 {
            total += rest + self.packet_overhead_bytes;
        }
        self.wire_ns(total)
    }

    /// Time of a request for data.
    pub fn request_ns(&self) -> u64 {
        self.wire_ns(self.packet_overhead_bytes + ADDRESS_BYTES)
    }

    /// Whole nanoseconds, rounded down after the bytes of a lane were rounded up.
    fn wire_ns(&self, bytes: u64) -> u64 {
        (bytes.div_ceil(self.lanes) as f64 / self.lane_rate) as u64
    }
}

/// Times of messages over SATA: frames (FIS) of at most 8 KiB of data, each with its overhead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sata {
    /// Bytes per nanosecond (GB/s), after encoding.
    pub rate: f64,
    /// Most data of a frame.
    pub frame_payload_bytes: u64,
    /// Start, header, check and end of a frame, and the handshake around it.
    pub frame_overhead_bytes: u64,
}

impl Sata {
    /// Time of data frames that carry `bytes`.
    pub fn payload_ns(&self, bytes: u64) -> u64 {
        let frames = bytes.div_ceil(self.frame_payload_bytes);
        self.wire_ns(bytes + frames * self.frame_overhead_bytes)
    }

    /// Time of a frame of `bytes` that carries no data.
    pub fn frame_ns(&self, bytes: u64) -> u64 {
        self.wire_ns(bytes + self.frame_overhead_bytes)
    }

    fn wire_ns(&self, bytes: u64) -> u64 {
        (bytes as f64 / self.rate) as u64
    }
}

/// The time of what never happens.
pub const NEVER_NS: u64 = u64::MAX;

/// One wire: messages arrive in the order they were sent, one after the other.
#[derive(Clone, Debug)]
pub struct Wire<M> {
    under_way: VecDeque<(u64, M)>,
    /// When the first of them arrives.
    due_ns: u64,
    /// When the last message sent so far will have arrived.
    free_at_ns: u64,
    busy_ns: u64,
}

impl<M> Default for Wire<M> {
    fn default() -> Self {
        Wire { under_way: VecDeque::new(), due_ns: NEVER_NS, free_at_ns: 0, busy_ns: 0 }
    }
}

impl<M> Wire<M> {
    /// Sends a message of so much time; it arrives when those before it have and that time is over.
    #[inline]
    pub fn send(&mut self, now_ns: u64, time_ns: u64, message: M) {
        let arrival = self.occupy(now_ns, time_ns);
        self.due_ns = self.due_ns.min(arrival);
        self.under_way.push_back((arrival, message));
    }

    /// Sends a message whose arrival starts nothing; returns when it arrives.
    #[inline]
    pub fn occupy(&mut self, now_ns: u64, time_ns: u64) -> u64 {
        self.free_at_ns = self.after(now_ns, time_ns);
        self.busy_ns += time_ns;
        self.free_at_ns
    }

    /// When a message sent at `now_ns` would arrive.
    #[inline]
    pub fn after(&self, now_ns: u64, time_ns: u64) -> u64 {
        self.free_at_ns.max(now_ns) + time_ns
    }

    /// The arrival of the message that occupied the wire last starts something after all, at
    /// `arrival_ns`; nothing else may be under way.
    pub fn put_back(&mut self, arrival_ns: u64, message: M) {
        debug_assert!(self.is_empty() && arrival_ns == self.free_at_ns);
        self.due_ns = arrival_ns;
        self.under_way.push_back((arrival_ns, message));
    }

    /// When the next message arrives; [`NEVER_NS`] when none is under way.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// The next message that has arrived by `now_ns`.
    #[inline]
    pub fn receive(&mut self, now_ns: u64) -> Option<M> {
        if self.due_ns > now_ns {
            return None;
        }
        let (_, message) = self.under_way.pop_front()?;
        self.due_ns = self.under_way.front().map_or(NEVER_NS, |(arrival, _)| *arrival);
        Some(message)
    }

    /// Messages under way whose arrival starts something.
    pub fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Whether no message is waited for.
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Time in which the wire carried something, of all messages sent so far.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// Messages arrive in order and not after the wire is free.
    pub fn audit(&self) -> Result<(), String> {
        let mut last = 0;
        for (arrival, _) in &self.under_way {
            if *arrival < last || *arrival > self.free_at_ns {
                return Err(format!("a message arrives at {arrival} ns, after one at {last} ns"));
            }
            last = *arrival;
        }
        let first = self.under_way.front().map_or(NEVER_NS, |(arrival, _)| *arrival);
        if first != self.due_ns {
            return Err(format!("a message arrives at {first} ns, not at {} ns", self.due_ns));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEN3_X4: Pcie =
        Pcie { lanes: 4, lane_rate: 1.0, packet_payload_bytes: 128, packet_overhead_bytes: 28 };

    /// The times of the reference page on SSD simulation.
    #[test]
    fn pcie_times_are_the_closed_forms() {
        let times = [2, 72, 16, 4096, 8192, 128 << 10].map(|bytes| GEN3_X4.payload_ns(bytes));
        assert_eq!(times, [8, 25, 11, 1_248, 2_496, 39_936]);
        assert_eq!(GEN3_X4.request_ns(), 8);
        assert_eq!(GEN3_X4.payload_ns(0), 0);
    }

    /// 4096 B in one frame of 32 B overhead at 0.6 B/ns: 4128 / 0.6 = 6880.
    #[test]
    fn sata_times_follow_from_frames() {
        let sata = Sata { rate: 0.6, frame_payload_bytes: 8192, frame_overhead_bytes: 32 };
        assert_eq!(sata.payload_ns(4096), 6_880);
        assert_eq!(sata.payload_ns(16 << 10), ((16_384.0 + 64.0) / 0.6) as u64);
        assert_eq!(sata.frame_ns(20), (52.0 / 0.6) as u64);
    }

    #[test]
    fn messages_wait_for_those_before_them() {
        let mut wire = Wire::default();
        wire.send(0, 10, 'a');
        assert_eq!(wire.occupy(2, 5), 15);
        wire.send(3, 7, 'b');
        assert_eq!(wire.due_ns(), 10);
        assert_eq!(wire.receive(9), None);
        assert_eq!(wire.receive(10), Some('a'));
        assert_eq!(wire.receive(21), None);
        assert_eq!(wire.receive(22), Some('b'));
        wire.send(100, 1, 'c');
        assert_eq!((wire.due_ns(), wire.len(), wire.busy_ns()), (101, 1, 23));
        assert_eq!(wire.audit(), Ok(()));
    }
}
