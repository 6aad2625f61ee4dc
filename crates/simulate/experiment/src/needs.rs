//! What the schemes of a case need of its run, whether the run provides it, and which schemes of a
//! registry can run on a stack.
//!
//! A policy and a partitioner declare their needs in the registries. What a recording keeps, what
//! intervals measure and what is found out ahead all follow from these.

use crate::ExperimentError;
use crate::case::{Case, expand};
use crate::continued;
use crate::run::RunOptions;
use crate::spec::{Spec, full_key, replayed};
use cachewright_curve::signal::SignalSet;
use cachewright_partition::{CurveKind, Need, Provision};
use cachewright_policy::Need as PolicyNeed;
use cachewright_stack::tables::ExplainedMisses;
use cachewright_system::FutureKind;
use cachewright_system::profile::PolicyInputs;
use cachewright_types::registry::check_needs;
use std::path::Path;

/// What the policy and the partitioner of a stack need of a run.
#[derive(Clone, Debug)]
pub struct Needs {
    policy: &'static [PolicyNeed],
    partitioner: &'static [Need],
    /// What goes with each access for the policy.
    pub future: FutureKind,
    /// Steps per interval that the partitioner is told of; 0 if it reads none.
    pub steps: u32,
    /// Which curves it divides by; nothing if it reads none.
    pub curves: Option<CurveKind>,
    /// Whether it takes something of each tenant ahead of the run.
    pub reads_ahead: bool,
    /// Whether causes of misses are measured at the optimum: in an open loop without devices, under
    /// a policy that weighs no benefits.
    pub bounds: bool,
}

impl Needs {
    /// The needs that the schemes of a stack declare; none of a name that no registry has.
    pub fn of(spec: &Spec) -> Needs {
        let recorded = spec.replay.divisions.is_some();
        let policy = &spec.cache.policy.name;
        let partition = cachewright_partition::entry(&spec.cache.partition.name);
        let partitioner = match recorded {
            // Made again as they were, whatever their partitioner knew.
            true => &[Need::Interval][..],
            false => partition.map_or(&[][..], |entry| entry.needs),
        };
        // A setting that it refuses is refused where the case is checked.
        let made = spec.partitioner().ok().filter(|_| !recorded);
        let needs = |need| partitioner.contains(&need);
        let steps = made.as_ref().filter(|_| needs(Need::Features)).map_or(0, |made| made.steps());
        let curves = made.as_ref().filter(|_| needs(Need::Curve)).map(|made| made.curves());
        let future = FutureKind::of_policy(policy);
        let has_next_uses = !spec.replay.closed() && spec.stack.is_none();
        Needs {
            policy: cachewright_policy::entry(policy).map_or(&[][..], |entry| entry.needs),
            partitioner,
            future,
            steps,
            curves,
            reads_ahead: made.is_some_and(|made| made.reads_profiles() || made.curves().ahead),
            bounds: spec.replay.causes != ExplainedMisses::None
                && has_next_uses
                && future != FutureKind::Benefit,
        }
    }

    /// Whether the policy needs this.
    pub fn policy_needs(&self, need: PolicyNeed) -> bool {
        self.policy.contains(&need)
    }

    /// Whether the partitioner needs this; recorded divisions need intervals only.
    pub fn partitioner_needs(&self, need: Need) -> bool {
        self.partitioner.contains(&need)
    }

    /// What the policy must know ahead of a replay.
    pub fn inputs(&self) -> PolicyInputs {
        PolicyInputs { future: self.future, requests: self.policy_needs(PolicyNeed::Requests) }
    }

    /// What goes with each access of an open loop without devices: for the policy, and for the
    /// causes of misses.
    pub fn future_of_replay(&self) -> FutureKind {
        if self.bounds { FutureKind::NextUse } else { self.future }
    }

    /// The signals that the partitioner reads.
    pub fn signals(&self) -> SignalSet {
        Need::signals(self.partitioner)
    }

    /// Whether a recording must keep the keys of blocks: something may sample them, or know them
    /// from one interval to the next.
    pub fn keys(&self) -> bool {
        [Need::Curve, Need::Features, Need::Reuse]
            .iter()
            .any(|need| self.partitioner.contains(need))
    }
}

impl Case {
    /// Checks that the run has what the policy needs. Errors: the first need that is not met, and
    /// what would meet it.
    pub fn check_policy(&self) -> Result<(), ExperimentError> {
        let entry = cachewright_policy::entry(&self.spec.cache.policy.name);
        entry
            .and_then(|entry| check_needs("policy", entry, |need| self.missing_for_policy(need)))
            .map_err(|error| self.refuse(format!("`cache.policy`: {error}")))
    }

    /// What would provide this need of the policy; nothing if the run provides it.
    fn missing_for_policy(&self, need: PolicyNeed) -> Option<String> {
        let (closed, in_drive) = (self.spec.replay.closed(), self.caches_in_drive());
        let remedy = match need {
            PolicyNeed::Future | PolicyNeed::Benefit if closed => {
                "`replay.loop = \"open\"`, since a closed loop has no future, or another policy"
            }
            PolicyNeed::Future | PolicyNeed::Benefit if in_drive => {
                "another policy with `machine.system = \"ssd\"`: the data cache of a drive does \
                 not know the future"
            }
            PolicyNeed::Requests if in_drive => {
                "another policy with `machine.system = \"ssd\"`: the data cache of a drive sees \
                 pages"
            }
            PolicyNeed::Model if self.caching.files.is_empty() => {
                "files by kind of workload in `cache.models`"
            }
            // Code that was not found was refused where it was looked for.
            _ => return None,
        };
        Some(remedy.to_owned())
    }

    /// Checks that the run has what the partitioner needs. Errors: the first need that is not met,
    /// and the key that would meet it; a goal that it does not keep.
    pub fn check_partitioner(&self) -> Result<(), ExperimentError> {
        // What it needed was there when the server divided.
        let are_recorded = continued::has_divisions(&self.spec);
        if self.spec.replay.divisions.is_none() && !are_recorded {
            let entry = cachewright_partition::entry(&self.spec.cache.partition.name);
            entry
                .and_then(|entry| {
                    check_needs("partitioner", entry, |need| self.missing(need.provision()))
                })
                .map_err(|error| self.refuse(format!("`cache.partition`: {error}")))?;
        }
        let kept = self.spec.check_response_goals(self.needs.partitioner);
        kept.map_err(|error| self.refuse(error))
    }

    /// The keys of a stack file that would provide this; nothing if the run provides it.
    fn missing(&self, provision: Provision) -> Option<String> {
        let spec = &self.spec;
        let (provided, remedy) = match provision {
            Provision::Any => return None,
            Provision::Goal => (
                spec.tenants.iter().any(|tenant| tenant.goal.is_some()),
                "`goal_hit_ratio` or `goal_latency` in at least one `[[tenant]]`",
            ),
            Provision::TenantModels => {
                let without = spec.tenants.iter().position(|tenant| tenant.model.is_none());
                let complete = self.models.each.len() == spec.tenants.len();
                let key = format!("a file in `tenant[{}].model`", without.unwrap_or(0) + 1);
                return (!complete).then_some(key);
            }
            Provision::JointModel => (self.models.joint.is_some(), "a file in `cache.model`"),
            Provision::Devices => {
                (spec.stack.is_some(), "`[device]` tables, which give every request a time")
            }
            Provision::OpenLoopDevices => (
                spec.stack.is_some() && !spec.replay.closed(),
                "`[device]` tables and `replay.loop = \"open\"`: a closed loop has another future \
                 at every size",
            ),
            Provision::DriveCache => (self.caches_in_drive(), "`machine.system = \"ssd\"`"),
        };
        (!provided).then(|| remedy.to_owned())
    }
}

/// One entry of a registry, and why this stack cannot run it.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its name, as stack files have it.
    pub name: &'static str,
    /// The first reason why a combination with it is refused; nothing if all of them can run.
    pub refused: Option<String>,
}

/// The entries that `key` (`policy` or `partition`) can take with all combinations of
/// `options.vary`, in the registry's order. Errors: a stack file that is wrong by itself, another
/// key.
pub fn choices(
    text: &str,
    origin: &Path,
    options: &RunOptions,
    key: &str,
) -> Result<Vec<Choice>, ExperimentError> {
    let refuse = |message| ExperimentError::spec(origin, message);
    let key = full_key(key);
    let names: Vec<&'static str> = match key.as_str() {
        "cache.policy" => names(cachewright_policy::registry::entries().iter().map(|e| e.name)),
        "cache.partition" => {
            names(cachewright_partition::registry::entries().iter().map(|e| e.name))
        }
        _ => return Err(refuse(format!("`{key}`: found `all`, expected values of the setting"))),
    };
    let mut set = options.set.clone();
    set.retain(|(other, _)| full_key(other) != key);
    // What is wrong with the stack itself is no entry's fault.
    let file = crate::spec::read(text, origin, &set)?;
    replayed(&file)?;
    let others: Vec<_> =
        options.vary.iter().filter(|(other, _)| full_key(other) != key).cloned().collect();
    let choice = |name: &'static str| {
        let mut vary = others.clone();
        vary.push((key.clone(), vec![name.to_owned()]));
        let runs =
            expand(&file, &vary).and_then(|cases| cases.iter().try_for_each(Case::check_schemes));
        Choice { name, refused: runs.err().map(|error| reason(&error)) }
    };
    Ok(names.into_iter().map(choice).collect())
}

fn names(entries: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    entries.collect()
}

/// The reason without the stack file's name.
fn reason(error: &ExperimentError) -> String {
    match error {
        ExperimentError::Spec { message, .. } => message.clone(),
        other => other.to_string(),
    }
}
