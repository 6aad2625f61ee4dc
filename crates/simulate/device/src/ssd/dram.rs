//! The drive's memory: how long an access takes, and how accesses wait for each other.
//!
//! Units: bytes, nanoseconds. Source: the DDR timing of MQSim (Tavakkol et al., FAST'18). A row is
//! opened (tRCD, tCL), then two bursts move per cycle of the data rate: 100 MT/s with bursts of 1 B
//! move 200 MB/s. Accesses of one queue are served in order, queues in turn, on each channel one at
//! a time. Difference: an access beyond one row opens each row it touches and moves all its bytes.
//! MQSim halves the first and divides instead of multiplying.

use std::collections::VecDeque;

/// Timing of one channel of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DramTiming {
    /// Cycles per second in millions.
    pub rate_mts: f64,
    /// Bytes of one burst; two move per cycle.
    pub burst_bytes: u64,
    /// Bytes of one row.
    pub row_bytes: u64,
    /// Opening a row.
    pub trcd_ns: u64,
    /// From the command to the first byte.
    pub tcl_ns: u64,
    /// Closing a row before the next.
    pub trp_ns: u64,
}

impl DramTiming {
    /// Time of an access of `bytes`.
    pub fn access_ns(&self, bytes: u64) -> u64 {
        let rows = bytes.div_ceil(self.row_bytes).max(1);
        let moving = (bytes / self.burst_bytes / 2) as f64 * (1_000.0 / self.rate_mts);
        rows * (self.trcd_ns + self.tcl_ns) + (rows - 1) * self.trp_ns + moving as u64
    }

    /// Bytes per second that one channel moves at most.
    pub fn bytes_per_s(&self) -> f64 {
        2.0 * self.burst_bytes as f64 * self.rate_mts * 1e6
    }
}

/// Memory with accesses waiting and under way; `M` comes back when its access is done.
#[derive(Clone, Debug)]
pub struct Dram<M> {
    timing: DramTiming,
    /// Accesses that wait, by queue.
    waiting: Vec<VecDeque<(u64, M)>>,
    /// The queue served last.
    turn: usize,
    /// What each channel does and until when.
    channels: Vec<Option<(u64, M)>>,
    queued: usize,
    busy_ns: u64,
}

impl<M: Copy> Dram<M> {
    /// Idle memory of so many channels that serves so many queues in turn; both at least 1.
    pub fn new(timing: DramTiming, channels: usize, queues: usize) -> Dram<M> {
        Dram {
            timing,
            waiting: (0..queues.max(1)).map(|_| VecDeque::new()).collect(),
            turn: 0,
            channels: vec![None; channels.max(1)],
            queued: 0,
            busy_ns: 0,
        }
    }

    /// The timing of a channel.
    pub fn timing(&self) -> &DramTiming {
        &self.timing
    }

    /// Asks for an access of `bytes`, in the order of `queue` (taken modulo their number).
    #[inline]
    pub fn submit(&mut self, now_ns: u64, queue: usize, bytes: u64, message: M) {
        let time_ns = self.timing.access_ns(bytes);
        let queue = if self.waiting.len() == 1 { 0 } else { queue % self.waiting.len() };
        match self.channels.iter_mut().find(|channel| channel.is_none()) {
            Some(channel) => {
                *channel = Some((now_ns + time_ns, message));
                self.turn = queue;
                self.busy_ns += time_ns;
            }
            None => {
                self.waiting[queue].push_back((time_ns, message));
                self.queued += 1;
            }
        }
    }

    /// When the next access is done.
    #[inline]
    pub fn next_due(&self) -> Option<u64> {
        self.channels.iter().flatten().map(|(due, _)| *due).min()
    }

    /// The next access done by `now_ns`, in the order of time; its channel takes up the next.
    #[inline]
    pub fn receive(&mut self, now_ns: u64) -> Option<M> {
        let due = self.next_due().filter(|due| *due <= now_ns)?;
        let done = |channel: &Option<(u64, M)>| channel.is_some_and(|(done_ns, _)| done_ns == due);
        let index = self.channels.iter().position(done)?;
        let (_, message) = self.channels[index].take()?;
        if self.queued > 0 {
            self.start_next(index, due);
        }
        Some(message)
    }

    fn start_next(&mut self, channel: usize, now_ns: u64) {
        for _ in 0..self.waiting.len() {
            self.turn = if self.turn + 1 >= self.waiting.len() { 0 } else { self.turn + 1 };
            if let Some((time_ns, message)) = self.waiting[self.turn].pop_front() {
                self.channels[channel] = Some((now_ns + time_ns, message));
                self.queued -= 1;
                self.busy_ns += time_ns;
                return;
            }
        }
    }

    /// Accesses waiting and under way.
    pub fn len(&self) -> usize {
        self.queued + self.channels.iter().flatten().count()
    }

    /// Whether the memory is idle.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Time in which channels moved data, summed over them.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// Nothing waits while a channel is free, and what waits is counted.
    pub fn audit(&self) -> Result<(), String> {
        let waiting: usize = self.waiting.iter().map(VecDeque::len).sum();
        if waiting != self.queued {
            return Err(format!("{waiting} memory accesses wait, {} are counted", self.queued));
        }
        if waiting > 0 && self.channels.iter().any(Option::is_none) {
            return Err(format!("{waiting} memory accesses wait beside a free channel"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: DramTiming = DramTiming {
        rate_mts: 100.0,
        burst_bytes: 1,
        row_bytes: 8192,
        trcd_ns: 13,
        tcl_ns: 13,
        trp_ns: 13,
    };

    /// 26 + 2048 * 10 and 26 + 4096 * 10; at 1600 MT/s of 8 B, 26 + 256 * 0.625. Two rows cost
    /// 2 * 26 + 13 + 8192 * 10.
    #[test]
    fn accesses_take_the_closed_form() {
        assert_eq!(SHIPPED.access_ns(4096), 26 + 20_480);
        assert_eq!(SHIPPED.access_ns(8192), 26 + 40_960);
        assert_eq!(SHIPPED.access_ns(16 << 10), 65 + 81_920);
        let fast = DramTiming { rate_mts: 1600.0, burst_bytes: 8, ..SHIPPED };
        assert_eq!(fast.access_ns(4096), 26 + 160);
        assert_eq!((SHIPPED.bytes_per_s(), fast.bytes_per_s()), (200e6, 25.6e9));
    }

    #[test]
    fn one_channel_serves_a_queue_in_order_and_queues_in_turn() {
        let mut dram = Dram::new(SHIPPED, 1, 2);
        for (queue, message) in [(0, 'a'), (0, 'b'), (0, 'c'), (1, 'd')] {
            dram.submit(100, queue, 4096, message);
        }
        let mut order = Vec::new();
        while let Some(due) = dram.next_due() {
            assert_eq!(dram.audit(), Ok(()));
            order.push((dram.receive(due).unwrap(), due));
        }
        let at = |count: u64| 100 + count * 20_506;
        assert_eq!(order, [('a', at(1)), ('d', at(2)), ('b', at(3)), ('c', at(4))]);
        assert_eq!(dram.busy_ns(), 4 * 20_506);
    }

    #[test]
    fn channels_work_side_by_side() {
        let mut dram = Dram::new(SHIPPED, 2, 1);
        for message in 0..3 {
            dram.submit(0, 0, 4096, message);
        }
        assert_eq!(dram.receive(20_506), Some(0));
        assert_eq!(dram.receive(20_506), Some(1));
        assert_eq!(dram.receive(20_506), None);
        assert_eq!(dram.receive(41_012), Some(2));
        assert!(dram.is_empty());
    }
}
