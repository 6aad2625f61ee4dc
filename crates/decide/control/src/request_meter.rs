//! Signals from requests: every access, every answer, and what was read ahead of its use.
//!
//! For: signals of the interval that ends, for partitioners. Must never know: caches, devices,
//! recordings, the readers of signals. Units: blocks, bytes, nanoseconds on the decision clock.
//! What is read ahead depends on the reads alone and not on what is cached. A cache of any size
//! therefore sees the same further uses, and a block that was read ahead shortly before its use
//! hits in every cache that holds it so long.
//!
//! Blocks are known by tenant and number, whatever ids a cache gives them. Memory is that of the
//! samples, whatever the volumes' sizes; only exact curves keep every block.

use crate::signal_meter::{AnswerTimes, BlockUse, SignalMeter};
use cachewright_curve::BlockName;
use cachewright_curve::signal::Signals;
use cachewright_types::{Op, Request, TenantId, VolumeKeys};
use cachewright_types::{block_bytes, block_numbers, whole_block_numbers};
use std::ops::Range;

/// Signals of the interval under way.
pub struct RequestMeter {
    signals: SignalMeter,
    /// log2 of the block size in bytes.
    block_shift: u32,
    /// Where each tenant's blocks begin; 0 for tenants without an entry.
    first_blocks: Vec<u64>,
}

impl RequestMeter {
    /// A meter of blocks of `1 << block_shift` bytes.
    pub fn new(signals: SignalMeter, block_shift: u32) -> RequestMeter {
        RequestMeter { signals, block_shift, first_blocks: Vec::new() }
    }

    /// The same where the blocks of each tenant begin at a number of their own, as on a device that
    /// several share.
    pub fn with_first_blocks(self, first_blocks: Vec<u64>) -> RequestMeter {
        RequestMeter { first_blocks, ..self }
    }

    /// A tenant's volume, and the number at which it begins.
    fn volume(&self, tenant: TenantId) -> (VolumeKeys, u64) {
        let first = self.first_blocks.get(tenant.index()).copied().unwrap_or_default();
        (VolumeKeys::new(tenant, 0), first)
    }

    /// Counts a request that arrives at `now_ns`; its blocks are known by tenant and number.
    pub fn request(&mut self, request: &Request, now_ns: u64) {
        self.signals.reach(now_ns);
        if !self.signals.counts_accesses() {
            return;
        }
        let (tenant, write) = (request.tenant, request.op == Op::Write);
        let (offset, length) = (request.offset.0, request.length.0);
        let (volume, first) = self.volume(tenant);
        match request.op {
            Op::Read | Op::Write => {
                let covered = block_bytes(offset, length, self.block_shift);
                let numbers = block_numbers(offset, length, self.block_shift);
                for (number, bytes) in numbers.zip(covered) {
                    let block = BlockName::Keyed(volume.key(number.saturating_sub(first)));
                    self.signals.access(BlockUse { tenant, block, write, bytes });
                }
            }
            Op::Trim => {
                let whole = whole_block_numbers(offset, length, self.block_shift);
                let own = whole.start.saturating_sub(first)..whole.end.saturating_sub(first);
                if !own.is_empty() {
                    self.signals.trim_range(tenant, volume, own);
                }
            }
            Op::Flush => {}
        }
    }

    /// Counts a request that arrives at `now_ns` and whose blocks are recorded, in order; each with
    /// whether it is trimmed. One meter is fed in one of the two ways.
    pub fn recorded_request<'a>(
        &mut self,
        request: &Request,
        blocks: impl Iterator<Item = (BlockName<'a>, bool)>,
        now_ns: u64,
    ) {
        self.signals.reach(now_ns);
        if !self.signals.counts_accesses() {
            return;
        }
        let (tenant, write) = (request.tenant, request.op == Op::Write);
        let mut covered = block_bytes(request.offset.0, request.length.0, self.block_shift);
        for (block, is_trimmed) in blocks {
            if is_trimmed {
                self.signals.trim(tenant, block);
            } else {
                let bytes = covered.next().unwrap_or_default();
                self.signals.access(BlockUse { tenant, block, write, bytes });
            }
        }
    }

    /// Takes in blocks of a tenant that are read ahead, by their numbers.
    pub fn read_ahead(&mut self, tenant: TenantId, blocks: Range<u64>) {
        let (volume, first) = self.volume(tenant);
        for number in blocks {
            let block = BlockName::Keyed(volume.key(number.saturating_sub(first)));
            self.signals.bring_in(tenant, block);
        }
    }

    /// Counts the answer to a request.
    pub fn answered(&mut self, tenant: TenantId, op: Op, times: AnswerTimes) {
        self.signals.answered(tenant, op, times);
    }

    /// What was measured in the interval that ends now.
    pub fn end_interval(&mut self) -> Signals {
        self.signals.end_interval()
    }
}
