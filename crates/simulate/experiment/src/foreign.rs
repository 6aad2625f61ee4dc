//! Policies of code outside (`python:...`): finding the code, calling it from threads, and which
//! methods a case needs of it.
//!
//! The code is found before anything is replayed and makes one cache on trial. Answers of such
//! cases are never kept in a result folder: nothing says whether the code is still the same.

use crate::ExperimentError;
use crate::case::Case;
use crate::progress::{no_threads, with_threads};
use crate::record::RecordedTenants;
use crate::spec::Scheme;
use cachewright_cache::WriteMode;
use cachewright_partition::Need;
use cachewright_policy::foreign::is_foreign;
use cachewright_policy::{CodeFault, ForeignClass, ForeignCode};
use cachewright_stack::cache::STRIPED;
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

impl Case {
    /// Whether its policy stands outside.
    pub fn has_code(&self) -> bool {
        self.caching.foreign.is_some()
    }

    /// Whether its answer may be kept for later runs.
    pub fn is_kept(&self) -> bool {
        !self.has_code()
    }

    /// Checks that the code of its policy has the methods that its settings need. Errors: one is
    /// missing.
    pub fn check_code(&self) -> Result<(), ExperimentError> {
        let Some(code) = &self.caching.foreign else { return Ok(()) };
        let drive = self.caches_in_drive();
        let layout = &self.spec.cache.layout.name;
        let read_only = self.spec.cache.write == WriteMode::ReadOnly;
        let partition = &self.spec.cache.partition.name;
        let resizes = [
            (
                self.needs.partitioner_needs(Need::Interval),
                format!("`cache.partition`: `{partition}`"),
            ),
            (drive, "`machine.system = \"ssd\"`".to_owned()),
            (layout != STRIPED, format!("`cache.layout`: `{layout}`")),
        ];
        let removes = [
            (read_only, "`cache.write`: `read-only`".to_owned()),
            (drive, "`machine.system = \"ssd\"`".to_owned()),
        ];
        self.has(code.class.resizes(), "resize", &resizes, "")?;
        self.has(code.class.removes(), "remove", &removes, "")
    }

    /// The same for what its traces hold.
    pub fn check_trims(&self, recorded: &RecordedTenants) -> Result<(), ExperimentError> {
        let Some(code) = &self.caching.foreign else { return Ok(()) };
        let trimmed = recorded.recording.totals.iter().position(|totals| totals.requests[2] > 0);
        let tenant = trimmed.and_then(|tenant| self.spec.tenants.get(tenant));
        let name = tenant.map_or("", |tenant| &tenant.name);
        let what = format!("trims in the trace of tenant `{name}`");
        let needed = [(tenant.is_some() && self.spec.cache.drops_trimmed(), what)];
        self.has(code.class.removes(), "remove", &needed, ", or `cache.trim = \"ignore\"`")
    }

    /// Refuses the first of `needed` that is so if the code has no such method; `remedy` is what
    /// else would help.
    fn has(
        &self,
        has: bool,
        method: &str,
        needed: &[(bool, String)],
        remedy: &str,
    ) -> Result<(), ExperimentError> {
        match needed.iter().find(|(needed, _)| *needed && !has) {
            None => Ok(()),
            Some((_, what)) => Err(self.refuse(format!(
                "`cache.policy`: `{}` has no method `{method}`, which it needs for {what}; \
                 expected one{remedy}",
                self.spec.cache.policy.name
            ))),
        }
    }
}
