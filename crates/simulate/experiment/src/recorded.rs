//! Divisions that a live server has recorded, for a replay that makes them again.
//!
//! For: the key `replay.divisions`. Must never know: which partitioner made them, how a live server
//! serves. Units: nanoseconds, bytes, blocks. A file of another stack is refused by the value that
//! differs. Whether the trace is the one beside it is not known.

use crate::ExperimentError;
use crate::case::Case;
use crate::spec::{Front, Spec};
use cachewright_partition::fixed::Recorded;
use cachewright_trace::{Divisions, divisions_path};
use cachewright_types::seed::mix;
use cachewright_types::{Bytes, Nanos};
use std::path::{Path, PathBuf};

/// The path of a stack's recorded divisions, if it names a file.
fn path_of(spec: &Spec) -> Option<PathBuf> {
    let text = spec.replay.divisions.as_ref()?;
    Some(spec.origin.parent().unwrap_or(Path::new("")).join(text))
}

/// A refusal of the key.
fn refuse(spec: &Spec, found: &str, expected: &str) -> ExperimentError {
    let message = format!("`replay.divisions`: found {found}, expected {expected}");
    ExperimentError::spec(&spec.origin, message)
}

/// The recorded divisions that a stack names. Errors: a file that cannot be read, or is of another
/// stack; a replay that cannot make them again.
pub fn divisions(spec: &Spec) -> Result<Option<Divisions>, ExperimentError> {
    let Some(path) = path_of(spec) else { return Ok(None) };
    check_replay(spec)?;
    if !path.is_file() {
        let (found, beside) = (path.display(), divisions_path(Path::new("TRACE")));
        let expected = format!("the file `{}` that a live server recorded", beside.display());
        return Err(refuse(spec, &format!("no file `{found}`"), &expected));
    }
    let divisions = Divisions::read(&path)?;
    let (head, cache) = (&divisions.head, &spec.cache);
    let (partition, interval) = (&cache.partition.name, spec.replay.interval);
    if head.partition != *partition {
        let found = format!("divisions by `{}`", head.partition);
        return Err(refuse(spec, &found, &format!("those of `cache.partition`, `{partition}`")));
    }
    if head.interval_ns != interval.0 {
        let found = format!("an interval of {}", Nanos(head.interval_ns).exact());
        let expected = format!("that of `replay.interval`, {}", interval.exact());
        return Err(refuse(spec, &found, &expected));
    }
    if head.block_bytes != cache.block.0 {
        let found = format!("blocks of {}", Bytes(head.block_bytes));
        return Err(refuse(spec, &found, &format!("those of `cache.block`, {}", cache.block)));
    }
    let names: Vec<&str> = spec.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    if head.tenants != names {
        let found = format!("the tenants {}", head.tenants.join(", "));
        return Err(refuse(spec, &found, &format!("those of the stack: {}", names.join(", "))));
    }
    Ok(Some(divisions))
}

/// Errors: requests arrive at other times than recorded, or something else divides, too.
fn check_replay(spec: &Spec) -> Result<(), ExperimentError> {
    if spec.replay.closed() {
        return Err(refuse(spec, "`replay.loop = \"closed\"`", "`open` with recorded divisions"));
    }
    if spec.cache.layout.name != "striped" {
        let found = format!("the layout `{}`", spec.cache.layout.name);
        return Err(refuse(spec, &found, "`striped` with recorded divisions"));
    }
    let front = spec.stack.as_ref().map(|stack| &stack.front);
    if matches!(front, Some(Front::DataCache(_))) {
        return Err(refuse(spec, "`machine.system = \"ssd\"`", "another with recorded divisions"));
    }
    Ok(())
}

/// A number that differs for different divisions, but for accidents; 0 without any.
pub fn fingerprint(divisions: Option<&Divisions>) -> u64 {
    let Some(divisions) = divisions else { return 0 };
    let row = |hash: u64, row: &cachewright_trace::DivisionRow| {
        row.quotas.iter().fold(mix(hash ^ row.time_ns), |hash, quota| mix(hash ^ u64::from(*quota)))
    };
    divisions.rows.iter().fold(mix(u64::from(divisions.head.capacity_blocks)), row)
}

impl Case {
    /// What makes the recorded divisions again in a cache of so many blocks, if there are some.
    /// Errors: they are of another capacity.
    pub fn recorded(&self, capacity_blocks: u32) -> Result<Option<Recorded>, ExperimentError> {
        let Some(divisions) = self.divisions.as_deref() else { return Ok(None) };
        let head = &divisions.head;
        if head.capacity_blocks != capacity_blocks {
            let found = format!("divisions of {} blocks", head.capacity_blocks);
            let expected = format!("those of `cache.capacity`, {capacity_blocks} blocks");
            return Err(refuse(&self.spec, &found, &expected));
        }
        let row = |row: &cachewright_trace::DivisionRow| {
            (row.time_ns / head.interval_ns, row.quotas.clone())
        };
        Ok(Some(Recorded::new(divisions.rows.iter().map(row).collect())))
    }
}
