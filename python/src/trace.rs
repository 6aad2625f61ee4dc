//! The trace room: reading and writing by columns, and merging several traces by time.
//!
//! For: numpy columns out of and into traces. Must never know: any format. Columns are
//! `(time_ns u64, offset_bytes u64, length_bytes u64, op u8, volume u32)`; `op` is 0 read, 1 write,
//! 2 trim, 3 flush; `volume` indexes `volumes()`.

use crate::errors::{SpecError, TraceError, of_trace};
use cachewright_trace::merge::{MergeClock, MergedRequests, TenantInput, WorkloadBatch};
use cachewright_trace::reader::{OnBadRecord, OpenOptions};
use cachewright_trace::{Batch, Skipped, files_of, merge, write};
use cachewright_types::{Nanos, Op};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

type Columns<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyArray1<u32>>,
);
type Options = BTreeMap<String, String>;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TraceReader>()?;
    module.add_class::<TraceWriter>()?;
    module.add_class::<TraceMerger>()?;
    module.add_class::<VolumeChoice>()?;
    module.add_function(wrap_pyfunction!(recognise, module)?)
}

/// A trace as Python names it: a path, or the files of one recording.
#[derive(FromPyObject)]
pub enum TracePaths {
    /// One file, or a pattern.
    One(PathBuf),
    /// Files of one recording.
    Several(Vec<PathBuf>),
}

impl TracePaths {
    /// The first file, with the others among the options. Errors: no file.
    pub fn open(self, options: OpenOptions) -> PyResult<(PathBuf, OpenOptions)> {
        let mut files = match self {
            TracePaths::One(path) => vec![path],
            TracePaths::Several(files) => files,
        };
        if files.is_empty() {
            return Err(SpecError::new_err("found no file, expected one or more of a trace"));
        }
        let parts = files.split_off(1);
        Ok((files.remove(0), OpenOptions { parts, ..options }))
    }
}

/// Which volumes of a trace a text names.
#[pyclass(module = "cachewright._native", frozen)]
struct VolumeChoice(Mutex<merge::VolumeChoice>);

#[pymethods]
impl VolumeChoice {
    #[new]
    fn new(text: &str) -> Self {
        VolumeChoice(Mutex::new(merge::VolumeChoice::new(text)))
    }

    /// Whether each of the volumes met so far is chosen, by number.
    fn among(&self, volumes: Vec<String>) -> PyResult<Vec<bool>> {
        Ok(held(&self.0)?.among(&volumes).to_vec())
    }

    /// Errors, at the trace's end: a volume that is named and not among `volumes`.
    fn refuse_unknown(&self, volumes: Vec<String>) -> PyResult<()> {
        held(&self.0)?.refuse_unknown(&volumes).map_err(of_trace)
    }
}

/// The options of the trace room from those of Python.
pub fn open_options(
    format: Option<String>,
    on_bad_record: &str,
    format_options: Options,
) -> PyResult<OpenOptions> {
    let on_bad_record = match on_bad_record {
        "fail" => OnBadRecord::Fail,
        "skip" => OnBadRecord::Skip,
        other => {
            let text = format!("`on_bad_record`: found `{other}`, expected `fail` or `skip`");
            return Err(SpecError::new_err(text));
        }
    };
    Ok(OpenOptions { format, on_bad_record, format_options, ..OpenOptions::default() })
}

/// The name of the format that the content of `path` fits.
#[pyfunction]
fn recognise(py: Python<'_>, path: PathBuf) -> PyResult<&'static str> {
    py.detach(|| cachewright_trace::recognise(&path)).map(|entry| entry.name).map_err(of_trace)
}

/// What a mutex holds. Errors: a thread that held it has failed.
pub fn held<T>(mutex: &Mutex<T>) -> PyResult<MutexGuard<'_, T>> {
    mutex.lock().map_err(|_| TraceError::new_err("this trace failed before; open it again"))
}

fn columns<'py>(py: Python<'py>, batch: Batch) -> Columns<'py> {
    let op: Vec<u8> = batch.op.into_iter().map(|op| op as u8).collect();
    (
        batch.time_ns.into_pyarray(py),
        batch.offset_bytes.into_pyarray(py),
        batch.length_bytes.into_pyarray(py),
        op.into_pyarray(py),
        batch.volume.into_pyarray(py),
    )
}

type Skips = (u64, u64, Vec<String>);

fn skips(skipped: &Skipped) -> Skips {
    let examples = skipped.examples.iter().map(ToString::to_string).collect();
    (skipped.bad, skipped.irrelevant, examples)
}

/// A trace being read.
#[pyclass(module = "cachewright._native", frozen)]
struct TraceReader {
    paths: Vec<PathBuf>,
    reader: Mutex<Box<dyn cachewright_trace::TraceReader>>,
}

#[pymethods]
impl TraceReader {
    #[new]
    fn new(
        py: Python<'_>,
        path: TracePaths,
        format: Option<String>,
        on_bad_record: &str,
        options: Options,
    ) -> PyResult<Self> {
        let (path, options) = path.open(open_options(format, on_bad_record, options)?)?;
        let reader = py.detach(|| cachewright_trace::open(&path, &options)).map_err(of_trace)?;
        let paths = files_of(&path, &options).map_err(of_trace)?;
        Ok(TraceReader { paths, reader: Mutex::new(reader) })
    }

    /// The next requests, at most `limit`; empty columns at the end.
    fn read<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Columns<'py>> {
        let batch = py.detach(|| {
            let mut batch = Batch::default();
            held(&self.reader)?.read(&mut batch, limit).map_err(of_trace)?;
            Ok::<_, PyErr>(batch)
        })?;
        Ok(columns(py, batch))
    }

    /// The files that are read.
    fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    /// Names of the volumes met so far.
    fn volumes(&self) -> PyResult<Vec<String>> {
        Ok(held(&self.reader)?.volumes().to_vec())
    }

    /// Malformed records skipped, irrelevant ones, the first malformed ones.
    fn skipped(&self) -> PyResult<Skips> {
        Ok(skips(held(&self.reader)?.skipped()))
    }

    /// What was done to the trace beside reading it, and what its content read so far shows.
    fn notes(&self) -> PyResult<Vec<String>> {
        Ok(held(&self.reader)?.notes())
    }

    /// Whether records carry times; without, `time_ns` is the number of the request.
    fn has_times(&self) -> PyResult<bool> {
        Ok(held(&self.reader)?.has_times())
    }

    /// Requests in the file if its format states it.
    fn requests_hint(&self) -> PyResult<Option<u64>> {
        Ok(held(&self.reader)?.requests_hint())
    }
}

/// A trace being written; without `finish` it leaves no file. Without a format the suffix of the
/// path names one.
#[pyclass(module = "cachewright._native", frozen)]
struct TraceWriter(Mutex<Option<Box<dyn write::TraceWriter>>>);

#[pymethods]
impl TraceWriter {
    #[new]
    fn new(path: PathBuf, format: Option<String>, options: Options) -> PyResult<Self> {
        let format = match &format {
            Some(format) => format.as_str(),
            None => write::format_by_suffix(&path).map_err(of_trace)?,
        };
        let writer = cachewright_trace::create_writer(format, &path, &options).map_err(of_trace)?;
        Ok(TraceWriter(Mutex::new(Some(writer))))
    }

    /// Appends requests; `volume` indexes `volumes`.
    fn write(
        &self,
        py: Python<'_>,
        time_ns: PyReadonlyArray1<'_, u64>,
        offset_bytes: PyReadonlyArray1<'_, u64>,
        length_bytes: PyReadonlyArray1<'_, u64>,
        op: PyReadonlyArray1<'_, u8>,
        volume: PyReadonlyArray1<'_, u32>,
        volumes: Vec<String>,
    ) -> PyResult<()> {
        let batch = Batch {
            time_ns: time_ns.as_array().to_vec(),
            offset_bytes: offset_bytes.as_array().to_vec(),
            length_bytes: length_bytes.as_array().to_vec(),
            op: op.as_array().iter().map(|number| op_of(*number)).collect::<PyResult<_>>()?,
            volume: volume.as_array().to_vec(),
            calls: Vec::new(),
        };
        check(&batch, &volumes)?;
        py.detach(|| match held(&self.0)?.as_mut() {
            Some(writer) => writer.write(&batch, &volumes).map_err(of_trace),
            None => Err(closed()),
        })
    }

    /// Removes what is written so far; nothing after `finish`.
    fn discard(&self) {
        // A poisoned lock means that a write failed; its writer removes its file when dropped.
        if let Ok(mut writer) = self.0.lock() {
            drop(writer.take());
        }
    }

    /// Completes the file: requests written, requests that the format cannot express, and seconds
    /// by which times were moved back.
    fn finish(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        let writer = held(&self.0)?.take().ok_or_else(closed)?;
        let written = py.detach(|| writer.finish()).map_err(of_trace)?;
        Ok((written.requests, written.left_out, written.moved_s))
    }
}

fn closed() -> PyErr {
    TraceError::new_err("this trace has been finished; no request can follow")
}

fn op_of(number: u8) -> PyResult<Op> {
    Op::from_number(number).ok_or_else(|| {
        SpecError::new_err(format!("`op`: found {number}, expected 0 (read) to 3 (flush)"))
    })
}

fn check(batch: &Batch, volumes: &[String]) -> PyResult<()> {
    let lens = [
        ("offset_bytes", batch.offset_bytes.len()),
        ("length_bytes", batch.length_bytes.len()),
        ("op", batch.op.len()),
        ("volume", batch.volume.len()),
    ];
    let len = batch.time_ns.len();
    if let Some((name, found)) = lens.iter().find(|(_, found)| *found != len) {
        return Err(SpecError::new_err(format!(
            "`{name}`: found {found} values, expected {len} as in `time_ns`"
        )));
    }
    match batch.volume.iter().find(|volume| **volume as usize >= volumes.len()) {
        None => Ok(()),
        Some(volume) => Err(SpecError::new_err(format!(
            "`volume`: found index {volume}, expected less than {}",
            volumes.len()
        ))),
    }
}

/// Several traces by time; every (trace, volume) is a volume of the result, `NAME/VOLUME`.
#[pyclass(module = "cachewright._native", frozen)]
struct TraceMerger {
    paths: Vec<PathBuf>,
    merged: Mutex<MergedRequests>,
}

#[pymethods]
impl TraceMerger {
    /// `inputs` are (name, path, format, time scale, start in nanoseconds). With `common_clock` the
    /// earliest first record is time zero of all of them.
    #[new]
    #[pyo3(signature = (inputs, on_bad_record, options, common_clock = false))]
    fn new(
        py: Python<'_>,
        inputs: Vec<(String, PathBuf, Option<String>, f64, u64)>,
        on_bad_record: &str,
        options: Options,
        common_clock: bool,
    ) -> PyResult<Self> {
        let mut paths = Vec::new();
        for input in &inputs {
            paths.extend(files_of(&input.1, &OpenOptions::default()).map_err(of_trace)?);
        }
        let mut tenants = Vec::with_capacity(inputs.len());
        for (name, path, format, time_scale, start_ns) in inputs {
            let open = open_options(format, on_bad_record, options.clone())?;
            let input = TenantInput::path(&name, path, open);
            tenants.push(TenantInput { time_scale, start: Nanos(start_ns), ..input });
        }
        let clock = if common_clock { MergeClock::Common } else { MergeClock::Own };
        let merged = py.detach(|| MergedRequests::open_on(clock, tenants)).map_err(of_trace)?;
        Ok(TraceMerger { paths, merged: Mutex::new(merged) })
    }

    /// The next requests, at most `limit`; empty columns at the end.
    fn read<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Columns<'py>> {
        let batch = py.detach(|| {
            let mut batch = WorkloadBatch::default();
            held(&self.merged)?.read(&mut batch, limit).map_err(of_trace)?;
            Ok::<_, PyErr>(batch)
        })?;
        let WorkloadBatch { time_ns, offset_bytes, length_bytes, op, space, .. } = batch;
        let volume = space;
        let batch = Batch { time_ns, offset_bytes, length_bytes, op, volume, calls: Vec::new() };
        Ok(columns(py, batch))
    }

    /// The files that are read.
    fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    /// Names of the volumes met so far.
    fn volumes(&self) -> PyResult<Vec<String>> {
        let merged = held(&self.merged)?;
        let name = |tenant: u16| merged.tenants().get(usize::from(tenant)).map_or("", |n| n);
        let spaces = merged.spaces().iter();
        Ok(spaces.map(|space| format!("{}/{}", name(space.tenant), space.volume)).collect())
    }

    /// Malformed records skipped, irrelevant ones, the first malformed ones; over all traces.
    fn skipped(&self) -> PyResult<Skips> {
        let merged = held(&self.merged)?;
        let mut sum: Skips = (0, 0, Vec::new());
        for (index, name) in merged.tenants().iter().enumerate() {
            let Some(skipped) = merged.skipped(index as u16) else { continue };
            let (bad, irrelevant, examples) = skips(skipped);
            sum.0 += bad;
            sum.1 += irrelevant;
            sum.2.extend(examples.into_iter().map(|example| format!("{name}: {example}")));
        }
        Ok(sum)
    }

    /// What was done to the traces beside reading them, and what they show so far.
    fn notes(&self) -> PyResult<Vec<String>> {
        let merged = held(&self.merged)?;
        let names = merged.tenants().iter().enumerate();
        let notes = names.flat_map(|(index, name)| {
            let notes = merged.notes(index as u16).into_iter();
            notes.map(move |note| format!("{name}: {note}"))
        });
        Ok(notes.collect())
    }

    /// Requests to come if every format states it.
    fn requests_hint(&self) -> PyResult<Option<u64>> {
        Ok(held(&self.merged)?.requests_hint())
    }
}
