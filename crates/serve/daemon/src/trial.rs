//! Another policy beside the one that decides, in miniature: one that the stack puts on trial, or
//! the one before, until it is known that the new one is no worse.
//!
//! A policy that has taken another one's place is judged after a cache-full of misses of a sample:
//! when the old one would have hit more, by [`WORSE_SHARE`] of all accesses, it decides again.

use crate::error::LiveError;
use crate::operator::OperatorLine;
use crate::plan::LivePlan;
use cachewright_cache::{PolicyTrial, TrialCounts};
use cachewright_live::blocks::BlockServer;
use cachewright_policy::registry::{PolicyMaker, maker as maker_of};
use cachewright_policy::{Need, Policy};
use cachewright_result::status::TrialStatus;
use cachewright_types::registry::check_needs;

/// A new policy stays if it hits at most so much less than the old one, as a share of accesses: as
/// 10,000 sampled accesses can tell from chance.
const WORSE_SHARE: f64 = 0.02;
/// Sampled accesses that a judgement takes at least.
const LEAST_ACCESSES: u64 = 10_000;

/// What is tried.
enum Tried {
    /// A policy that the stack names.
    Asked(String),
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

impl RunningTrial {
    /// Begins the trial that the stack asks for; ends any other if it asks for none.
    pub(crate) fn begin(
        plan: &LivePlan,
        blocks: &mut BlockServer,
        now_ns: u64,
    ) -> Result<Option<RunningTrial>, LiveError> {
        let Some(maker) = maker(plan)? else {
            blocks.try_policy(None);
            return Ok(None);
        };
        let mut other = |pool: usize, capacity: u32| maker(capacity, plan.pool_seed(pool));
        blocks.try_policy(Some(trial(plan, blocks, &mut other)));
        let name = plan.serve.trial.clone().unwrap_or_default();
        Ok(Some(RunningTrial { tried: Tried::Asked(name), begun_ns: now_ns }))
    }

    /// Tries the policy before beside the one that has taken its place.
    pub(crate) fn of_policy_before(
        plan: &LivePlan,
        before: LivePlan,
        blocks: &mut BlockServer,
        now_ns: u64,
    ) -> RunningTrial {
        let mut other = |pool: usize, capacity: u32| before.policy(pool, capacity);
        let trial = trial(plan, blocks, &mut other);
        let misses = u64::from(plan.capacity_blocks) / trial.sampled_of();
        blocks.try_policy(Some(trial));
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
        let (counts, _) = blocks.trial()?;
        let TrialCounts { accesses, present_hits, trial_hits } = counts;
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
    pub(crate) fn status(&self, blocks: &BlockServer, now_ns: u64) -> Option<TrialStatus> {
        let (counts, sampled_of) = blocks.trial()?;
        let policy = match &self.tried {
            Tried::Asked(name) => name.clone(),
            Tried::Before { plan, .. } => plan.schemes()[0].to_owned(),
        };
        Some(TrialStatus {
            policy,
            was_replaced: matches!(self.tried, Tried::Before { .. }),
            seconds: now_ns.saturating_sub(self.begun_ns) as f64 / 1e9,
            sampled_of,
            accesses: counts.accesses,
            present_hits: counts.present_hits,
            trial_hits: counts.trial_hits,
        })
    }
}

/// Caches in miniature under the policy of a plan, and under another.
fn trial(
    plan: &LivePlan,
    blocks: &BlockServer,
    other: &mut dyn FnMut(usize, u32) -> Box<dyn Policy>,
) -> PolicyTrial {
    let shift = plan.block_bytes().trailing_zeros();
    let cache = blocks.cache();
    let mut present = |pool: usize, capacity: u32| plan.policy(pool, capacity);
    PolicyTrial::new(cache.engine(), plan.volumes.len(), shift, &mut present, other)
}
