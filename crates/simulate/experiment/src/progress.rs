//! Progress of a long run, which its caller can stop, and the threads of a run.

use crate::ExperimentError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, in a word or two.
    pub stage: &'static str,
    /// Units done.
    pub done: u64,
    /// Units in all, if known.
    pub total: Option<u64>,
}

/// Called now and then, also from worker threads; returning false stops the run.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) -> bool + Sync);

/// The progress of one stage made of parts that run beside each other; copies count together.
#[derive(Clone)]
pub struct Sum<'a> {
    stage: &'static str,
    done: Arc<AtomicU64>,
    total: Option<u64>,
    progress: OnProgress<'a>,
}

impl<'a> Sum<'a> {
    /// Nothing done yet of `total`; of none where parts are found on the way.
    pub fn new(stage: &'static str, total: Option<u64>, progress: OnProgress<'a>) -> Sum<'a> {
        Sum { stage, done: Arc::default(), total, progress }
    }

    /// The same for a part that begins now. Errors: stopped already.
    pub fn begun_part(&self) -> Result<impl FnMut(u64) -> bool + use<'_, 'a>, ExperimentError> {
        let mut part = self.part();
        if part(0) { Ok(part) } else { Err(ExperimentError::Cancelled) }
    }

    /// What a part tells how much of it is done; false stops it.
    pub fn part(&self) -> impl FnMut(u64) -> bool + use<'_, 'a> {
        let mut before = 0;
        move |mine| {
            let more = mine - std::mem::replace(&mut before, mine);
            let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
            let (stage, total) = (self.stage, self.total);
            (self.progress)(Progress { stage, done, total })
        }
    }
}

/// Threads of one run at most.
pub const MAX_THREADS: usize = 1024;

/// Refuses more threads than a run may have.
pub fn check_threads(threads: usize) -> Result<(), ExperimentError> {
    if threads <= MAX_THREADS {
        return Ok(());
    }
    Err(ExperimentError::Option(format!(
        "`threads`: found {threads}, expected 1 to {MAX_THREADS}, or 0 for one per processor"
    )))
}

/// Runs `work` in a pool of `threads` threads (0: one per processor). Errors: too many, or the
/// system has no more.
pub fn with_threads<T: Send>(
    threads: usize,
    work: impl FnOnce() -> Result<T, ExperimentError> + Send,
) -> Result<T, ExperimentError> {
    check_threads(threads)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    match pool {
        Ok(pool) => pool.install(work),
        Err(error) => Err(no_threads(threads, &error)),
    }
}

/// The refusal of a number of threads that the machine does not have.
pub fn no_threads(threads: usize, error: &rayon::ThreadPoolBuildError) -> ExperimentError {
    ExperimentError::Io {
        path: "threads".into(),
        message: format!("could not start {threads} threads: {error}"),
    }
}
