//! Policies of code outside (`python:...`): finding the code, and calling it from threads.
//!
//! For: runs and comparisons. Must never know: which language the code is in, cases (see
//! `case_code`). The code is found before anything is replayed and makes one cache on trial.

use crate::ExperimentError;
use crate::progress::{no_threads, with_threads};
use crate::spec::Scheme;
use cachewright_policy::foreign::is_foreign;
use cachewright_policy::{CodeFault, ForeignClass, ForeignCode};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Capacity of the cache that is made on trial, in blocks.
const TRIAL_BLOCKS: u32 = 1;

/// Finds code by the name of its policy.
pub trait ForeignLoader: Send + Sync {
    /// The code called `name` in the stack file at `origin`. Errors: what was found and expected.
    fn load(&self, name: &str, origin: &Path) -> Result<Arc<dyn ForeignClass>, String>;

    /// Runs `work`, the whole life of a thread from which caches of the code are called, with
    /// what the code keeps for a thread.
    fn around_thread(&self, work: &mut (dyn FnMut() + Send));
}

/// The policies of code outside that a run may use, and the first fault of any of them.
#[derive(Clone, Default)]
pub struct ForeignPolicies {
    loader: Option<Arc<dyn ForeignLoader>>,
    fault: Arc<CodeFault>,
}

impl fmt::Debug for ForeignPolicies {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "ForeignPolicies({})", if self.loader.is_some() { "some" } else { "none" })
    }
}

impl ForeignPolicies {
    /// Those that `loader` finds.
    pub fn new(loader: Arc<dyn ForeignLoader>) -> ForeignPolicies {
        ForeignPolicies { loader: Some(loader), fault: Arc::default() }
    }

    /// The code of a policy, if it stands outside. Errors: the code is not found, or
    /// makes no cache.
    pub fn find(&self, named: &Scheme, origin: &Path) -> Result<Option<ForeignCode>, String> {
        if !is_foreign(&named.name) {
            return Ok(None);
        }
        let loader = self.loader.as_ref().ok_or_else(|| {
            let name = &named.name;
            let expected = "which only `run` and `compare` take; expected a policy of the registry";
            format!("found `{name}`, a policy written in Python, {expected}")
        })?;
        let class = loader.load(&named.name, origin)?;
        let tried = class.make(TRIAL_BLOCKS, &named.pairs);
        tried.map_err(|error| format!("`{}`: {error}", named.name))?;
        let (name, fault) = (named.name.clone(), Arc::clone(&self.fault));
        Ok(Some(ForeignCode { name, class, fault }))
    }

    /// Runs `work` in a pool of `threads` threads (0: one per processor), from which code outside
    /// is called if `called` says so.
    pub fn with_threads<T: Send>(
        &self,
        threads: usize,
        called: bool,
        work: impl FnOnce() -> Result<T, ExperimentError> + Send,
    ) -> Result<T, ExperimentError> {
        let Some(loader) = self.loader.as_ref().filter(|_| called) else {
            return with_threads(threads, work);
        };
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let thread = |thread: rayon::ThreadBuilder| {
            let mut thread = Some(thread);
            loader.around_thread(&mut || {
                thread.take().into_iter().for_each(rayon::ThreadBuilder::run);
            });
        };
        match builder.build_scoped(thread, |pool| pool.install(work)) {
            Ok(done) => done,
            Err(error) => Err(no_threads(threads, &error)),
        }
    }

    /// Whether nothing has gone wrong yet.
    pub fn is_sound(&self) -> bool {
        self.fault.message().is_none()
    }

    /// What was done, unless code outside failed meanwhile.
    pub fn checked<T>(&self, done: Result<T, ExperimentError>) -> Result<T, ExperimentError> {
        match self.fault.message() {
            Some(message) => Err(ExperimentError::Policy(message)),
            None => done,
        }
    }
}
