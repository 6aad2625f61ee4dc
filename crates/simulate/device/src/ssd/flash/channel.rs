//! A channel, which units share for commands and data.
//!
//! For: until when it is taken, data that waits for it, and whose turn it is. Must never know: what
//! units do. Units: nanoseconds.

use super::ids::{ChannelId, WorkId};
use super::work::{TransactionTable, WorkQueue};

/// Queues of data that waits for a channel.
const DATA_QUEUES: usize = 4;

/// Whose data waits for a channel; in this order it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataClass {
    /// Pages that are programmed in their plane, which need the command only.
    CopyBack,
    /// The mapping table.
    Map,
    /// The host.
    Host,
    /// Cleaning.
    Clean,
}

/// A channel.
#[derive(Clone, Debug)]
pub struct FlashChannel {
    busy_until: u64,
    /// Whether an event at that time will look at what waits (the end of a crossing does anyway).
    waking: bool,
    /// Data of reads that waits, by [`DataClass`].
    data: [WorkQueue; DATA_QUEUES],
    /// Reads in all of them.
    waiting: u32,
    /// The read whose data crosses, if one does.
    crossing: WorkId,
    /// Units that may have a command to take, a bit each.
    ready: u64,
    /// The bit whose turn is next.
    turn: u32,
    units: u32,
    /// Time it was taken, to the end of what takes it now.
    busy_ns: u64,
    /// Whether it is in the list of those to look at.
    touched: bool,
}

impl FlashChannel {
    /// A free channel of so many units.
    pub fn new(units: u32) -> FlashChannel {
        FlashChannel {
            busy_until: 0,
            waking: false,
            data: [WorkQueue::default(); DATA_QUEUES],
            waiting: 0,
            crossing: WorkId::NONE,
            ready: 0,
            turn: 0,
            units,
            busy_ns: 0,
            touched: false,
        }
    }

    /// Takes it for some time.
    #[inline]
    pub fn take(&mut self, now: u64, time_ns: u64) {
        debug_assert!(self.busy_until <= now);
        self.busy_until = now + time_ns;
        self.busy_ns += time_ns;
    }

    /// Whether data crosses it, whose end will look at what waits.
    #[inline]
    pub fn is_crossed(&self) -> bool {
        self.crossing != WorkId::NONE
    }

    /// Whether it carries a command or data.
    #[inline]
    pub fn is_busy(&self, now: u64) -> bool {
        self.busy_until > now
    }

    /// When to look at what waits for it, unless that is known already or nothing waits.
    #[inline]
    pub fn wake_time(&mut self) -> Option<u64> {
        let waits = self.ready != 0 || self.waiting > 0;
        if !waits || self.waking {
            return None;
        }
        self.waking = true;
        Some(self.busy_until)
    }

    /// The time to look at what waits has come.
    #[inline]
    pub fn wake(&mut self) {
        self.waking = false;
    }

    /// Adds data that waits for it.
    #[inline]
    pub fn push_data(&mut self, table: &mut TransactionTable, class: DataClass, id: WorkId) {
        self.waiting += 1;
        self.data[class as usize].push(table, id);
    }

    /// Takes the data that goes next.
    #[inline]
    pub fn pop_data(&mut self, table: &mut TransactionTable) -> Option<WorkId> {
        if self.waiting == 0 {
            return None;
        }
        let next = self.data.iter_mut().find(|queue| !queue.is_empty())?.pop(table)?;
        self.waiting -= 1;
        Some(next)
    }

    /// Whether data waits for it.
    #[inline]
    pub fn has_data(&self) -> bool {
        self.waiting > 0
    }

    /// Data begins to cross.
    #[inline]
    pub fn begin_crossing(&mut self, id: WorkId, now: u64, time_ns: u64) {
        self.take(now, time_ns);
        self.crossing = id;
    }

    /// Data has crossed.
    #[inline]
    pub fn end_crossing(&mut self) -> WorkId {
        std::mem::replace(&mut self.crossing, WorkId::NONE)
    }

    /// A unit may have a command to take.
    #[inline]
    pub fn make_ready(&mut self, bit: u32) {
        self.ready |= 1 << bit;
    }

    /// Whether some unit may have a command to take.
    #[inline]
    pub fn has_ready(&self) -> bool {
        self.ready != 0
    }

    /// Whether a unit may have a command to take.
    pub fn is_ready(&self, bit: u32) -> bool {
        self.ready & 1 << bit != 0
    }

    /// Takes the ready unit whose turn comes first.
    #[inline]
    pub fn take_ready(&mut self) -> Option<u32> {
        if self.ready == 0 {
            return None;
        }
        let later = self.ready >> self.turn << self.turn;
        let bits = if later == 0 { self.ready } else { later };
        let bit = bits.trailing_zeros();
        self.ready &= !(1 << bit);
        Some(bit)
    }

    /// The next unit has its turn.
    #[inline]
    pub fn turn_after(&mut self, bit: u32) {
        let last = bit + 1 == self.units;
        self.turn = if last { 0 } else { bit + 1 };
    }

    /// Time it was taken up to now.
    pub fn busy_ns(&self, now: u64) -> u64 {
        self.busy_ns - self.busy_until.saturating_sub(now)
    }

    /// Its time fits, what waits is counted, and something will look at it.
    pub fn audit(&self, now: u64) -> Result<(), String> {
        let busy = self.busy_ns(now);
        if busy > now {
            return Err(format!("it was taken {busy} of {now} ns"));
        }
        let waiting: u32 = self.data.iter().map(WorkQueue::len).sum();
        if waiting != self.waiting {
            return Err(format!("{waiting} reads wait, {} counted", self.waiting));
        }
        let waits = self.ready != 0 || waiting > 0;
        if waits && !self.waking && !self.is_crossed() {
            return Err("work waits for it and nothing will wake it".to_owned());
        }
        Ok(())
    }
}

/// All channels, and those to look at before time goes on.
#[derive(Clone, Debug)]
pub struct FlashChannels {
    channels: Vec<FlashChannel>,
    touched: Vec<ChannelId>,
}

impl FlashChannels {
    /// So many free channels of so many units each.
    pub fn new(count: u32, units: u32) -> FlashChannels {
        FlashChannels {
            channels: vec![FlashChannel::new(units); count as usize],
            touched: Vec::new(),
        }
    }

    /// A channel is to be looked at before time goes on.
    #[inline]
    pub fn touch(&mut self, id: ChannelId) {
        let channel = &mut self.channels[id.index()];
        if !channel.touched {
            channel.touched = true;
            self.touched.push(id);
        }
    }

    /// The channel to look at after so many others; none is left after the last.
    #[inline]
    pub fn next_touched(&mut self, after: usize) -> Option<ChannelId> {
        let id = *self.touched.get(after)?;
        self.channels[id.index()].touched = false;
        Some(id)
    }

    /// All have been looked at.
    #[inline]
    pub fn settle(&mut self) {
        self.touched.clear();
    }

    /// Whether there is one to look at.
    #[inline]
    pub fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// All channels.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &FlashChannel> {
        self.channels.iter()
    }
}

impl std::ops::Index<ChannelId> for FlashChannels {
    type Output = FlashChannel;

    #[inline(always)]
    fn index(&self, id: ChannelId) -> &FlashChannel {
        &self.channels[id.index()]
    }
}

impl std::ops::IndexMut<ChannelId> for FlashChannels {
    #[inline(always)]
    fn index_mut(&mut self, id: ChannelId) -> &mut FlashChannel {
        &mut self.channels[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round() {
        let mut channel = FlashChannel::new(4);
        [0, 1, 3].into_iter().for_each(|bit| channel.make_ready(bit));
        channel.turn_after(1);
        assert_eq!(channel.take_ready(), Some(3));
        channel.turn_after(3);
        assert_eq!(channel.take_ready(), Some(0));
        channel.turn_after(2);
        assert_eq!((channel.take_ready(), channel.take_ready()), (Some(1), None));
    }
}
