//! Several tenants' traces as one workload, ordered by time.
//!
//! Units: nanoseconds since the start of the workload, bytes. Ties go to the tenant listed first,
//! so that the result depends on nothing but the inputs.
//!
//! By default each trace begins at its tenant's start. With [`MergeClock::Common`] the traces keep
//! the clock that they were recorded on, and the earliest begins.
//!
//! Every (tenant, volume) is a *space*: an address space of its own, numbered densely in order of
//! first appearance in the merged stream. Blocks are interned per space.

mod input;

pub use input::{EarlyEnd, TIME_SCALES, TenantInput, TenantSource, VolumeChoice};

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
    /// What comes before each tenant's trace, where anything does.
    before: Vec<Option<Input>>,
    /// The time of the last request that was read.
    latest_ns: u64,
    /// When the traces themselves begin; nothing while what comes before them is read.
    begin_ns: Option<u64>,
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
            before: Vec::with_capacity(tenants.len()),
            latest_ns: 0,
            begin_ns: None,
            spaces: Vec::new(),
            heads: BinaryHeap::with_capacity(tenants.len()),
        };
        for mut tenant in tenants {
            let before = tenant.before.take();
            workload.before.push(before.map(|before| Input::open(*before)).transpose()?);
            workload.inputs.push(Input::open(tenant)?);
        }
        if clock == MergeClock::Common {
            let inputs = workload.inputs.iter_mut().map(Some);
            share_origin(&workload.tenants, inputs.collect())?;
            let before = workload.before.iter_mut().map(Option::as_mut);
            share_origin(&workload.tenants, before.collect())?;
        }
        for (index, before) in workload.before.iter_mut().enumerate() {
            let Some(before) = before else { continue };
            if let Some(time_ns) = before.head()? {
                workload.heads.push(Reverse((time_ns, index as u16)));
            }
        }
        if workload.heads.is_empty() {
            workload.begin(0)?;
        }
        Ok(workload)
    }

    /// Begins with the tenants' traces themselves. Errors: those of the readers; a time beyond what
    /// is accepted.
    fn begin(&mut self, begin_ns: u64) -> Result<(), TraceError> {
        self.begin_ns = Some(begin_ns);
        for (index, input) in self.inputs.iter_mut().enumerate() {
            if self.before[index].is_some() {
                input.know_spaces(index as u16, &self.spaces);
            }
            input.begin(begin_ns)?;
            if let Some(time_ns) = input.head()? {
                self.heads.push(Reverse((time_ns, index as u16)));
            }
        }
        Ok(())
    }

    /// Appends up to `max` requests to `batch` in order of time, returns how many; 0 means the
    /// end. Errors: those of the readers.
    pub fn read(&mut self, batch: &mut WorkloadBatch, max: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < max {
            let Some(Reverse((_, tenant))) = self.heads.pop() else {
                if self.begin_ns.is_some() {
                    break;
                }
                self.begin(self.latest_ns.saturating_add(1))?;
                continue;
            };
            // This input gives its requests until another one's is due.
            let until = self.heads.peek().map(|Reverse(head)| *head);
            let input = match (&mut self.before[usize::from(tenant)], self.begin_ns) {
                (Some(before), None) => before,
                _ => &mut self.inputs[usize::from(tenant)],
            };
            let taken = input.take(tenant, until, max - count, batch, &mut self.spaces)?;
            if let Some(time_ns) = input.head()? {
                self.heads.push(Reverse((time_ns, tenant)));
            }
            count += taken;
            self.latest_ns = batch.time_ns.last().copied().unwrap_or(self.latest_ns);
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

    /// When the traces themselves begin on the workload's clock; 0 where nothing comes before them.
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns.unwrap_or(0)
    }

    /// Requests so far that came before a tenant's trace.
    pub fn requests_before(&self, tenant: u16) -> u64 {
        self.before(tenant).map_or(0, Input::taken)
    }

    /// Records left out so far of what comes before a tenant's trace; nothing where nothing does.
    pub fn skipped_before(&self, tenant: u16) -> Option<&Skipped> {
        self.before(tenant).map(Input::skipped)
    }

    /// The sentences of [`notes`](Self::notes) of what comes before a tenant's trace.
    pub fn notes_before(&self, tenant: u16) -> Vec<String> {
        self.before(tenant).map(Input::notes).unwrap_or_default()
    }

    fn before(&self, tenant: u16) -> Option<&Input> {
        self.before.get(usize::from(tenant)).and_then(Option::as_ref)
    }

    /// What was done to a tenant's trace beside reading it, and what it shows beside its requests
    /// so far, in sentences; nothing for an unknown tenant.
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
        self.inputs.iter().chain(self.before.iter().flatten()).map(Input::requests_hint).sum()
    }
}

/// Makes the earliest first record of all traces the time zero of each; `names` are those of the
/// tenants, in the order of `inputs`.
fn share_origin(names: &[String], mut inputs: Vec<Option<&mut Input>>) -> Result<(), TraceError> {
    let has_none = |input: &Option<&mut Input>| input.as_ref().is_some_and(|i| !i.has_times());
    if let Some(index) = inputs.iter().position(has_none) {
        return Err(TraceError::Option {
            key: "clock".to_owned(),
            found: format!("common, and no times in the trace of `{}`", names[index]),
            expected: "times in every trace, or `own`".to_owned(),
        });
    }
    let earliest = inputs.iter().flatten().filter_map(|input| input.origin_ns()).min();
    if let Some(earliest) = earliest {
        inputs.iter_mut().flatten().for_each(|input| input.set_origin(earliest));
    }
    Ok(())
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
