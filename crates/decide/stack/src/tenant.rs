//! The `[[tenant]]` tables.
//!
//! For: which trace (or volume of one) each tenant replays and how. Must never know: formats.
//! Units: nanoseconds on the workload's clock; simulated time in a closed loop.

use crate::goal::Goal;
use crate::kinds::{Channels, Stop};
use crate::models::ModelFile;
use crate::names;
use crate::reader::Reader;
use crate::tables::{BadRecord, Lengths, Operation, Pauses, ReplayTable, TenantTable};
use cachewright_layout::Wish;
use cachewright_trace::{OnBadRecord, OpenOptions};
use cachewright_types::declare::Nested;
use cachewright_types::{Bytes, Nanos, Op, Value};
use std::path::{Path, PathBuf};

/// Tenants of a stack at most.
const MAX_TENANTS: usize = 4096;

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
    /// From when on it sends nothing: by that, or because every tenant stops.
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

/// Periods in which a tenant sends, and in which it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseSpec {
    /// Mean length of the first.
    pub on: Nanos,
    /// Mean length of the others.
    pub off: Nanos,
    /// Requests kept under way in those; 0 for silence.
    pub off_depth: u32,
    /// Lengths are exponential; else each is the mean.
    pub exponential: bool,
}

/// The tables of all tenants as they stand in the file; there must be at least one.
pub fn readers<'a>(file: &Reader<'a>) -> Result<Vec<Reader<'a>>, String> {
    let tables = match file.get("tenant") {
        Some(Value::List(tables)) if !tables.is_empty() => tables,
        Some(other) => return Err(file.refuse("tenant", other, "one or more `[[tenant]]` tables")),
        None => return Err("found no `[[tenant]]`, expected one or more".to_owned()),
    };
    if tables.len() > MAX_TENANTS {
        let found = tables.len();
        return Err(format!("`tenant`: found {found} tables, expected at most {MAX_TENANTS}"));
    }
    let reader = |(index, table): (usize, &'a Value)| match table {
        Value::Table(_) => Ok(Reader::new(&format!("tenant[{}]", index + 1), Some(table))),
        other => Err(file.refuse("tenant", other, "a `[[tenant]]` table")),
    };
    tables.iter().enumerate().map(reader).collect()
}

/// All tenants with their tables, whose defaults are filled in.
pub fn read(
    readers: &[Reader<'_>],
    folder: &Path,
    replay: &ReplayTable,
) -> Result<Vec<(TenantSpec, TenantTable)>, String> {
    let mut tenants: Vec<(TenantSpec, TenantTable)> = Vec::new();
    for (index, reader) in readers.iter().enumerate() {
        let mut table: TenantTable = reader.read()?;
        table.name.get_or_insert_with(|| format!("tenant{}", index + 1));
        table.queue_depth.get_or_insert(replay.queue_depth);
        table.think_time.get_or_insert(replay.think_time);
        let tenant = TenantSpec::of(&table, reader, folder, replay)?;
        if tenants.iter().any(|(other, _)| other.name == tenant.name) {
            let (key, name) = (reader.key("name"), &tenant.name);
            let expected = "a name of its own for each tenant";
            return Err(format!("`{key}`: found `{name}` again, expected {expected}"));
        }
        tenants.push((tenant, table));
    }
    Ok(tenants)
}

impl TenantSpec {
    /// A tenant of its table, whose defaults are filled in.
    fn of(
        table: &TenantTable,
        reader: &Reader<'_>,
        folder: &Path,
        replay: &ReplayTable,
    ) -> Result<TenantSpec, String> {
        let trace = table.trace.clone().ok_or_else(|| {
            format!("found no `{}`, expected the path of a trace", reader.key("trace"))
        })?;
        let name = table.name.clone().unwrap_or_default();
        names::tenant(&reader.key("name"), &name)?;
        let queue_depth = table.queue_depth.unwrap_or(replay.queue_depth);
        check_stop(table, reader)?;
        check_models(table, reader)?;
        if table.sample.0 <= 0.0 {
            let found = table.sample.text();
            let key = reader.key("sample");
            return Err(format!("`{key}`: found `{found}`, expected a share above 0%, to 100%"));
        }
        let file = |text: &String| ModelFile::new(text, folder);
        Ok(TenantSpec {
            path: folder.join(&trace),
            trace,
            open: open_options(table),
            volume: table.volume.clone().map(|label| label.0),
            time_scale: table.time_scale,
            start: table.start,
            until: until(table.stop, replay.stop),
            stop: table.stop,
            sort: table.sort,
            weight: table.weight,
            sensitive: table.sensitive,
            channels: table.channels.clone().map(|Channels(wish)| wish),
            model: table.model.as_ref().map(file),
            model_updates: table.model_updates.iter().map(file).collect(),
            goal: Goal::of(table, reader)?,
            queue_depth,
            think_time: table.think_time.unwrap_or(replay.think_time),
            noise: NoiseSpec::of(table, reader, queue_depth)?,
            recorded_pauses: table.pauses == Pauses::Recorded,
            repeat: table.repeat,
            operation: match table.operation {
                Operation::AsIs => None,
                Operation::Read => Some(Op::Read),
                Operation::Write => Some(Op::Write),
            },
            sample: table.sample.0,
            request: table.request,
            name,
        })
    }
}

fn open_options(table: &TenantTable) -> OpenOptions {
    OpenOptions {
        format: table.format.clone(),
        on_bad_record: match table.on_bad_record {
            BadRecord::Fail => OnBadRecord::Fail,
            BadRecord::Skip => OnBadRecord::Skip,
        },
        max_request: table.max_request,
        format_options: table.options.0.clone(),
    }
}

/// The first of the times at which a tenant and all tenants stop.
fn until(stop: Option<Stop>, all: Option<Nanos>) -> Option<Nanos> {
    [stop.and_then(Stop::time), all].into_iter().flatten().min()
}

fn check_stop(table: &TenantTable, reader: &Reader<'_>) -> Result<(), String> {
    match table.stop {
        Some(Stop::At(time)) if time <= table.start => Err(format!(
            "`{}`: found `{}`, expected a time after its `start`, {}, or a share such as `50%`",
            reader.key("stop"),
            time.exact(),
            table.start
        )),
        _ => Ok(()),
    }
}

fn check_models(table: &TenantTable, reader: &Reader<'_>) -> Result<(), String> {
    if table.model.is_some() || table.model_updates.is_empty() {
        return Ok(());
    }
    let key = reader.key("model_updates");
    let found = table.model_updates.len();
    Err(format!("`{key}`: found {found} files, expected a first one in `model` as well"))
}

impl NoiseSpec {
    /// The noise of a tenant of so many requests under way, if it has any. Errors: a mean is
    /// missing, or more requests than that.
    fn of(
        table: &TenantTable,
        reader: &Reader<'_>,
        queue_depth: u32,
    ) -> Result<Option<NoiseSpec>, String> {
        let Some(Nested(noise)) = &table.noise else { return Ok(None) };
        let key = |name: &str| reader.key(&format!("noise.{name}"));
        let mean = |name: &str, given: Option<Nanos>| {
            let missing = || format!("found no `{}`, expected the mean of a period", key(name));
            given.ok_or_else(missing)
        };
        if noise.off_depth > queue_depth {
            return Err(format!(
                "`{}`: found `{}`, expected a whole number from 0 to {queue_depth}",
                key("off_depth"),
                noise.off_depth
            ));
        }
        Ok(Some(NoiseSpec {
            on: mean("on", noise.on)?,
            off: mean("off", noise.off)?,
            off_depth: noise.off_depth,
            exponential: noise.lengths == Lengths::Exponential,
        }))
    }
}
