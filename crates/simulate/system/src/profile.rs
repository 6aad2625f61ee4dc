//! Profiles measured ahead of a run: a tenant's head, replayed alone.
//!
//! For: the first points of a performance table (Patrick et al., section III-B, profiling step),
//! and what a tenant needs alone. Must never know: who reads them. Units: blocks; hit ratios from 0
//! to 1. A profile reads the head of the workload before the run does: results that use one say so.
//! Alone, what is decided depends on the order of requests only, so that no devices are needed.

use crate::recording::{LAST, Recording, TRIM, TenantTotals, WRITE};
use crate::timed::emit::numbers;
use crate::timed::meter::Names;
use crate::timed::read_ahead::Streams;
use crate::timed::{MachineSettings, Requests};
use cachewright_cache::{BlockAccess, Engine, Quotas, WriteMode};
use cachewright_policy::{NEVER, Policy};
use cachewright_types::{BlockId, Op, TenantId};
use std::ops::Range;

/// The block is read ahead of its use; no access.
const AHEAD: u8 = 8;

/// A tenant on a machine that may read ahead.
#[derive(Clone, Copy, Debug)]
pub struct Machined<'a> {
    /// The workload, placed.
    pub requests: &'a Requests,
    /// Bytes of each tenant on its backing device.
    pub extents: &'a [Range<u64>],
    /// How the machine reads ahead.
    pub settings: &'a MachineSettings,
    /// log2 of the block size in bytes.
    pub block_shift: u32,
}

/// The first accesses of one tenant as a workload of its own, without times.
#[derive(Clone, Debug, Default)]
pub struct Head {
    recording: Recording,
    /// The position of each next use, or empty.
    next_use: Vec<u32>,
}

impl Head {
    /// The first `share` (0 to 1) of a tenant's block accesses; with `future` also when each block
    /// is used again, for policies that need it.
    pub fn of(recording: &Recording, tenant: TenantId, share: f64, future: bool) -> Head {
        Head::with(head_of(recording, tenant, share), future)
    }

    /// The same with what the machine reads ahead; nothing if it does not read ahead.
    pub fn on(
        machine: &Machined<'_>,
        tenant: TenantId,
        totals: &TenantTotals,
        share: f64,
        future: bool,
    ) -> Option<Head> {
        Some(Head::with(head_on(machine, tenant, totals, share)?, future))
    }

    fn with(recording: Recording, future: bool) -> Head {
        let next_use = if future { recording.next_uses().unwrap_or_default() } else { Vec::new() };
        Head { recording, next_use }
    }

    /// Accesses, trims and blocks read ahead.
    pub fn len(&self) -> usize {
        self.recording.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.recording.is_empty()
    }

    /// Distinct blocks named by it, or more.
    pub fn distinct_blocks(&self) -> u32 {
        self.recording.distinct
    }

    /// The hit ratio under a policy of `capacity_blocks`; 0 when the head is empty.
    pub fn hit_ratio<P: Policy>(
        &self,
        capacity_blocks: u32,
        mode: WriteMode,
        mut make: impl FnMut(u32) -> P,
    ) -> f64 {
        let quotas = Quotas::Shared(capacity_blocks);
        let (tenant, head) = (TenantId(0), &self.recording);
        let mut engine = Engine::new(1, &quotas, mode, |_, capacity| make(capacity));
        engine.reserve_ids(0, head.distinct as usize);
        for (at, (id, flags)) in head.ids.iter().zip(&head.flags).enumerate() {
            let block = BlockId(*id);
            if flags & TRIM != 0 {
                engine.discard(tenant, block);
            } else if flags & AHEAD != 0 {
                if !engine.policy(0).contains(block) {
                    engine.bring_in(tenant, block);
                }
            } else {
                let next_use = self.next_use.get(at).copied().unwrap_or(NEVER);
                let write = flags & WRITE != 0;
                engine.access(BlockAccess { block, tenant, write, next_use });
            }
        }
        engine.counts(tenant).hit_ratio()
    }
}

fn head_of(recording: &Recording, tenant: TenantId, share: f64) -> Recording {
    let Some(totals) = recording.totals.get(tenant.index()) else { return Recording::default() };
    let most = (totals.block_accesses as f64 * share).ceil() as u64;
    let ids = recording.ids_for(false);
    let (mut accesses, mut head) = (0, Recording::default());
    for at in (0..recording.len()).filter(|&at| recording.tenant_at(at) == tenant) {
        if accesses == most {
            break;
        }
        accesses += u64::from(recording.flags[at] & TRIM == 0);
        head.ids.push(ids[at]);
        head.flags.push(recording.flags[at]);
    }
    if let Some(flags) = head.flags.last_mut() {
        *flags |= LAST;
    }
    head.plain = recording.plain;
    head.distinct = totals.distinct_blocks;
    head.totals = vec![TenantTotals { block_accesses: accesses, ..*totals }];
    head
}

fn head_on(
    machine: &Machined<'_>,
    tenant: TenantId,
    totals: &TenantTotals,
    share: f64,
) -> Option<Recording> {
    let mut streams = Streams::of(machine.settings, machine.block_shift)?;
    let shift = machine.block_shift;
    let end = machine.extents.get(tenant.index())?.end >> shift;
    let most = (totals.block_accesses as f64 * share).ceil() as u64;
    let (mut names, mut accesses, mut head) = (Names::default(), 0, Recording::default());
    for at in (0..machine.requests.len()).filter(|&at| machine.requests.tenant(at) == tenant) {
        if accesses >= most {
            break;
        }
        let request = machine.requests.get(at);
        let touched = numbers(request.offset.0, request.length.0, shift);
        let mut push = |block: BlockId, flags: u8| {
            head.ids.push(block.0);
            head.flags.push(flags);
        };
        match request.op {
            Op::Read | Op::Write => {
                let flags = if request.op == Op::Write { WRITE } else { 0 };
                accesses += touched.end - touched.start;
                touched.clone().for_each(|number| push(names.name(tenant, number), flags));
            }
            Op::Trim => {
                names.trimmed(&request, shift).into_iter().for_each(|block| push(block, TRIM));
            }
            Op::Flush => {}
        }
        if request.op == Op::Read {
            let ahead = streams.read(touched.start, touched.end);
            (ahead.start..ahead.end.min(end))
                .for_each(|number| push(names.name(tenant, number), AHEAD));
        }
    }
    head.distinct = names.len();
    head.totals = vec![TenantTotals { block_accesses: accesses, ..*totals }];
    Some(head)
}
