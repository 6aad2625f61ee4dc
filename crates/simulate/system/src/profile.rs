//! Profiles measured ahead of a run: a tenant's head, replayed alone.
//!
//! They give the first points of a performance table (Patrick et al., section III-B, profiling
//! step), what a tenant needs alone, and curves from history (Wang et al., section III). A profile
//! reads the head of the workload before the run does: results that use one say so. Alone, what is
//! decided depends on the order of requests only, so that no devices are needed; a policy that
//! weighs service times is told that all devices are equally fast.

use crate::futures::FutureKind;
use crate::machines::read_ahead::ReadStreams;
use crate::machines::{MachineSettings, Requests};
use crate::recording::{AHEAD, CUT_OFF, LAST, Recording, TRIM, TenantTotals, WRITE};
use crate::replay::POLL;
use cachewright_cache::{BlockAccess, Engine, Quotas, WriteMode};
use cachewright_curve::{Curve, CurveSet};
use cachewright_policy::{FutureColumn, Policy, RequestInfo};
use cachewright_types::{
    BlockId, BlockKey, Op, Request, TenantId, VolumeKeys, block_numbers, whole_block_numbers,
};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

/// A tenant on a machine that may read ahead.
#[derive(Clone, Copy, Debug)]
pub struct Machined<'a> {
    /// The workload as block accesses.
    pub recording: &'a Recording,
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
pub struct FirstAccesses {
    recording: Recording,
    /// The future of each access, where it is wanted.
    futures: FutureColumn,
    /// What the policy hears of, and before which access; empty unless wanted.
    requests_seen: Vec<(usize, RequestInfo)>,
}

/// What is found out ahead for a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicyInputs {
    /// What goes with each access, as far as the head reaches.
    pub future: FutureKind,
    /// Whole requests, which the recording must hold.
    pub requests: bool,
}

impl FirstAccesses {
    /// The first `share` (0 to 1) of a tenant's block accesses, with the policy's `inputs`.
    pub fn recorded(
        recording: &Recording,
        tenant: TenantId,
        share: f64,
        inputs: PolicyInputs,
    ) -> FirstAccesses {
        let mut head = head_of(recording, tenant, share, inputs.requests);
        head.look_ahead(inputs.future);
        head
    }

    /// The same with what the machine reads ahead; nothing if it does not read ahead.
    pub fn on_machine(
        machine: &Machined<'_>,
        tenant: TenantId,
        totals: &TenantTotals,
        share: f64,
        inputs: PolicyInputs,
    ) -> Option<FirstAccesses> {
        let mut head = head_on(machine, tenant, totals, share, inputs.requests)?;
        head.look_ahead(inputs.future);
        Some(head)
    }

    fn look_ahead(&mut self, future: FutureKind) {
        self.futures = future.column(&self.recording, &[]).unwrap_or_default();
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

    /// Distinct blocks among its accesses.
    pub fn used_blocks(&self) -> u32 {
        let mut used = vec![false; self.recording.distinct as usize];
        let all = self.recording.ids.iter().zip(&self.recording.flags);
        for (id, _) in all.filter(|(_, flags)| *flags & (TRIM | AHEAD) == 0) {
            used[*id as usize] = true;
        }
        used.into_iter().filter(|used| *used).count() as u32
    }

    /// Its misses by cache size as `set` measures them, which measures one stream.
    pub fn curve(&self, mut set: CurveSet) -> Option<Curve> {
        let only = TenantId(0);
        for (position, flags) in self.recording.flags.iter().enumerate() {
            let block = self.recording.block_at(position, true);
            if flags & TRIM != 0 {
                set.remove(only, block);
            } else if flags & AHEAD != 0 {
                set.bring_in(only, block);
            } else {
                set.access(only, block, flags & WRITE != 0);
            }
        }
        set.end_window().pop().map(|curves| curves.all)
    }

    /// The hit ratio under a policy of `capacity_blocks`; 0 when the head is empty. `progress`
    /// takes the accesses done; nothing is returned when it says to stop.
    pub fn hit_ratio<P: Policy>(
        &self,
        capacity_blocks: u32,
        mode: WriteMode,
        mut make: impl FnMut(u32) -> P,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Option<f64> {
        let quotas = Quotas::Shared(capacity_blocks);
        let (tenant, head) = (TenantId(0), &self.recording);
        let mut engine = Engine::new(1, &quotas, mode, |_, capacity| make(capacity));
        engine.reserve_ids(0, head.distinct as usize);
        let mut requests_seen = self.requests_seen.iter().peekable();
        for (index, (id, flags)) in head.ids.iter().zip(&head.flags).enumerate() {
            if index.is_multiple_of(POLL) && !progress(index as u64) {
                return None;
            }
            let block = BlockId(*id);
            if let Some((_, request)) = requests_seen.next_if(|seen| seen.0 == index) {
                engine.on_request(tenant, request);
            }
            if flags & TRIM != 0 {
                engine.discard(tenant, block);
            } else if flags & AHEAD != 0 {
                if !engine.policy(0).contains(block) {
                    engine.bring_in(tenant, block);
                }
            } else {
                let (write, future) = (flags & WRITE != 0, self.futures.as_slice().at(index));
                let access = BlockAccess { block, tenant, write, future };
                match flags & CUT_OFF != 0 {
                    true => engine.pass(access),
                    false => engine.access(access),
                };
            }
        }
        Some(engine.counts(tenant).hit_ratio())
    }
}

fn head_of(recording: &Recording, tenant: TenantId, share: f64, requests: bool) -> FirstAccesses {
    let Some(totals) = recording.totals.get(tenant.index()) else {
        return FirstAccesses::default();
    };
    let max_accesses = (totals.block_accesses as f64 * share).ceil() as u64;
    let ids = recording.ids_for(false);
    let (mut accesses, mut head, mut requests_seen) = (0, Recording::default(), Vec::new());
    let (mut head_ids, mut head_flags) = (Vec::new(), Vec::new());
    for index in (0..recording.len()).filter(|&index| recording.tenant_at(index) == tenant) {
        if accesses == max_accesses {
            break;
        }
        let request = if requests { recording.arrivals.request_from(index) } else { 0 };
        if requests && recording.start_of(request) == index {
            let info = recording.times_ns().get(request);
            let info = info.and_then(|time_ns| recording.request_info(request, *time_ns));
            requests_seen.extend(info.map(|info| (head_ids.len(), info)));
        }
        accesses += u64::from(recording.flags[index] & TRIM == 0);
        if let Some(key) = recording.keys.get(recording.ids[index] as usize) {
            // Ids of a tenant are numbered in the order of their first use.
            if ids[index] as usize >= head.keys.len() {
                head.keys.resize(ids[index] as usize + 1, BlockKey::default());
            }
            head.keys[ids[index] as usize] = *key;
        }
        head_ids.push(ids[index]);
        head_flags.push(recording.flags[index]);
    }
    if let Some(flags) = head_flags.last_mut() {
        *flags |= LAST;
    }
    (head.ids, head.flags) = (head_ids.into(), head_flags.into());
    head.plain = recording.plain;
    head.distinct = totals.distinct_blocks;
    head.totals = vec![TenantTotals { block_accesses: accesses, ..*totals }];
    FirstAccesses { recording: head, futures: FutureColumn::None, requests_seen }
}

fn head_on(
    machine: &Machined<'_>,
    tenant: TenantId,
    totals: &TenantTotals,
    share: f64,
    requests: bool,
) -> Option<FirstAccesses> {
    let mut streams = ReadStreams::for_machine(machine.settings, machine.block_shift)?;
    let shift = machine.block_shift;
    let max_accesses = (totals.block_accesses as f64 * share).ceil() as u64;
    let extent = machine.extents.get(tenant.index())?;
    let mut names = BlockNames::new(tenant, extent.start >> shift);
    let (mut accesses, mut head) = (0, HeadColumns::default());
    let mut requests_seen = Vec::new();
    for index in
        (0..machine.requests.len()).filter(|&index| machine.requests.tenant(index) == tenant)
    {
        if accesses >= max_accesses {
            break;
        }
        let request = machine.requests.get(index);
        let touched = block_numbers(request.offset.0, request.length.0, shift);
        if requests && matches!(request.op, Op::Read | Op::Write) {
            requests_seen.push((head.ids.len(), RequestInfo::from(&request)));
        }
        let cut_off = machine.requests.cut_off(index, machine.recording);
        match request.op {
            Op::Read | Op::Write => {
                let flags = if request.op == Op::Write { WRITE } else { 0 };
                let flags = if cut_off { flags | CUT_OFF } else { flags };
                accesses += touched.end - touched.start;
                let blocks = touched.clone().map(|number| names.id_of(number));
                push(&mut head, blocks, flags);
            }
            Op::Trim => {
                push(&mut head, names.trimmed(&request, shift).into_iter(), TRIM);
            }
            Op::Flush => {}
        }
        if request.op == Op::Read && !cut_off {
            let ahead = streams.read(touched.start, touched.end);
            let ahead = ahead.start..ahead.end.min(extent.end >> shift);
            push(&mut head, ahead.map(|number| names.id_of(number)), AHEAD);
        }
    }
    let keys = names.into_keys();
    let recording = Recording {
        ids: head.ids.into(),
        flags: head.flags.into(),
        distinct: keys.len() as u32,
        begin_ns: 0,
        keys,
        totals: vec![TenantTotals { block_accesses: accesses, ..*totals }],
        ..Recording::default()
    };
    Some(FirstAccesses { recording, futures: FutureColumn::None, requests_seen })
}

/// The accesses of a head while they are gathered.
#[derive(Default)]
struct HeadColumns {
    ids: Vec<u32>,
    flags: Vec<u8>,
}

/// Adds the blocks of one request, or those read ahead after it.
fn push(head: &mut HeadColumns, blocks: impl Iterator<Item = BlockId>, flags: u8) {
    let before = head.ids.len();
    head.ids.extend(blocks.map(|block| block.0));
    head.flags.resize(head.ids.len(), flags);
    if let Some(last) = head.flags[before..].last_mut() {
        *last |= LAST;
    }
}

/// Ids of one tenant's blocks in the order of their first use.
#[derive(Debug)]
struct BlockNames {
    ids: HashMap<u64, u32, FixedState>,
    /// The key of each id.
    keys: Vec<BlockKey>,
    volume: VolumeKeys,
    /// The number of the tenant's first block.
    first: u64,
}

impl BlockNames {
    /// No blocks yet; those of the tenant begin at `first`.
    fn new(tenant: TenantId, first: u64) -> BlockNames {
        let volume = VolumeKeys::new(tenant, 0);
        BlockNames { ids: HashMap::default(), keys: Vec::new(), volume, first }
    }

    /// The id of a block, a new one at its first use.
    fn id_of(&mut self, number: u64) -> BlockId {
        let next = self.keys.len() as u32;
        let id = *self.ids.entry(number).or_insert(next);
        if id == next {
            self.keys.push(self.volume.key(number.saturating_sub(self.first)));
        }
        BlockId(id)
    }

    /// The named blocks that lie wholly inside a trimmed range, in the order of their ids. Costs
    /// the smaller of the range's blocks and the named ones.
    fn trimmed(&self, request: &Request, shift: u32) -> Vec<BlockId> {
        let range = whole_block_numbers(request.offset.0, request.length.0, shift);
        let mut ids: Vec<BlockId> = if range.end - range.start <= self.ids.len() as u64 {
            range.filter_map(|number| self.ids.get(&number)).map(|id| BlockId(*id)).collect()
        } else {
            let within = self.ids.iter().filter(|(number, _)| range.contains(number));
            within.map(|(_, id)| BlockId(*id)).collect()
        };
        ids.sort_unstable();
        ids
    }

    /// The key of each id.
    fn into_keys(self) -> Vec<BlockKey> {
        self.keys
    }
}
