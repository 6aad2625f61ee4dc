//! What a case asks of the code of its policy, where that stands outside (`python:...`).
//!
//! For: runs and comparisons. Must never know: which language the code is in. A class without the
//! methods that a case needs is refused by name. Answers of such cases are never kept in a result
//! folder: nothing says whether the code is still the same.

use crate::ExperimentError;
use crate::case::Case;
use crate::record::RecordedTenants;
use cachewright_cache::WriteMode;
use cachewright_partition::Need;

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
            (layout != "striped", format!("`cache.layout`: `{layout}`")),
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
