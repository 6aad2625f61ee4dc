//! What signals are measured from: every access, every answer, and what was read ahead of its use.
//!
//! For: signals of the interval that ends, for partitioners. Must never know: caches, devices, who
//! reads the signals. Units: blocks, bytes, nanoseconds. What is read ahead depends on the reads
//! alone, not on what is cached; so a cache of any size sees the same further uses, and a block
//! that was read ahead shortly before it is asked for hits in every cache that holds it so long.

use crate::recording::{Recording, TRIM, parts};
use crate::signals::{Answered, BlockUse, SignalMeter, Signals};
use crate::timed::Requests;
use crate::timed::block_numbers::block_numbers;
use crate::timed::machine::Answer;
use cachewright_types::{BlockId, Op, Request, TenantId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

/// Ids of blocks by tenant and place on the backing device, in the order in which they are named.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(HashMap<(u16, u64), u32, FixedState>);

impl Names {
    /// The id of a block, a new one at its first use.
    pub fn name(&mut self, tenant: TenantId, number: u64) -> BlockId {
        let next = self.0.len() as u32;
        BlockId(*self.0.entry((tenant.0, number)).or_insert(next))
    }

    /// The known blocks that lie wholly inside a trimmed range. Costs the smaller of the range's
    /// blocks and the known ones.
    pub fn trimmed(&self, request: &Request, shift: u32) -> Vec<BlockId> {
        let tenant = request.tenant.0;
        let first = request.offset.0.div_ceil(1 << shift);
        let range = first..request.offset.0.saturating_add(request.length.0) >> shift;
        let mut ids: Vec<BlockId> = if range.end.saturating_sub(first) <= self.0.len() as u64 {
            let known = range.filter_map(|number| self.0.get(&(tenant, number)));
            known.map(|id| BlockId(*id)).collect()
        } else {
            let within = |key: &(u16, u64)| key.0 == tenant && range.contains(&key.1);
            self.0.iter().filter(|(key, _)| within(key)).map(|(_, id)| BlockId(*id)).collect()
        };
        ids.sort_unstable();
        ids
    }

    /// Blocks named.
    pub fn len(&self) -> u32 {
        self.0.len() as u32
    }
}

/// Signals of the interval under way.
pub(crate) struct Meter {
    signals: SignalMeter,
    /// log2 of the block size in bytes.
    block_shift: u32,
    /// Where blocks are read ahead that nobody may ever ask for; else the recording's ids do.
    names: Option<Names>,
}

impl Meter {
    /// A meter of a machine that reads ahead, or not.
    pub fn new(signals: SignalMeter, block_shift: u32, reads_ahead: bool) -> Meter {
        Meter { signals, block_shift, names: reads_ahead.then(Names::default) }
    }

    /// Counts the accesses of the request at `at`, which arrives at `now_ns`.
    pub fn request(&mut self, workload: (&Recording, &Requests), at: usize, now_ns: u64) {
        let (recording, requests) = workload;
        self.signals.reach(now_ns);
        if !self.signals.counts_accesses() {
            return;
        }
        let request = requests.get(at);
        if self.names.is_some() {
            return self.request_by_place(&request);
        }
        let (tenant, write) = (request.tenant, request.op == Op::Write);
        let ids = recording.ids_for(false);
        let mut parts = parts(request.offset.0, request.length.0, self.block_shift);
        for position in requests.accesses(at, recording, self.block_shift) {
            let block = BlockId(ids[position]);
            if recording.flags[position] & TRIM != 0 {
                self.signals.trim(tenant, block);
            } else {
                let bytes = parts.next().unwrap_or_default();
                self.signals.access(BlockUse { tenant, block, write, bytes });
            }
        }
    }

    fn request_by_place(&mut self, request: &Request) {
        let Some(names) = &mut self.names else { return };
        let tenant = request.tenant;
        match request.op {
            Op::Read | Op::Write => {
                let (offset, length) = (request.offset.0, request.length.0);
                let parts = parts(offset, length, self.block_shift);
                for (number, bytes) in block_numbers(offset, length, self.block_shift).zip(parts) {
                    let (block, write) = (names.name(tenant, number), request.op == Op::Write);
                    self.signals.access(BlockUse { tenant, block, write, bytes });
                }
            }
            Op::Trim => {
                for block in names.trimmed(request, self.block_shift) {
                    self.signals.trim(tenant, block);
                }
            }
            Op::Flush => {}
        }
    }

    /// Takes in what is read ahead: blocks by their place on the backing device.
    pub fn read_ahead(&mut self, tenant: TenantId, blocks: Range<u64>) {
        let Some(names) = &mut self.names else { return };
        for number in blocks {
            self.signals.bring_in(tenant, names.name(tenant, number));
        }
    }

    /// Counts the answer to a request that spent `behind_ns` behind memory.
    pub fn answered(&mut self, op: Op, answer: &Answer, behind_ns: u64) {
        let times = Answered {
            finish_ns: answer.finish_ns,
            response_ns: answer.finish_ns - answer.arrival_ns,
            behind_ns,
        };
        self.signals.answered(answer.tenant, op, times);
    }

    /// What was measured in the interval that ends now.
    pub fn end_interval(&mut self) -> Signals {
        self.signals.end_interval()
    }
}
