//! The volumes of a trace, each of which may be a tenant.
//!
//! For: tenants that are `by_volume`. Must never know: what becomes of them. A trace is read once
//! in a process, however many cases there are: a file that changes meanwhile is read again.

use super::TenantSpec;
use cachewright_trace::merge::{MergedRequests, WorkloadBatch};
use cachewright_trace::{TraceError, files_of};
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

/// Requests read at a time.
const BATCH: usize = 8192;
/// Volumes that are tenants at most.
const MAX_VOLUMES: usize = 4096;

static KNOWN: LazyLock<Mutex<BTreeMap<String, Vec<String>>>> = LazyLock::new(Mutex::default);

/// The names of the volumes that a tenant takes requests of, in order of their first request.
/// Errors: those of reading; too many.
pub(super) fn of_trace(tenant: &TenantSpec) -> Result<Vec<String>, String> {
    let words = |error: TraceError| error.to_string();
    let files = files_of(&tenant.path, &tenant.open).map_err(words)?;
    let changed =
        |file| std::fs::metadata(file).ok().map(|facts| (facts.len(), facts.modified().ok()));
    let state: Vec<_> = files.iter().map(changed).collect();
    let key = format!("{files:?} {state:?} {:?} {:?}", tenant.open, tenant.volume);
    // A poisoned lock means that another thread failed between two whole entries.
    let lock = || KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(known) = lock().get(&key) {
        return Ok(known.clone());
    }
    let mut workload = MergedRequests::open(vec![tenant.input(&tenant.path)]).map_err(words)?;
    let mut batch = WorkloadBatch::default();
    while workload.read(&mut batch, BATCH).map_err(words)? > 0 {
        batch.clear();
        let found = workload.spaces().len();
        if found > MAX_VOLUMES {
            return Err(format!(
                "tenant `{}`: found more than {MAX_VOLUMES} volumes with `by_volume`, expected \
                 fewer; `dataset convert` makes a file of each volume",
                tenant.name
            ));
        }
    }
    let names: Vec<String> = workload.spaces().iter().map(|space| space.volume.clone()).collect();
    lock().insert(key, names.clone());
    Ok(names)
}
