//! Another policy or partitioner beside what decides, in miniature: those that the stack puts on
//! trial, or the policy before, until it is known that the new one is no worse.
//!
//! A policy that has taken another one's place is judged after a cache-full of misses of a sample:
//! when the old one would have hit more, by [`WORSE_SHARE`] of all accesses, it decides again.

use crate::error::LiveError;
use crate::operator::OperatorLine;
use crate::plan::LivePlan;
use cachewright_control::{Division, SchemeTrial, TrialCounts, TrialDivision};
use cachewright_live::blocks::BlockServer;
use cachewright_policy::registry::{PolicyMaker, maker as maker_of};
use cachewright_policy::{Need, Policy};
use cachewright_result::status::{TenantTrial, TrialStatus};
use cachewright_stack::cache::{AUTO, StackFacts, auto_partition};
use cachewright_types::declare::Scheme;
use cachewright_types::registry::check_needs;

/// A new policy stays if it hits at most so much less than the old one, as a share of accesses: as
/// 10,000 sampled accesses can tell from chance.
const WORSE_SHARE: f64 = 0.02;
/// Sampled accesses that a judgement takes at least.
const LEAST_ACCESSES: u64 = 10_000;

/// What is tried.
enum Tried {
    /// The policy and the partitioner that the stack names, or those of the cache.
    Asked { policy: String, partition: String },
    /// The policy before, with the plan that it was of; the new one is judged after so many misses
    /// of the sample.
    Before { plan: Box<LivePlan>, misses: u64 },
}

/// A trial that runs.
pub(crate) struct RunningTrial {
    tried: Tried,
    begun_ns: u64,
}

/// What a trial has found of a policy that has taken another one's place.
pub(crate) enum Judgement {
    /// It stays.
    Stays(OperatorLine),
    /// The one of this plan is to decide again.
    Returns(Box<LivePlan>, OperatorLine),
}

/// The maker of the policy that a stack puts on trial, if it does. Errors: there is no such policy,
/// or it needs what only a replay has.
pub(crate) fn maker(plan: &LivePlan) -> Result<Option<PolicyMaker>, LiveError> {
    let Some(name) = &plan.serve.trial else { return Ok(None) };
    let refuse = |error: String| plan.refuse(format!("`serve.trial`: {error}"));
    let entry = cachewright_policy::entry(name).map_err(|error| refuse(error.to_string()))?;
    let remedy = |need| (need != Need::Requests).then(|| "another policy on trial".to_owned());
    check_needs("policy", entry, remedy).map_err(|error| refuse(error.to_string()))?;
    maker_of(name, &[]).map(Some).map_err(|error| refuse(error.to_string()))
}

/// The stack with the partitioner that it puts on trial, if it does. Errors: there is no such
/// partitioner, or it needs what a trial has not.
pub(crate) fn divided_otherwise(plan: &LivePlan) -> Result<Option<LivePlan>, LiveError> {
    let Some(name) = &plan.serve.trial_partition else { return Ok(None) };
    let mut tried = plan.clone();
    let tenants = &plan.stack.tenants;
    let facts = StackFacts {
        tenants: tenants.len(),
        goals: tenants.iter().any(|tenant| tenant.goal.is_some()),
        responses: true,
    };
    let chosen = match name == AUTO {
        true => auto_partition(&Scheme::named(AUTO), facts),
        false => Ok(Scheme::named(name)),
    };
    let checked = chosen.and_then(|chosen| tried.divide_by(chosen));
    // The checks are those of the cache's own partitioner.
    let by_key = |error: String| error.replacen("`cache.partition`", "`serve.trial_partition`", 1);
    checked.map_err(|error| plan.refuse(by_key(error)))?;
    Ok(Some(tried))
}

impl RunningTrial {
    /// Begins the trial that the stack asks for; ends any other if it asks for none.
    pub(crate) fn begin(
        plan: &LivePlan,
        blocks: &mut BlockServer,
        now_ns: u64,
    ) -> Result<Option<RunningTrial>, LiveError> {
        let (maker, divided) = (maker(plan)?, divided_otherwise(plan)?);
        if maker.is_none() && divided.is_none() {
            blocks.try_scheme(None);
            return Ok(None);
        }
        let mut other = |pool: usize, capacity: u32| match &maker {
            Some(maker) => maker(capacity, plan.pool_seed(pool)),
            None => plan.policy(pool, capacity),
        };
        let [present, divides, _] = plan.schemes();
        let policy = plan.serve.trial.clone().unwrap_or(present.to_owned());
        let partition = divided.as_ref().map_or(divides, |divided| divided.schemes()[1]).to_owned();
        let divided = divided.map(|divided| division(divided, blocks, now_ns)).transpose()?;
        let trial = trial(plan, blocks, &mut other, divided);
        blocks.try_scheme(Some(trial));
        Ok(Some(RunningTrial { tried: Tried::Asked { policy, partition }, begun_ns: now_ns }))
    }

    /// Tries the policy before beside the one that has taken its place.
    pub(crate) fn of_policy_before(
        plan: &LivePlan,
        before: LivePlan,
        blocks: &mut BlockServer,
        now_ns: u64,
    ) -> RunningTrial {
        let mut other = |pool: usize, capacity: u32| before.policy(pool, capacity);
        let trial = trial(plan, blocks, &mut other, None);
        let misses = u64::from(plan.capacity_blocks) / trial.sampled_of();
        blocks.try_scheme(Some(trial));
        RunningTrial { tried: Tried::Before { plan: Box::new(before), misses }, begun_ns: now_ns }
    }

    /// The trial begins again, because the stack or its tenants have changed: that of a policy
    /// before with the same one, and else that which the stack asks for. Errors: as of [`maker`].
    pub(crate) fn begin_again(
        trial: Option<RunningTrial>,
        plan: &LivePlan,
        blocks: &mut BlockServer,
        now_ns: u64,
    ) -> Result<Option<RunningTrial>, LiveError> {
        match trial.map(|trial| trial.tried) {
            Some(Tried::Before { plan: before, .. }) => {
                Ok(Some(RunningTrial::of_policy_before(plan, *before, blocks, now_ns)))
            }
            _ => RunningTrial::begin(plan, blocks, now_ns),
        }
    }

    /// What is to become of a policy that has taken another one's place, when that is known. The
    /// trial is over then.
    pub(crate) fn judge(&self, blocks: &BlockServer, present: &str) -> Option<Judgement> {
        let Tried::Before { plan, misses } = &self.tried else { return None };
        let TrialCounts { accesses, present_hits, trial_hits } = blocks.trial()?.counts();
        if accesses - present_hits < *misses || accesses < LEAST_ACCESSES {
            return None;
        }
        let points = |hits: u64| format!("{:.1}", hits as f64 / accesses as f64 * 100.0);
        let [before, ..] = plan.schemes();
        let found = format!(
            "of {accesses} sampled accesses {present} hits {} %, {before} {} %",
            points(present_hits),
            points(trial_hits)
        );
        let lost = trial_hits as f64 - present_hits as f64;
        if lost <= WORSE_SHARE * accesses as f64 {
            return Some(Judgement::Stays(OperatorLine::info(format!(
                "policy: {found}; it stays"
            ))));
        }
        let line = OperatorLine::warning(format!(
            "policy: {found}: {before} decides again, until the next reload; the stack file still \
             says {present}"
        ));
        Some(Judgement::Returns(plan.clone(), line))
    }

    /// What is found so far.
    pub(crate) fn status(
        &self,
        blocks: &BlockServer,
        present: &LivePlan,
        now_ns: u64,
    ) -> Option<TrialStatus> {
        let trial = blocks.trial()?;
        let (policy, partition) = match &self.tried {
            Tried::Asked { policy, partition } => (policy.clone(), partition.clone()),
            Tried::Before { plan, .. } => {
                (plan.schemes()[0].to_owned(), present.schemes()[1].to_owned())
            }
        };
        let block_bytes = present.block_bytes();
        let tenants = present.volumes.iter().zip(trial.of_tenants());
        let tenants = tenants.map(|(volume, found)| TenantTrial {
            name: volume.name.clone(),
            accesses: found.counts.accesses,
            present_hits: found.counts.present_hits,
            trial_hits: found.counts.trial_hits,
            present_quota_bytes: found.present_quota * block_bytes,
            trial_quota_bytes: found.trial_quota * block_bytes,
        });
        let tenants = tenants.collect();
        let TrialCounts { accesses, present_hits, trial_hits } = trial.counts();
        Some(TrialStatus {
            policy,
            partition,
            was_replaced: matches!(self.tried, Tried::Before { .. }),
            seconds: now_ns.saturating_sub(self.begun_ns) as f64 / 1e9,
            sampled_of: trial.sampled_of(),
            accesses,
            present_hits,
            trial_hits,
            tenants,
        })
    }
}

/// What divides the miniature, by the partitioner of `tried`, from `now_ns` on.
fn division(
    mut tried: LivePlan,
    blocks: &BlockServer,
    now_ns: u64,
) -> Result<TrialDivision, LiveError> {
    tried.capacity_blocks = SchemeTrial::blocks(blocks.cache().engine());
    let begin = blocks.next_decision(now_ns);
    let division = tried.division(&[], &[])?.map(|division: Division| division.begun_at(begin));
    Ok(TrialDivision { quotas: tried.quotas(&[], &[])?, division })
}

/// Caches in miniature under the policy of a plan, and under another.
fn trial(
    plan: &LivePlan,
    blocks: &BlockServer,
    other: &mut dyn FnMut(usize, u32) -> Box<dyn Policy>,
    divided: Option<TrialDivision>,
) -> SchemeTrial {
    let shift = plan.block_bytes().trailing_zeros();
    let cache = blocks.cache();
    let mut present = |pool: usize, capacity: u32| plan.policy(pool, capacity);
    SchemeTrial::new(cache.engine(), plan.volumes.len(), shift, &mut present, other, divided)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use std::path::Path;

    /// `auto` has settings of its own, and a trial of it the same.
    #[test]
    fn a_trial_of_auto_has_the_settings_that_auto_has_in_the_cache() {
        let plan = |keys: &str| {
            let text = format!(
                "[cache]\ncapacity = \"4MiB\"\n{keys}\ndevices = [\"one.img\"]\n[[tenant]]\nname = \
                 \"a\"\nbacking = \"a.img\"\n[[tenant]]\nname = \"b\"\nbacking = \"b.img\"\n"
            );
            LivePlan::read(&text, Path::new("stack.toml"), &[]).unwrap()
        };
        let served = plan("partition = \"auto\"\n[serve]");
        let tried = plan("partition = \"shared\"\n[serve]\ntrial_partition = \"auto\"");
        let tried = divided_otherwise(&tried).unwrap().unwrap();
        assert_eq!(tried.stack.cache.partition, served.stack.cache.partition);
        assert!(!tried.stack.cache.partition.pairs.is_empty(), "or the test shows nothing");
    }
}
