//! The live server of a stack, and the tools for its devices.
//!
//! For: passing stack text in, sentences and documents out. Must never know: what is served. A
//! signal that raises an exception in Python stops a server in order.

use crate::errors::{RunError, of_live};
use crate::work;
use cachewright_daemon::load::{self, LoadSettings};
use cachewright_daemon::offline::{Calibration, Overwrite};
use cachewright_daemon::{
    Accepted, ControlSignals, LiveError, LivePlan, OperatorLine, Server, ServerCommand, Stopped,
    explain, offline,
};
use cachewright_experiment::Progress;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

type Pairs = Vec<(String, String)>;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(serve, module)?)?;
    module.add_function(wrap_pyfunction!(live, module)?)?;
    module.add_function(wrap_pyfunction!(live_calibrate, module)?)?;
    module.add_function(wrap_pyfunction!(live_load, module)?)?;
    module.add_function(wrap_pyfunction!(live_explain, module)?)
}

/// Serves the volumes of a stack until a signal raises `KeyboardInterrupt`; `say` gets what
/// operators are to read, line by line; `record` is the new file of a recording; `changed` are the
/// tenants whose changed devices are accepted, and `discard_dirty` goes on without what another set
/// has. Returns the bytes that only the cache has.
#[pyfunction]
fn serve(
    py: Python<'_>,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    say: Py<PyAny>,
    record: Option<PathBuf>,
    changed: Vec<String>,
    discard_dirty: bool,
) -> PyResult<u64> {
    let accepted = Accepted { changed, discard_dirty };
    let outcome = Mutex::new(None);
    let raised = work::run(py, None, |go_on| {
        let print = |line: &str| Python::attach(|py| say.call1(py, (line,)).map(drop));
        let stop = || !go_on(Progress { stage: "serving", done: 0, total: None });
        let record = record.as_deref();
        let done = served(stack, origin, &settings, record, accepted, print, stop);
        if let Ok(mut outcome) = outcome.lock() {
            *outcome = Some(done);
        }
        Ok(())
    });
    let outcome = outcome.into_inner().ok().flatten();
    match (outcome, raised) {
        (Some(Err(error)), _) => Err(error),
        (_, Err(error)) if !error.is_instance_of::<PyKeyboardInterrupt>(py) => Err(error),
        (Some(Ok(stopped)), _) => Ok(stopped.dirty_bytes),
        // A panic while it stopped.
        (None, _) => Err(RunError::new_err("a defect stopped the server; please report it")),
    }
}

/// Errors: what stands in the way of a server; an exception of `print`.
fn served(
    stack: &str,
    origin: PathBuf,
    settings: &Pairs,
    record: Option<&Path>,
    accepted: Accepted,
    print: impl Fn(&str) -> PyResult<()>,
    mut stop: impl FnMut() -> bool,
) -> PyResult<Stopped> {
    let plan = LivePlan::read(stack, &origin, settings).map_err(of_live)?.accepting(accepted);
    let signals = ControlSignals::listen().map_err(of_live)?;
    let server = Server::start(&plan, record).map_err(of_live)?;
    server.lines().iter().try_for_each(|line| print(&line.text))?;
    // A server that serves is not stopped by a line that cannot be printed.
    let mut say = |line: &OperatorLine| drop(print(&line.text));
    let mut wish = || match () {
        () if stop() => ServerCommand::Stop,
        () if signals.take_reload() => {
            ServerCommand::Reload(Box::new(LivePlan::open(&origin, settings)))
        }
        () if signals.take_roll() => ServerCommand::Roll,
        () => ServerCommand::GoOn,
    };
    let stopped = server.run(&mut wish, &mut say).map_err(of_live)?;
    stopped.lines.iter().try_for_each(|line| print(line))?;
    Ok(stopped)
}

/// The document of an offline tool; `flag` is its option, `force` that of a format, and `changed`
/// are the tenants whose changed devices a write-back accepts.
#[pyfunction]
fn live(
    py: Python<'_>,
    tool: &str,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    flag: bool,
    force: bool,
    changed: Vec<String>,
) -> PyResult<String> {
    let document = py.detach(|| {
        let plan = LivePlan::read(stack, &origin, &settings)?;
        let document = match tool {
            "format" => {
                let overwrite = Overwrite { dirty: flag, foreign: force };
                serde_json::to_value(offline::format(&plan, overwrite)?)
            }
            "check" => serde_json::to_value(offline::check(&plan)?),
            "dump" => serde_json::to_value(offline::dump(&plan, flag)?),
            "writeback" => {
                let plan = plan.accepting(Accepted { changed, discard_dirty: flag });
                serde_json::to_value(offline::writeback(&plan)?)
            }
            "repair" => serde_json::to_value(offline::repair(&plan, flag)?),
            other => return Err(LiveError::Refused(format!("found no tool `{other}`"))),
        };
        document.map_err(|error| LiveError::Failed(format!("answer: {error}")))
    });
    document.map(|document: Value| document.to_string()).map_err(of_live)
}

/// The document of a calibration: `bounds` are the reads of each device, and those at one time.
#[pyfunction]
fn live_calibrate(
    py: Python<'_>,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    bounds: (usize, usize),
) -> PyResult<String> {
    let (reads, depth) = bounds;
    let how = Calibration { reads, depth };
    let answer = py.detach(|| offline::calibrate(stack, &origin, &settings, how));
    let answer = answer.map_err(of_live)?;
    serde_json::to_string(&answer).map_err(|error| RunError::new_err(error.to_string()))
}

/// The document of what became of a block, by recordings that follow each other: that which holds
/// a byte of a volume.
#[pyfunction]
fn live_explain(
    py: Python<'_>,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    recordings: Vec<PathBuf>,
    volume: &str,
    offset_bytes: u64,
) -> PyResult<String> {
    let answer = py.detach(|| {
        let plan = LivePlan::read(stack, &origin, &settings)?;
        explain::explain(&plan, &recordings, volume, offset_bytes)
    });
    serde_json::to_string(&answer.map_err(of_live)?)
        .map_err(|error| RunError::new_err(error.to_string()))
}

/// The document of a load: the traces of a stack's tenants, sent to a server of the stack. `speed`
/// is how much faster than recorded; without it requests go out as answers come. `bounds` are the
/// requests of a tenant at one time, and in all.
#[pyfunction]
fn live_load(
    py: Python<'_>,
    stack: &str,
    origin: PathBuf,
    settings: Pairs,
    bounds: (usize, u64),
    speed: Option<f64>,
) -> PyResult<String> {
    let (depth, max_requests) = bounds;
    let how = LoadSettings { depth, max_requests, speed };
    let answer = py.detach(|| load::load(stack, &origin, &settings, how)).map_err(of_live)?;
    serde_json::to_string(&answer).map_err(|error| RunError::new_err(error.to_string()))
}
