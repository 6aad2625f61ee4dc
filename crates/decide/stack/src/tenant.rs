//! The `[[tenant]]` tables.
//!
//! Units are nanoseconds on the workload's clock; simulated time in a closed loop.
//!
//! A tenant's goal: a hit ratio, a latency that stands for one, or a measured response time. Units
//! are hit ratios from 0 to 1, nanoseconds. Source: Patrick et al., section III-A: the mean access
//! time is that of the cache by the hit ratio and that of the backing by the rest. Measured
//! response times are ours.

use crate::cache::ModelFile;
use crate::document::Reader;
use crate::kinds::{Stop, TraceFiles};
use crate::names;
use crate::tables::{BadRecord, Operation, Pauses, ReplayTable, TenantTable};
use cachewright_partition::ResponseGoal;
use cachewright_trace::{Moment, OnBadRecord, OpenOptions, TenantInput, recording_at, state_path};
use cachewright_types::declare::Nested;
use cachewright_types::{Nanos, Op, Value};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Tenants of a stack at most.
const MAX_TENANTS: usize = 4096;

/// A `[[tenant]]` table with every default filled in, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantSpec {
    table: TenantTable,
    /// Shown in tables; unique.
    pub name: String,
    /// The trace as written in the stack file; empty where the tenant is only served.
    pub trace: String,
    /// The trace's path, or that of its first part; relative paths taken from the stack file's
    /// folder.
    pub path: PathBuf,
    /// The moment of the recording from which on requests count, where `trace` names one behind
    /// `@`; `path` is the recording, or a folder of them.
    pub moment: Option<Moment>,
    /// A trace of what it did before.
    pub history: Option<PathBuf>,
    /// The file or block device of its volume, if it can be served.
    pub backing: Option<PathBuf>,
    /// The name under which clients find its volume; unique.
    pub export: String,
    /// How to open it.
    pub open: OpenOptions,
    /// From when on it sends nothing: by its `stop`, or because every tenant stops.
    pub until: Option<Nanos>,
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
}

impl Deref for TenantSpec {
    type Target = TenantTable;

    fn deref(&self) -> &TenantTable {
        &self.table
    }
}

impl TenantTable {
    /// Whether it pauses as its trace did between two calls of a process (closed loop).
    pub fn recorded_pauses(&self) -> bool {
        self.pauses == Pauses::Recorded
    }

    /// What all its reads and writes become; nothing: what they are.
    pub fn becomes(&self) -> Option<Op> {
        match self.operation {
            Operation::AsIs => None,
            Operation::Read => Some(Op::Read),
            Operation::Write => Some(Op::Write),
        }
    }
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

/// All tenants, their defaults filled in.
pub fn read(
    readers: &[Reader<'_>],
    folder: &Path,
    replay: &ReplayTable,
) -> Result<Vec<TenantSpec>, String> {
    let mut tenants: Vec<TenantSpec> = Vec::new();
    for (index, reader) in readers.iter().enumerate() {
        let mut table: TenantTable = reader.read()?;
        table.name.get_or_insert_with(|| format!("tenant{}", index + 1));
        let tenant = TenantSpec::new(table, reader, folder, replay)?;
        if tenants.iter().any(|other| other.name == tenant.name) {
            return Err(again(reader, "name", &tenant.name));
        }
        if tenants.iter().any(|other| other.export == tenant.export) {
            return Err(again(reader, "export", &tenant.export));
        }
        tenants.push(tenant);
    }
    Ok(tenants)
}

/// The path of a recording and the moment behind its last `@`; without a moment the path is all.
fn recording_and_moment(text: &str) -> (&str, Option<Moment>) {
    let found = text.rsplit_once('@');
    let found = found.and_then(|(path, moment)| Some((path, Moment::parse(moment)?)));
    found.map_or((text, None), |(path, moment)| (path, Some(moment)))
}

/// The refusal of a name that another tenant has.
fn again(reader: &Reader<'_>, name: &str, found: &str) -> String {
    let key = reader.key(name);
    format!("`{key}`: found `{found}` again, expected a name of its own for each tenant")
}

/// The refusal of a tenant, counted from 0, that has no trace to be replayed.
pub fn without_trace(index: usize) -> String {
    format!("found no `tenant[{}].trace`, expected the path of a trace", index + 1)
}

/// The tables of a tenant's volumes: its own table, each with one volume.
pub fn by_volume(table: &Value, name: &str, volumes: &[String]) -> Vec<Value> {
    let Value::Table(pairs) = table else { return Vec::new() };
    let kept = |key: &str| !["name", "volume", "by_volume", "export"].contains(&key);
    let pairs: Vec<_> = pairs.iter().filter(|(key, _)| kept(key)).cloned().collect();
    let own = |volume: &String| {
        let name = ("name".to_owned(), Value::Text(format!("{name}/{volume}")));
        let volume = ("volume".to_owned(), Value::Text(volume.clone()));
        Value::Table([name, volume].into_iter().chain(pairs.clone()).collect())
    };
    volumes.iter().map(own).collect()
}

impl TenantSpec {
    /// Whether the trace names a moment of a recording with the state of its server beside it.
    pub(crate) fn continues_a_server(&self) -> bool {
        let found = self.moment.map(|moment| recording_at(&self.path, moment));
        matches!(found, Some(Ok((recording, _))) if state_path(&recording).is_file())
    }

    /// The tenant that a table describes.
    fn new(
        mut table: TenantTable,
        reader: &Reader<'_>,
        folder: &Path,
        replay: &ReplayTable,
    ) -> Result<TenantSpec, String> {
        if table.trace.is_none() && table.backing.is_none() {
            let key = reader.key("trace");
            return Err(format!("found no `{key}`, expected the path of a trace"));
        }
        if table.by_volume && table.backing.is_some() {
            let key = reader.key("by_volume");
            return Err(format!("`{key}`: found `true` with a `backing`, expected one volume"));
        }
        let files = table.trace.as_ref().map_or(&[][..], |files| &files.0);
        let trace = table.trace.as_ref().map(TraceFiles::text).unwrap_or_default();
        let name = table.name.clone().unwrap_or_default();
        names::tenant(&reader.key("name"), &name)?;
        let export = table.export.clone().unwrap_or_else(|| name.clone());
        names::export(&reader.key("export"), &export)?;
        let queue_depth = *table.queue_depth.get_or_insert(replay.queue_depth);
        let think_time = *table.think_time.get_or_insert(replay.think_time);
        check_stop(&table, reader)?;
        check_models(&table, reader)?;
        check_schedule(&table, reader)?;
        if table.sample.0 <= 0.0 {
            let found = table.sample.text();
            let key = reader.key("sample");
            return Err(format!("`{key}`: found `{found}`, expected a share above 0%, to 100%"));
        }
        let goal = Goal::new(&table, reader)?;
        check_noise(&table, reader, queue_depth)?;
        let file = |text: &String| ModelFile::new(text, folder);
        let (first, moment) = match files {
            [only] => recording_and_moment(only),
            _ => (files.first().map_or("", String::as_str), None),
        };
        Ok(TenantSpec {
            path: if files.is_empty() { folder.to_owned() } else { folder.join(first) },
            moment,
            open: OpenOptions {
                parts: files.iter().skip(1).map(|part| folder.join(part)).collect(),
                ..open_options(&table)
            },
            until: until(table.stop, replay.stop),
            model: table.model.as_ref().map(file),
            model_updates: table.model_updates.iter().map(file).collect(),
            history: table.history.as_ref().map(|path| folder.join(path)),
            backing: table.backing.as_ref().map(|path| folder.join(path)),
            export,
            name,
            trace,
            goal,
            queue_depth,
            think_time,
            table,
        })
    }

    /// A whole trace of it, or a history, as its keys say how that is read.
    pub fn input(&self, path: &Path) -> TenantInput {
        let mut open = self.open.clone();
        if path != self.path {
            open.parts.clear();
        }
        let mut input = TenantInput::path(&self.name, path, open);
        input.volume = self.volume.as_ref().map(|label| label.0.clone());
        input.time_scale = self.time_scale;
        input.start = self.start;
        input.sort = self.sort;
        input.operation = self.becomes();
        input.sample = self.sample.0;
        input.request_bytes = self.request.map(|bytes| bytes.0);
        input
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
        parts: Vec::new(),
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

/// Checks the weights of a schedule as `weight` is checked.
fn check_schedule(table: &TenantTable, reader: &Reader<'_>) -> Result<(), String> {
    let Some(wrong) = table.schedule.iter().find(|weight| !(1e-300..=1e9).contains(*weight)) else {
        return Ok(());
    };
    let key = reader.key("schedule");
    Err(format!("`{key}`: found `{wrong}`, expected numbers from 1e-300 to 1e9"))
}

/// Checks a tenant's noise, if it has any, beside so many requests under way.
fn check_noise(table: &TenantTable, reader: &Reader<'_>, queue_depth: u32) -> Result<(), String> {
    let Some(Nested(noise)) = &table.noise else { return Ok(()) };
    let key = |name: &str| reader.key(&format!("noise.{name}"));
    if noise.off_depth > queue_depth {
        return Err(format!(
            "`{}`: found `{}`, expected a whole number from 0 to {queue_depth}",
            key("off_depth"),
            noise.off_depth
        ));
    }
    match [("on", noise.on), ("off", noise.off)].iter().find(|(_, mean)| mean.is_none()) {
        Some((name, _)) => Err(format!("found no `{}`, expected the mean of a period", key(name))),
        None => Ok(()),
    }
}

/// What a tenant was promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// At least this share of its block accesses hits, over the whole run.
    HitRatio(f64),
    /// Its mean block access takes no longer, by two constants.
    Latency(Nanos),
    /// Its requests take no longer, as measured.
    Response(ResponseGoal),
}

impl Goal {
    /// The goal of a `[[tenant]]`, if it has one. Errors: two kinds.
    pub fn new(table: &TenantTable, reader: &Reader<'_>) -> Result<Option<Goal>, String> {
        let given = [
            table.goal_hit_ratio.map(Goal::HitRatio),
            table.goal_latency.map(Goal::Latency),
            table.goal_response.map(|limit| Goal::Response(ResponseGoal::Mean(limit))),
            table.goal_p99.map(|limit| Goal::Response(ResponseGoal::P99(limit))),
        ];
        let mut given = given.into_iter().flatten();
        match (given.next(), given.next()) {
            (goal, None) => Ok(goal),
            (first, Some(second)) => Err(format!(
                "found both `{}` and `{}`, expected one of them",
                reader.key(first.map_or("", Goal::key)),
                reader.key(second.key())
            )),
        }
    }

    /// The key of a `[[tenant]]` that gives it.
    pub fn key(self) -> &'static str {
        match self {
            Goal::HitRatio(_) => "goal_hit_ratio",
            Goal::Latency(_) => "goal_latency",
            Goal::Response(ResponseGoal::Mean(_)) => "goal_response",
            Goal::Response(ResponseGoal::P99(_)) => "goal_p99",
        }
    }

    /// The response time promised, as measured.
    pub fn response(self) -> Option<ResponseGoal> {
        match self {
            Goal::Response(goal) => Some(goal),
            Goal::HitRatio(_) | Goal::Latency(_) => None,
        }
    }

    /// The hit ratio that meets the goal when a hit takes `hit` and a miss `miss`; nothing for a
    /// measured response time. Errors: a latency that no hit ratio gives, or that any gives.
    pub fn hit_ratio(self, hit: Nanos, miss: Nanos) -> Result<Option<f64>, String> {
        match self {
            Goal::Response(_) => Ok(None),
            Goal::HitRatio(ratio) => Ok(Some(ratio)),
            Goal::Latency(time) if hit <= time && time < miss => {
                Ok(Some((miss.0 - time.0) as f64 / (miss.0 - hit.0) as f64))
            }
            Goal::Latency(time) => Err(format!(
                "found `{time}`, expected at least {hit} (`replay.hit_time`) and less than {miss} \
                 (`replay.miss_time`)"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_stands_for_a_hit_ratio() {
        let (hit, miss) = (Nanos(200_000), Nanos(10_000_000));
        let ratio = |time| Goal::Latency(Nanos(time)).hit_ratio(hit, miss);
        assert_eq!(ratio(200_000), Ok(Some(1.0)));
        assert_eq!(ratio(5_100_000), Ok(Some(0.5)));
        let words = "found `100us`, expected at least 200us (`replay.hit_time`) and less than 10ms \
                     (`replay.miss_time`)";
        assert_eq!(ratio(100_000), Err(words.to_owned()));
        assert!(ratio(10_000_000).is_err());
    }

    #[test]
    fn a_measured_response_is_no_hit_ratio_and_one_goal_is_enough() {
        let reader = Reader::new("tenant[1]", None);
        let table = TenantTable { goal_p99: Some(Nanos(5_000_000)), ..TenantTable::default() };
        let goal = Goal::new(&table, &reader).unwrap().unwrap();
        assert_eq!(goal.response(), Some(ResponseGoal::P99(Nanos(5_000_000))));
        assert_eq!(goal.hit_ratio(Nanos(1), Nanos(2)), Ok(None));
        let table = TenantTable { goal_hit_ratio: Some(0.5), ..table };
        let error = Goal::new(&table, &reader).unwrap_err();
        let expected = "found both `tenant[1].goal_hit_ratio` and `tenant[1].goal_p99`, expected \
                        one of them";
        assert_eq!(error, expected);
    }
}
