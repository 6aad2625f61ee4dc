//! Recorded traces of what tenants did before, from which profiles and curves ahead come.
//!
//! For: the key `tenant.history`, which a live server reads as well. Must never know: what is
//! measured of a history. Units: requests, blocks. A history is read where a case's partitioner
//! wants something ahead, once for all cases that name the same.

use crate::ExperimentError;
use crate::needs::Needs;
use crate::progress::{OnProgress, Progress};
use crate::spec::{Spec, TenantSpec, block_kind};
use cachewright_system::{Recorder, Recording};
use cachewright_trace::MergedRequests;
use cachewright_types::seed::mix;
use std::path::Path;
use std::sync::Arc;

/// The history of each tenant that has one; nothing where none is wanted.
pub type TenantHistories = Arc<Vec<Option<Recording>>>;

/// The histories of some cases.
#[derive(Default)]
pub struct HistoryReader {
    read: Vec<(String, TenantHistories)>,
}

impl HistoryReader {
    /// The histories that the partitioner of a stack takes something from. Errors: a file that
    /// cannot be read or says nothing, by its key; cancelled.
    pub fn histories(
        &mut self,
        spec: &Spec,
        needs: &Needs,
        progress: OnProgress<'_>,
    ) -> Result<TenantHistories, ExperimentError> {
        let named = spec.tenants.iter().any(|tenant| tenant.history.is_some());
        if !named || !needs.reads_ahead {
            return Ok(Arc::default());
        }
        let requests = needs.inputs().requests;
        let inputs: Vec<_> = spec.tenants.iter().map(reading).collect();
        let (kind, trims) = (block_kind(spec), spec.cache.drops_trimmed());
        let cutoff = spec.cache.cutoff();
        let words = format!("{inputs:?} {kind:?} {trims} {requests} {cutoff:?}");
        if let Some((_, known)) = self.read.iter().find(|(other, _)| *other == words) {
            return Ok(Arc::clone(known));
        }
        let history = |(index, tenant): (usize, &TenantSpec)| {
            let Some(path) = &tenant.history else { return Ok(None) };
            let recorder = Recorder::new(1, kind, trims, spec.replay.max_accesses);
            let recorder = recorder.cutting_off(cutoff);
            let recorder = if requests { recorder.with_requests() } else { recorder };
            recorded(tenant, path, recorder, progress).map(Some).map_err(|error| {
                let key = format!("tenant[{}].history", index + 1);
                match error.is_cancelled() {
                    true => error,
                    false => ExperimentError::spec(&spec.origin, format!("`{key}`: {error}")),
                }
            })
        };
        let read: Result<_, _> = spec.tenants.iter().enumerate().map(history).collect();
        let read = Arc::new(read?);
        self.read.push((words, Arc::clone(&read)));
        Ok(read)
    }
}

/// All that decides what is read of a tenant's history.
fn reading(tenant: &TenantSpec) -> impl std::fmt::Debug + use<> {
    let (options, volume) = (tenant.open.clone(), tenant.volume.clone());
    let (times, operation) = ((tenant.time_scale, tenant.start, tenant.sort), tenant.becomes());
    (tenant.history.clone(), options, volume, times, operation, tenant.sample, tenant.request)
}

fn recorded(
    tenant: &TenantSpec,
    path: &Path,
    recorder: Recorder,
    progress: OnProgress<'_>,
) -> Result<Recording, ExperimentError> {
    let refuse = |found: &str, expected: &str| {
        Err(ExperimentError::Option(format!("found {found}, expected {expected}")))
    };
    if !path.is_file() {
        return refuse(&format!("no file `{}`", path.display()), "a trace");
    }
    let mut workload = MergedRequests::open(vec![tenant.input(path)])?;
    let total = workload.requests_hint();
    let tell = |done| progress(Progress { stage: "reading histories", done, total });
    let recording = recorder.record(&mut workload, tell)?;
    match recording.totals.first() {
        Some(totals) if totals.block_accesses > 0 => Ok(recording),
        _ => refuse("no reads and writes", "some"),
    }
}

/// A number that differs for different histories, but for accidents; 0 without any.
pub fn fingerprint(histories: &TenantHistories) -> u64 {
    let print = |history: &Option<Recording>| history.as_ref().map_or(1, Recording::fingerprint);
    histories.iter().fold(0, |hash, history| mix(hash ^ print(history)))
}
