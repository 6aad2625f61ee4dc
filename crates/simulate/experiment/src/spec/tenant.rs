//! The `[[tenant]]` tables.
//!
//! For: which trace (or volume of one) each tenant replays and how. Must never know: formats.

use super::section::Section;
use super::{Goal, ModelFile, NoiseSpec, ReplaySpec, Stop, layout, manner, names};
use cachewright_layout::Wish;
use cachewright_trace::merge::TIME_SCALES;
use cachewright_trace::reader::{MAX_REQUEST, MAX_REQUEST_RANGE};
use cachewright_trace::{OnBadRecord, OpenOptions};
use cachewright_types::{Bytes, Nanos, Op};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantSpec {
    /// Shown in tables; unique.
    pub name: String,
    /// The trace as written in the stack file.
    pub trace: String,
    /// The trace's path, relative paths taken from the stack file's folder.
    pub path: PathBuf,
    /// How to open it.
    pub open: OpenOptions,
    /// Only this volume of the trace.
    pub volume: Option<String>,
    /// Factor on the trace's times: 0.5 is twice as fast.
    pub time_scale: f64,
    /// When the tenant begins.
    pub start: Nanos,
    /// Where it stops; nothing replays its whole trace.
    pub stop: Option<Stop>,
    /// From when on it sends nothing: by that, or because everybody stops.
    pub until: Option<Nanos>,
    /// Sort by time in memory instead of moving late requests up.
    pub sort: bool,
    /// Share under `static`.
    pub weight: f64,
    /// Whether it is sensitive to latency, for partitioners that treat such tenants apart.
    pub sensitive: bool,
    /// The channels it asks for, under layouts that keep tenants apart.
    pub channels: Option<Wish>,
    /// The file of its trained model, for partitioners that predict.
    pub model: Option<ModelFile>,
    /// Models that take over from it while the run goes on, in order.
    pub model_updates: Vec<ModelFile>,
    /// What it was promised, for partitioners that keep promises.
    pub goal: Option<Goal>,
    /// Requests under way (closed loop).
    pub queue_depth: u32,
    /// Pause after an answer (closed loop).
    pub think_time: Nanos,
    /// It pauses as its trace did between two calls of a process instead (closed loop).
    pub recorded_pauses: bool,
    /// When its rate switches (closed loop).
    pub noise: Option<NoiseSpec>,
    /// It begins its trace anew at the end, until it stops (closed loop).
    pub repeat: bool,
    /// What all its reads and writes become.
    pub operation: Option<Op>,
    /// Share of its volumes' chunks whose requests it sends.
    pub sample: f64,
    /// Its longest read or write: longer ones are cut.
    pub request: Option<Bytes>,
}

const KEYS: [&str; 26] = [
    "name",
    "trace",
    "format",
    "volume",
    "time_scale",
    "start",
    "stop",
    "sort",
    "on_bad_record",
    "max_request",
    "weight",
    "sensitive",
    "channels",
    "model",
    "model_updates",
    "goal_hit_ratio",
    "goal_latency",
    "options",
    "queue_depth",
    "think_time",
    "pauses",
    "noise",
    "repeat",
    "operation",
    "sample",
    "request",
];

/// Tenants of a stack at most.
const MAX_TENANTS: usize = 4096;
/// The largest weight, so that sums of weights stay exact enough.
const MAX_WEIGHT: f64 = 1e9;

/// All tenants of a stack file; there must be at least one.
pub fn from_section(
    top: &Section<'_>,
    origin: &Path,
    replay: &ReplaySpec,
) -> Result<Vec<TenantSpec>, String> {
    let array = match top.get("tenant") {
        Some(toml::Value::Array(array)) if !array.is_empty() => array,
        Some(other) => return Err(top.refuse("tenant", other, "one or more `[[tenant]]` tables")),
        None => return Err("found no `[[tenant]]`, expected one or more".to_owned()),
    };
    if array.len() > MAX_TENANTS {
        let found = array.len();
        return Err(format!("`tenant`: found {found} tables, expected at most {MAX_TENANTS}"));
    }
    let folder = origin.parent().unwrap_or(Path::new(""));
    let mut tenants: Vec<TenantSpec> = Vec::new();
    for (index, value) in array.iter().enumerate() {
        let path = format!("tenant[{}]", index + 1);
        let toml::Value::Table(table) = value else {
            return Err(top.refuse("tenant", value, "a `[[tenant]]` table"));
        };
        let tenant = one(&Section::new(&path, table, &KEYS)?, folder, replay, index)?;
        if tenants.iter().any(|other| other.name == tenant.name) {
            let expected = "a name of its own for each tenant";
            return Err(format!(
                "`{path}.name`: found `{}` again, expected {expected}",
                tenant.name
            ));
        }
        tenants.push(tenant);
    }
    Ok(tenants)
}

fn one(
    section: &Section<'_>,
    folder: &Path,
    replay: &ReplaySpec,
    index: usize,
) -> Result<TenantSpec, String> {
    let trace = section.optional_text("trace")?.ok_or_else(|| {
        format!("found no `{}`, expected the path of a trace", section.key("trace"))
    })?;
    let on_bad_record = match section.choice("on_bad_record", &["fail", "skip"], 0)? {
        0 => OnBadRecord::Fail,
        _ => OnBadRecord::Skip,
    };
    let open = OpenOptions {
        format: section.optional_text("format")?,
        on_bad_record,
        max_request: max_request(section)?,
        format_options: options(section)?,
    };
    let start = section.duration("start", Nanos(0))?;
    let stop = Stop::from_section(section, start)?;
    let depth = u64::from(replay.queue_depth);
    let queue_depth = section.whole("queue_depth", depth, 1..=65_536)? as u32;
    Ok(TenantSpec {
        name: names::tenant(section, &format!("tenant{}", index + 1))?,
        path: folder.join(&trace),
        trace,
        open,
        volume: volume(section)?,
        time_scale: time_scale(section)?,
        start,
        until: until(stop, replay.stop),
        stop,
        sort: section.boolean("sort", false)?,
        weight: section.positive("weight", 1.0, MAX_WEIGHT)?,
        sensitive: section.boolean("sensitive", false)?,
        channels: layout::wish(section)?,
        model: ModelFile::from_section(section, folder)?,
        model_updates: ModelFile::updates(section, folder)?,
        goal: Goal::from_section(section)?,
        queue_depth,
        think_time: section.duration("think_time", replay.think_time)?,
        noise: NoiseSpec::from_section(section, queue_depth)?,
        recorded_pauses: section.choice("pauses", &["think-time", "recorded"], 0)? == 1,
        repeat: section.boolean("repeat", false)?,
        operation: manner::operation(section)?,
        sample: manner::sample(section)?,
        request: manner::request(section)?,
    })
}

/// The longest read or write that is no malformed record.
fn max_request(section: &Section<'_>) -> Result<Bytes, String> {
    let bytes = section.bytes("max_request", MAX_REQUEST)?;
    match section.get("max_request") {
        Some(found) if !MAX_REQUEST_RANGE.contains(&bytes.0) => {
            Err(section.refuse("max_request", found, "a size from 512B to 1TiB"))
        }
        _ => Ok(bytes),
    }
}

fn time_scale(section: &Section<'_>) -> Result<f64, String> {
    let Some(value) = section.get("time_scale") else { return Ok(1.0) };
    let number = value.as_float().or(value.as_integer().map(|number| number as f64));
    number
        .filter(|scale| TIME_SCALES.contains(scale))
        .ok_or_else(|| section.refuse("time_scale", value, "a number from 1e-9 to 1e9"))
}

/// The first of the times at which a tenant and everybody stop.
fn until(stop: Option<Stop>, everybody: Option<Nanos>) -> Option<Nanos> {
    [stop.and_then(Stop::time), everybody].into_iter().flatten().min()
}

/// A volume's name; a bare number stands for its digits.
fn volume(section: &Section<'_>) -> Result<Option<String>, String> {
    match section.get("volume") {
        Some(toml::Value::Integer(number)) => Ok(Some(number.to_string())),
        _ => section.optional_text("volume"),
    }
}

fn options(section: &Section<'_>) -> Result<BTreeMap<String, String>, String> {
    let mut options = BTreeMap::new();
    let table = match section.get("options") {
        None => return Ok(options),
        Some(toml::Value::Table(table)) => table,
        Some(other) => return Err(section.refuse("options", other, "a table")),
    };
    for (key, value) in table {
        let text = match value {
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => {
                value.to_string()
            }
            other => return Err(section.refuse("options", other, "texts and numbers")),
        };
        options.insert(key.clone(), text);
    }
    Ok(options)
}
