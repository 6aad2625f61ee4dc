//! The stack file with the tables of the machines that simulate.

pub mod device;
mod machine;

use crate::ExperimentError;
use crate::continued::{recording_of, resolve_moments};
use cachewright_stack::tables::Blocks;
pub use cachewright_stack::{
    CharacterizerSpec, FlashSpec, Goal, KindsSpec, MAX_BYTES, ModelFile, ReplayTable, Scheme, Stop,
    TenantSpec, apply, flash, full_key, names,
};
use cachewright_stack::{Reader, ResolvedEntry, StackFile, document};
use cachewright_system::BlockKind;
use cachewright_trace::formats::counts_objects;
use cachewright_trace::merge::{MergedRequests, WorkloadBatch};
use cachewright_trace::{TraceError, files_of};
use cachewright_types::declare::ValueKind;
use cachewright_types::{Size, Value};
pub use device::{DeviceSpec, Front, StackSpec};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

/// A stack on simulated devices, or on none.
pub type Spec = cachewright_stack::Stack<StackSpec>;

/// Reads the text of a stack file with `overrides`, `key=value` pairs, set over it; `origin` is its
/// path, for messages and relative trace paths. Errors: no TOML, a key that cannot be set.
pub fn read(
    text: &str,
    origin: &Path,
    overrides: &[(String, String)],
) -> Result<StackFile, ExperimentError> {
    let file = StackFile::read(text, origin).and_then(|file| file.with(overrides));
    file.map_err(|message| ExperimentError::spec(origin, message))
}

/// The stack of a file that is to be replayed. Errors: anything wrong with it; a tenant without a
/// trace.
pub fn replayed(file: &StackFile) -> Result<Spec, ExperimentError> {
    let spec = replayed_or_served(file)?;
    spec.check_traces().map_err(|message| ExperimentError::spec(file.origin(), message))?;
    Ok(spec)
}

/// The same of a file that may be served only.
pub fn replayed_or_served(file: &StackFile) -> Result<Spec, ExperimentError> {
    let refuse = |message: String| ExperimentError::spec(file.origin(), message);
    let mut spec: Spec = file.stack_by_volume(of_trace).map_err(refuse)?;
    let folder = file.origin().parent().unwrap_or(Path::new(""));
    resolve_moments(&mut spec, folder).map_err(refuse)?;
    if spec.replay.blocks == Blocks::Auto {
        spec.replay.blocks = if is_of_objects(&spec) { Blocks::Unit } else { Blocks::Split };
    }
    Ok(spec)
}

/// Reads the text of a stack file that is to be replayed. Errors: as [`read`] and [`replayed`].
pub fn parse(
    text: &str,
    origin: &Path,
    overrides: &[(String, String)],
) -> Result<Spec, ExperimentError> {
    replayed(&read(text, origin, overrides)?)
}

/// Whether each request of a stack is one block because its traces number objects. What needs
/// sizes has none then: devices, a drive, a capacity in bytes.
fn is_of_objects(spec: &Spec) -> bool {
    let needs_sizes = spec.stack.is_some()
        || spec.flash.is_some()
        || spec.serve.is_some()
        || matches!(spec.cache.capacity, Size::Bytes(_));
    // A trace that cannot be read is refused where it is read.
    let numbers = |tenant: &TenantSpec| {
        !tenant.trace.is_empty()
            && counts_objects(&tenant.path, &tenant.open).is_ok_and(|objects| objects)
    };
    !needs_sizes && spec.tenants.iter().all(numbers)
}

/// How requests of a stack become blocks.
pub fn block_kind(spec: &Spec) -> BlockKind {
    if spec.replay.unit() {
        BlockKind::Unit
    } else {
        BlockKind::Split { shift: spec.cache.block.0.trailing_zeros() }
    }
}

/// A scheme as an option gives it: a bare name, or an inline table with `name` and settings. `key`
/// is the option, for messages.
pub fn scheme_of_option(key: &str, text: &str) -> Result<Scheme, String> {
    let value = document::read(text);
    let expected = Scheme::KIND;
    let refuse = |_| Reader::new("", None).refuse(key, &value, expected);
    Scheme::read(&value).map_err(refuse)
}

/// The resolved form of a stack as JSON. Errors: a scheme's setting is refused.
pub fn resolved(spec: &Spec) -> Result<Json, ExperimentError> {
    let resolved =
        spec.resolved().map_err(|message| ExperimentError::spec(&spec.origin, message))?;
    Ok(entry(&resolved))
}

fn entry(found: &ResolvedEntry) -> Json {
    match found {
        ResolvedEntry::Value(value) => value.as_ref().map(json).into(),
        ResolvedEntry::List(entries) => entries.iter().map(entry).collect(),
        ResolvedEntry::Table(entries) => {
            let pairs = entries.iter().map(|(key, found)| (key.clone(), entry(found)));
            Json::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

/// A value as JSON.
pub fn json(value: &Value) -> Json {
    match value {
        Value::Int(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Text(text) => text.clone().into(),
        Value::List(values) => values.iter().map(json).collect(),
        Value::Table(pairs) => {
            Json::Object(pairs.iter().map(|(key, value)| (key.clone(), json(value))).collect())
        }
    }
}

/// Requests read at a time.
const BATCH: usize = 8192;
/// Volumes that are tenants at most.
const MAX_VOLUMES: usize = 4096;

static KNOWN: LazyLock<Mutex<BTreeMap<String, Vec<String>>>> = LazyLock::new(Mutex::default);

/// The names of the volumes that a tenant takes requests of, in order of their first request.
/// Errors: those of reading; too many.
fn of_trace(tenant: &TenantSpec) -> Result<Vec<String>, String> {
    let words = |error: TraceError| error.to_string();
    let path = recording_of(tenant)?.map_or_else(|| tenant.path.clone(), |(path, _)| path);
    let files = files_of(&path, &tenant.open).map_err(words)?;
    let changed =
        |file| std::fs::metadata(file).ok().map(|facts| (facts.len(), facts.modified().ok()));
    let state: Vec<_> = files.iter().map(changed).collect();
    let key = format!("{files:?} {state:?} {:?} {:?}", tenant.open, tenant.volume);
    // A poisoned lock means that another thread failed between two whole entries.
    let lock = || KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(known) = lock().get(&key) {
        return Ok(known.clone());
    }
    let mut workload = MergedRequests::open(vec![tenant.input(&path)]).map_err(words)?;
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
