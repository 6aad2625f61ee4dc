//! Long work beside a waiting interpreter.
//!
//! For: running a Rust function on a thread of its own while this thread hands progress to Python
//! and looks for signals; a signal or a call-back that returns False cancels. Must never know: what
//! the work is.

use crate::errors::RunError;
use cachewright_experiment::{ExperimentError, Progress};
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often progress is handed over and signals are looked for.
const TICK: Duration = Duration::from_millis(80);

/// Runs `work` and returns what it gives. Its argument takes progress and returns whether to go on.
///
/// Errors: the call-back's or a signal's exception once the work has stopped, with a note of what
/// is kept of it; a panic of the work.
pub fn run<T: Send>(
    py: Python<'_>,
    on_progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&(dyn Fn(Progress) -> bool + Sync)) -> Result<T, ExperimentError> + Send,
) -> PyResult<Result<T, ExperimentError>> {
    let cancelled = AtomicBool::new(false);
    let latest: Mutex<Option<Progress>> = Mutex::new(None);
    let note = |progress: Progress| {
        if let Ok(mut latest) = latest.lock() {
            *latest = Some(progress);
        }
        !cancelled.load(Ordering::Relaxed)
    };
    let mut raised = None;
    let done = std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let note = &note;
        let worker = scope.spawn(move || {
            let result = work(note);
            // The receiver lives until this thread has been joined.
            let _ = sender.send(());
            result
        });
        let receiver = Mutex::new(receiver);
        loop {
            let waited = py.detach(|| receiver.lock().ok().map(|r| r.recv_timeout(TICK)));
            if !matches!(waited, Some(Err(RecvTimeoutError::Timeout))) {
                break;
            }
            if raised.is_none() {
                let news = latest.lock().ok().and_then(|mut latest| latest.take());
                raised = tick(py, on_progress, news).err();
                cancelled.store(raised.is_some(), Ordering::Relaxed);
            }
        }
        py.detach(|| worker.join())
    });
    match (raised, done) {
        (Some(error), done) => {
            let stopped = done.ok().and_then(Result::err);
            if let Some(kept) = stopped.and_then(|stopped| stopped.kept()) {
                error.value(py).call_method1("add_note", (kept,))?;
            }
            Err(error)
        }
        (None, Ok(result)) => Ok(result),
        (None, Err(_)) => Err(RunError::new_err("a defect stopped the run; please report it")),
    }
}

/// Looks for signals and hands `news` to the call-back; an error means cancel.
fn tick(
    py: Python<'_>,
    on_progress: Option<&Bound<'_, PyAny>>,
    news: Option<Progress>,
) -> PyResult<()> {
    py.check_signals()?;
    let (Some(call), Some(news)) = (on_progress, news) else { return Ok(()) };
    let answer = call.call1((news.stage, news.done, news.total))?;
    if answer.is_none() || answer.is_truthy()? {
        return Ok(());
    }
    Err(RunError::new_err("cancelled by the progress call-back"))
}
