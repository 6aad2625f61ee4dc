//! Several tenants' traces as one workload, ordered by time.
//!
//! For: the k-way merge. Must never know: formats, caches, what a tenant is for. Units: nanoseconds
//! since the start of the workload, bytes. Ties go to the tenant listed first, so that the result
//! depends on nothing but the inputs.
//!
//! By default each trace begins at its tenant's start. With [`MergeClock::Common`] the traces keep
//! the clock that they were recorded on, and the earliest begins.
//!
//! Every (tenant, volume) is a *space*: an address space of its own, numbered densely in order of
//! first appearance in the merged stream. Blocks are interned per space.

mod cut;
mod input;
mod selection;
mod tenant_clock;
mod tenant_input;

pub use selection::VolumeChoice;
pub use tenant_clock::TIME_SCALES;
pub use tenant_input::{EarlyEnd, TenantInput, TenantSource};

use crate::{Call, Skipped, TraceError};
use cachewright_types::Op;
use input::Input;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What time zero of the workload is in each trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MergeClock {
    /// The trace's own first record.
    #[default]
    Own,
    /// The earliest first record of all traces.
    Common,
}

/// Requests of a workload by columns; all columns have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadBatch {
    /// Nanoseconds since the start of the workload, never decreasing.
    pub time_ns: Vec<u64>,
    /// First byte of each request in its space.
    pub offset_bytes: Vec<u64>,
    /// Length of each request; 0 for a flush.
    pub length_bytes: Vec<u64>,
    /// What is asked.
    pub op: Vec<Op>,
    /// The tenant, as an index into [`MergedRequests::tenants`].
    pub tenant: Vec<u16>,
    /// Address space: index into [`MergedRequests::spaces`].
    pub space: Vec<u32>,
    /// The process of each request and its pause; 0 and none where a trace names no processes,
    /// empty where none of them does.
    pub calls: Vec<Call>,
}

impl WorkloadBatch {
    /// Requests held.
    pub fn len(&self) -> usize {
        self.op.len()
    }

    /// Whether no request is held.
    pub fn is_empty(&self) -> bool {
        self.op.is_empty()
    }

    /// Drops all requests, keeps the memory.
    pub fn clear(&mut self) {
        self.time_ns.clear();
        self.offset_bytes.clear();
        self.length_bytes.clear();
        self.op.clear();
        self.tenant.clear();
        self.space.clear();
        self.calls.clear();
    }
}

/// One volume of one tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSpace {
    /// Index into [`MergedRequests::tenants`].
    pub tenant: u16,
    /// The volume's name in the tenant's trace.
    pub volume: String,
}

/// The merged requests of several tenants.
pub struct MergedRequests {
    tenants: Vec<String>,
    inputs: Vec<Input>,
    spaces: Vec<SharedSpace>,
    /// Next request's time and tenant of each input that has one.
    heads: BinaryHeap<Reverse<(u64, u16)>>,
}

impl MergedRequests {
    /// Opens every input and reads its first requests.
    ///
    /// Errors: those of the readers; a time scale that is not a positive number; no tenant, more
    /// than 65,535 tenants, or two of one name. A volume that the trace lacks is an error once the
    /// trace has been read to its end.
    pub fn open(tenants: Vec<TenantInput>) -> Result<MergedRequests, TraceError> {
        MergedRequests::open_on(MergeClock::Own, tenants)
    }

    /// The same on `clock`. Errors: also a trace without times on a common clock.
    pub fn open_on(
        clock: MergeClock,
        tenants: Vec<TenantInput>,
    ) -> Result<MergedRequests, TraceError> {
        check_names(&tenants)?;
        let mut workload = MergedRequests {
            tenants: tenants.iter().map(|tenant| tenant.name.clone()).collect(),
            inputs: Vec::with_capacity(tenants.len()),
            spaces: Vec::new(),
            heads: BinaryHeap::with_capacity(tenants.len()),
        };
        for tenant in tenants {
            workload.inputs.push(Input::open(tenant)?);
        }
        if clock == MergeClock::Common {
            workload.share_origin()?;
        }
        for (index, input) in workload.inputs.iter_mut().enumerate() {
            if let Some(time_ns) = input.head()? {
                workload.heads.push(Reverse((time_ns, index as u16)));
            }
        }
        Ok(workload)
    }

    /// Makes the earliest first record of all traces the time zero of each.
    fn share_origin(&mut self) -> Result<(), TraceError> {
        if let Some(index) = self.inputs.iter().position(|input| !input.has_times()) {
            return Err(TraceError::Option {
                key: "clock".to_owned(),
                found: format!("common, and no times in the trace of `{}`", self.tenants[index]),
                expected: "times in every trace, or `own`".to_owned(),
            });
        }
        if let Some(earliest) = self.inputs.iter().filter_map(Input::origin_ns).min() {
            self.inputs.iter_mut().for_each(|input| input.set_origin(earliest));
        }
        Ok(())
    }

    /// Appends up to `max` requests to `batch` in order of time, returns how many; 0 means the
    /// end. Errors: those of the readers.
    pub fn read(&mut self, batch: &mut WorkloadBatch, max: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < max {
            let Some(Reverse((_, tenant))) = self.heads.pop() else { break };
            // This input gives its requests until another one's is due.
            let until = self.heads.peek().map(|Reverse(head)| *head);
            let input = &mut self.inputs[usize::from(tenant)];
            count += input.take(tenant, until, max - count, batch, &mut self.spaces)?;
            if let Some(time_ns) = input.head()? {
                self.heads.push(Reverse((time_ns, tenant)));
            }
        }
        Ok(count)
    }

    /// Names of the tenants, in the order given.
    pub fn tenants(&self) -> &[String] {
        &self.tenants
    }

    /// The address spaces met so far.
    pub fn spaces(&self) -> &[SharedSpace] {
        &self.spaces
    }

    /// Whether a tenant's trace has times; without, requests are a nanosecond apart. Nothing for an
    /// unknown tenant.
    pub fn has_times(&self, tenant: u16) -> Option<bool> {
        self.inputs.get(usize::from(tenant)).map(Input::has_times)
    }

    /// Records of a tenant's trace left out so far; nothing for an unknown tenant.
    pub fn skipped(&self, tenant: u16) -> Option<&Skipped> {
        self.inputs.get(usize::from(tenant)).map(Input::skipped)
    }

    /// Requests of a tenant whose time ran backwards so far: moved up to the latest time before
    /// them, or sorted when asked. Nothing for an unknown tenant.
    pub fn out_of_order(&self, tenant: u16) -> Option<u64> {
        self.inputs.get(usize::from(tenant)).map(Input::out_of_order)
    }

    /// What was done to a tenant's trace beside reading it, and what it shows beside its requests so
    /// far, in sentences; nothing for an unknown tenant.
    pub fn notes(&self, tenant: u16) -> Vec<String> {
        self.inputs.get(usize::from(tenant)).map(Input::notes).unwrap_or_default()
    }

    /// Whether offsets of a tenant's trace number objects; false for an unknown tenant.
    pub fn counts_objects(&self, tenant: u16) -> bool {
        self.inputs.get(usize::from(tenant)).is_some_and(Input::counts_objects)
    }

    /// How many volumes of its trace a tenant has taken requests of so far.
    pub fn volumes(&self, tenant: u16) -> u64 {
        self.spaces.iter().filter(|space| space.tenant == tenant).count() as u64
    }

    /// Requests to come in all traces at the beginning, when every format states it and no tenant
    /// selects a volume; for progress.
    pub fn requests_hint(&self) -> Option<u64> {
        self.inputs.iter().map(Input::requests_hint).sum()
    }
}

fn check_names(tenants: &[TenantInput]) -> Result<(), TraceError> {
    let refuse = |found: String, expected: &str| {
        Err(TraceError::Option { key: "tenant".to_owned(), found, expected: expected.to_owned() })
    };
    if tenants.is_empty() || tenants.len() > usize::from(u16::MAX) {
        return refuse(format!("{} tenants", tenants.len()), "1 to 65535 tenants");
    }
    let mut names: Vec<&str> = tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => refuse(pair[0].to_owned(), "a name of its own for each tenant"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
