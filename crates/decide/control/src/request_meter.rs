//! Signals from requests: every access, every answer, and what was read ahead of its use.
//!
//! For: signals of the interval that ends, for partitioners. Must never know: caches, devices,
//! recordings, the readers of signals. Units: blocks, bytes, nanoseconds on the decision clock.
//! What is read ahead depends on the reads alone and not on what is cached. A cache of any size
//! therefore sees the same further uses, and a block that was read ahead shortly before its use
//! hits in every cache that holds it so long.

use crate::block_names::BlockNames;
use crate::signal_meter::{AnswerTimes, BlockUse, SignalMeter};
use cachewright_signal::Signals;
use cachewright_types::{BlockId, Op, Request, TenantId, block_bytes, block_numbers};
use std::ops::Range;

/// Signals of the interval under way.
pub struct RequestMeter {
    signals: SignalMeter,
    /// log2 of the block size in bytes.
    block_shift: u32,
    names: BlockNames,
}

impl RequestMeter {
    /// A meter of blocks of `1 << block_shift` bytes.
    pub fn new(signals: SignalMeter, block_shift: u32) -> RequestMeter {
        RequestMeter { signals, block_shift, names: BlockNames::default() }
    }

    /// Counts a request that arrives at `now_ns`; its blocks are known by tenant and number.
    pub fn request(&mut self, request: &Request, now_ns: u64) {
        self.signals.reach(now_ns);
        if !self.signals.counts_accesses() {
            return;
        }
        let (tenant, write) = (request.tenant, request.op == Op::Write);
        match request.op {
            Op::Read | Op::Write => {
                let (offset, length) = (request.offset.0, request.length.0);
                let covered = block_bytes(offset, length, self.block_shift);
                let numbers = block_numbers(offset, length, self.block_shift);
                for (number, bytes) in numbers.zip(covered) {
                    let block = self.names.id_of(tenant, number);
                    self.signals.access(BlockUse { tenant, block, write, bytes });
                }
            }
            Op::Trim => {
                for block in self.names.trimmed(request, self.block_shift) {
                    self.signals.trim(tenant, block);
                }
            }
            Op::Flush => {}
        }
    }

    /// Counts a request that arrives at `now_ns` and whose blocks have ids, in order; each with
    /// whether it is trimmed. One meter is fed in one of the two ways.
    pub fn request_by_ids(
        &mut self,
        request: &Request,
        blocks: impl Iterator<Item = (BlockId, bool)>,
        now_ns: u64,
    ) {
        self.signals.reach(now_ns);
        if !self.signals.counts_accesses() {
            return;
        }
        debug_assert!(self.names.is_empty(), "blocks have names of one kind");
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
        for number in blocks {
            self.signals.bring_in(tenant, self.names.id_of(tenant, number));
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
