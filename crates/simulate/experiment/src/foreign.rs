//! Policies of code outside (`python:...`): finding the code, and refusing what it cannot do.
//!
//! For: runs and comparisons. Must never know: which language the code is in. The code is found
//! before anything is replayed and makes one cache on trial, so that a class without the methods
//! that a case needs is refused by name. Answers of such cases are never kept in a result folder:
//! nothing says whether the code is still the same.

use crate::ExperimentError;
use crate::case::Case;
use crate::progress::{no_threads, with_threads};
use crate::record::Recorded;
use crate::spec::{Front, Scheme, StackSpec};
use cachewright_cache::WriteMode;
use cachewright_partition::Need;
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
    /// is called if one of `cases` has some.
    pub fn with_threads<T: Send>(
        &self,
        threads: usize,
        cases: &[Case],
        work: impl FnOnce() -> Result<T, ExperimentError> + Send,
    ) -> Result<T, ExperimentError> {
        let called = cases.iter().any(|case| case.caching.foreign.is_some());
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

impl Case {
    /// Whether its answer may be kept for later runs.
    pub fn is_kept(&self) -> bool {
        self.caching.foreign.is_none()
    }

    /// Checks that the code of its policy has the methods that its settings need. Errors: one is
    /// missing.
    pub fn check_code(&self, origin: &Path) -> Result<(), ExperimentError> {
        let Some(code) = &self.caching.foreign else { return Ok(()) };
        let drive = |stack: &StackSpec| matches!(stack.front, Front::DataCache(_));
        let drive = self.spec.stack.as_ref().is_some_and(drive);
        let layout = &self.spec.cache.layout.name;
        let read_only = self.spec.cache.write == WriteMode::ReadOnly;
        let partition = &self.spec.cache.partition.name;
        let resizes = [
            (self.needs(Need::Interval), format!("`cache.partition`: `{partition}`")),
            (drive, "`machine.system = \"ssd\"`".to_owned()),
            (layout != "striped", format!("`cache.layout`: `{layout}`")),
        ];
        let removes = [
            (read_only, "`cache.write`: `read-only`".to_owned()),
            (drive, "`machine.system = \"ssd\"`".to_owned()),
        ];
        self.has(code.class.resizes(), "resize", &resizes, origin)?;
        self.has(code.class.removes(), "remove", &removes, origin)
    }

    /// The same for what its traces hold.
    pub fn check_trims(&self, recorded: &Recorded, origin: &Path) -> Result<(), ExperimentError> {
        let Some(code) = &self.caching.foreign else { return Ok(()) };
        let trimmed = recorded.recording.totals.iter().position(|totals| totals.requests[2] > 0);
        let tenant = trimmed.and_then(|tenant| self.spec.tenants.get(tenant));
        let name = tenant.map_or("", |tenant| &tenant.name);
        let what = format!("trims in the trace of tenant `{name}`");
        let needed = [(tenant.is_some() && self.spec.cache.trim, what)];
        self.has(code.class.removes(), "remove", &needed, origin).map_err(|error| match error {
            ExperimentError::Spec { origin, message } => {
                let message = message + ", or `cache.trim = \"ignore\"`";
                ExperimentError::Spec { origin, message }
            }
            other => other,
        })
    }

    /// Refuses the first of `needed` that is so if the code has no such method.
    fn has(
        &self,
        has: bool,
        method: &str,
        needed: &[(bool, String)],
        origin: &Path,
    ) -> Result<(), ExperimentError> {
        match needed.iter().find(|(needed, _)| *needed && !has) {
            None => Ok(()),
            Some((_, what)) => Err(ExperimentError::Spec {
                origin: origin.to_owned(),
                message: format!(
                    "`cache.policy`: `{}` has no method `{method}`, which it needs for {what}; \
                     expected one",
                    self.spec.cache.policy.name
                ),
            }),
        }
    }
}
