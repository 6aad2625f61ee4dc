//! Progress of a long run.
//!
//! For: telling the caller how far a stage is, and being told to stop. Must never know: clocks.

use crate::ExperimentError;

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

/// Runs `work` in a pool of `threads` threads (0: one per processor).
pub fn with_threads<T: Send>(
    threads: usize,
    work: impl FnOnce() -> Result<T, ExperimentError> + Send,
) -> Result<T, ExperimentError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    match pool {
        Ok(pool) => pool.install(work),
        Err(error) => Err(ExperimentError::Io {
            path: "threads".into(),
            message: format!("could not start {threads} threads: {error}"),
        }),
    }
}
