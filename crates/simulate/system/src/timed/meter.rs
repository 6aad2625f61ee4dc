//! What curves are measured from: every access, and what was read ahead of its use.
//!
//! For: curves of the interval that ends, for partitioners. Must never know: caches, devices, who
//! reads the curves. Units: blocks. What is read ahead depends on the reads alone, not on what is
//! cached; so a cache of any size sees the same further uses, and a block that was read ahead
//! shortly before it is asked for hits in every cache that holds it so long.

use super::emit::numbers;
use super::requests::Requests;
use crate::recording::{Recording, TRIM, WRITE};
use cachewright_curve::{CurveSet, Curves};
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

/// Curves of the interval under way.
pub(super) struct Meter {
    curves: CurveSet,
    /// log2 of the block size in bytes.
    block_shift: u32,
    /// Where blocks are read ahead that nobody may ever ask for; else the recording's ids do.
    names: Option<Names>,
}

impl Meter {
    /// A meter of a machine that reads ahead, or not.
    pub fn new(curves: CurveSet, block_shift: u32, reads_ahead: bool) -> Meter {
        Meter { curves, block_shift, names: reads_ahead.then(Names::default) }
    }

    /// Counts the accesses of a request, the one at `at`.
    pub fn request(&mut self, recording: &Recording, requests: &Requests, at: usize) {
        let request = requests.get(at);
        if self.names.is_some() {
            return self.request_by_place(&request);
        }
        let ids = recording.ids_for(false);
        for position in requests.accesses(at, recording, self.block_shift) {
            let (block, flags) = (BlockId(ids[position]), recording.flags[position]);
            if flags & TRIM != 0 {
                self.curves.remove(request.tenant, block);
            } else {
                self.curves.access(request.tenant, block, flags & WRITE != 0);
            }
        }
    }

    fn request_by_place(&mut self, request: &Request) {
        let Some(names) = &mut self.names else { return };
        let tenant = request.tenant;
        match request.op {
            Op::Read | Op::Write => {
                for number in numbers(request.offset.0, request.length.0, self.block_shift) {
                    let block = names.name(tenant, number);
                    self.curves.access(tenant, block, request.op == Op::Write);
                }
            }
            Op::Trim => {
                for block in names.trimmed(request, self.block_shift) {
                    self.curves.remove(tenant, block);
                }
            }
            Op::Flush => {}
        }
    }

    /// Takes in what is read ahead: blocks by their place on the backing device.
    pub fn read_ahead(&mut self, tenant: TenantId, blocks: Range<u64>) {
        let Some(names) = &mut self.names else { return };
        for number in blocks {
            self.curves.bring_in(tenant, names.name(tenant, number));
        }
    }

    /// Each tenant's curves of the interval that ends now.
    pub fn end_interval(&mut self) -> Vec<Curves> {
        self.curves.end_window()
    }
}
