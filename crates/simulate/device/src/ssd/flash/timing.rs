//! How long commands take on the channel and in the die.
//!
//! For: one command of one or more planes. Must never know: queues, turns. Units: nanoseconds,
//! bytes.

use super::bus::Bus;
use super::ids::WorkId;
use super::params::Cell;
use super::work::{TransactionTable, WorkQueue};

/// Times on the bus and in the cells.
#[derive(Clone, Debug)]
pub struct FlashTiming {
    /// The channel's times.
    pub bus: Bus,
    /// The dies' times.
    pub cell: Cell,
}

/// A program command.
#[derive(Clone, Copy, Debug)]
pub struct ProgramCommand {
    /// Nanoseconds on the channel, and then in the die.
    pub times: (u64, u64),
    /// Bytes that cross the channel.
    pub bytes: u64,
    /// Whether all of it is cleaning.
    pub cleans: bool,
}

impl FlashTiming {
    /// A read command: nanoseconds on the channel and of sensing, and whether all of it is
    /// cleaning.
    #[inline]
    pub fn read(&self, table: &TransactionTable, batch: &WorkQueue) -> (u64, u64, bool) {
        let (mut id, mut sense, mut cleans) = (batch.head(), 0, true);
        while id != WorkId::NONE {
            let work = &table[id];
            sense = sense.max(self.cell.read_ns[self.cell.level(work.transfer.source.page)]);
            cleans &= work.cleans();
            id = work.next;
        }
        (self.bus.read_ns(batch.len()), sense + self.bus.ready_ns, cleans)
    }

    /// A program command.
    pub fn program(&self, table: &TransactionTable, batch: &WorkQueue) -> ProgramCommand {
        let mut crossing = self.bus.program_ns(batch.len());
        let (mut time, mut bytes, mut cleans) = (0, 0, true);
        for id in batch.iter(table) {
            let work = &table[id];
            crossing += self.bus.data_ns(work.transfer.program_bytes);
            bytes += u64::from(work.transfer.program_bytes);
            time = time.max(self.cell.program_ns[self.cell.level(work.transfer.target.page)]);
            cleans &= work.cleans();
        }
        ProgramCommand { times: (crossing, time), bytes, cleans }
    }

    /// A program of a page that was sensed in its plane: time on the channel and in the die.
    pub fn copy_back(&self, page: u32) -> (u64, u64) {
        (self.bus.program_ns(1), self.cell.program_ns[self.cell.level(page)])
    }

    /// An erase command of so many planes: time on the channel and in the die.
    pub fn erase(&self, planes: u32) -> (u64, u64) {
        (self.bus.erase_ns(planes), self.cell.erase_ns)
    }
}
