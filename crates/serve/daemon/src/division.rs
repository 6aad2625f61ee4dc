//! How the cache of a stack is divided, at the start and while it serves.
//!
//! For: the quotas of a simulation of the same stack. Must never know: devices, requests. Units:
//! blocks, nanoseconds. What a simulation takes from the head of a trace, a server takes from the
//! history of a tenant; without one it is refused.

use crate::history::{Ahead, Wanted};
use crate::honoured::LiveStack;
use crate::present::Present;
use cachewright_cache::Quotas;
use cachewright_control::{CachePolicy, Control, KeptCurves, SignalNeeds, interval_curves};
use cachewright_live::blocks::Division;
use cachewright_partition::{Models, Need, Partitioner, TenantConstants, TenantGoal};
use cachewright_stack::{Goal, TenantSpec};

/// The models of the partitioner, what is known ahead of each tenant, limits of quotas, and which
/// tenants were removed; see [`first`].
pub type DivisionInputs<'a> = (&'a Models, &'a [Ahead], &'a [u32], &'a [bool]);

/// What the partitioner wants of histories, if anything. Errors: a setting is refused, or asks for
/// what a server has not.
pub fn check(stack: &LiveStack) -> Result<Option<Wanted>, String> {
    let partitioner = stack.partitioner()?;
    let wanted = Wanted::by(&*partitioner);
    check_measured(stack, &*partitioner, wanted)?;
    if needs(stack).contains(&Need::Goal) {
        check_goals(stack)?;
    }
    Ok(wanted)
}

/// Refuses goals that the partitioner cannot keep, and a stack without any.
fn check_goals(stack: &LiveStack) -> Result<(), String> {
    stack.check_response_goals(needs(stack))?;
    stack.goals()?;
    if stack.tenants.iter().any(|tenant| tenant.goal.is_some()) {
        return Ok(());
    }
    let name = &stack.cache.partition.name;
    Err(format!(
        "`cache.partition`: found `{name}` without a goal, expected `goal_hit_ratio` or \
         `goal_latency` in at least one `[[tenant]]`"
    ))
}

/// The control loop of a stack and its first quotas, by trained `models`, with what is known
/// `ahead` of each tenant.
/// Quotas stay within `limits`, by tenant, if there are some; tenants that were removed are
/// `absent`. Errors: as of [`check`].
pub fn first(
    stack: &LiveStack,
    capacity_blocks: u32,
    (models, ahead, limits, absent): DivisionInputs<'_>,
) -> Result<(Control, Quotas), String> {
    let mut partitioner = among(stack, absent)?;
    partitioner.learn(models)?;
    let has_goals = needs(stack).contains(&Need::Goal);
    let goals = stack.goals()?;
    let constants = |(index, tenant): (usize, &TenantSpec)| {
        let Ahead { profile, curve } = ahead.get(index).cloned().unwrap_or_default();
        let hit_ratio = goals.get(index).copied().flatten();
        TenantConstants {
            weight: tenant.weight,
            schedule: tenant.schedule.clone(),
            sensitive: tenant.sensitive,
            goal: has_goals.then_some(TenantGoal {
                hit_ratio,
                response: tenant.goal.and_then(Goal::response),
                profile,
            }),
            head_curve: curve,
        }
    };
    let tenants = stack.tenants.iter().enumerate().map(constants).collect();
    let mut control = Control::new(partitioner, tenants, capacity_blocks);
    control.set_absent(absent.to_vec());
    let quotas = control.first();
    if limits.is_empty() {
        return Ok((control, quotas));
    }
    control.bound(limits.to_vec());
    let quotas = control.within(quotas);
    Ok((control, quotas))
}

/// The partitioner among the tenants that are not absent. Errors: as of [`check`].
fn among(stack: &LiveStack, absent: &[bool]) -> Result<Box<dyn Partitioner>, String> {
    let removed = absent.iter().filter(|absent| **absent).count();
    if removed == 0 {
        return stack.partitioner();
    }
    let inner = stack.partitioner_among(absent.len() - removed)?;
    Ok(Box::new(Present::among(inner, absent)))
}

/// The division while it serves; nothing where quotas stay. Errors: as of [`first`]; curves of the
/// policy cannot be measured.
pub fn anew(
    stack: &LiveStack,
    capacity_blocks: u32,
    known: DivisionInputs<'_>,
) -> Result<Option<Division>, String> {
    let needs = needs(stack);
    if !is_made_anew(stack) {
        return Ok(None);
    }
    let (control, _) = first(stack, capacity_blocks, known)?;
    let partitioner = stack.partitioner()?;
    let policy = CachePolicy {
        name: &stack.cache.policy.name,
        pairs: &stack.cache.policy.pairs,
        capacity_blocks,
        seed: stack.seed,
    };
    let curves = interval_curves(needs, partitioner.curves(), policy, stack.tenants.len());
    let curves = curves.map_err(|error| format!("`cache.policy`: {error}"))?;
    let (steps, signals) = (partitioner.steps(), Need::signals(needs));
    let signals = SignalNeeds { curves, steps, signals };
    let (interval_ns, shift) = (stack.replay.interval.0, stack.cache.block.0.trailing_zeros());
    Ok(Some(Division::new(control, signals, interval_ns, shift)))
}

/// The curves of the last hour that operators are told: those that divisions are made from, or
/// such that are sampled for this alone, if the stack asks for it. `tenants` counts those that were
/// removed. Errors: as of [`first`].
pub fn kept_curves(
    stack: &LiveStack,
    capacity_blocks: u32,
    tenants: usize,
) -> Result<Option<KeptCurves>, String> {
    let kind = stack.partitioner()?.curves();
    let is_divided_by_them = needs(stack).contains(&Need::Curve) && !kind.ahead;
    if is_divided_by_them && is_made_anew(stack) && stack.replay.interval.0 > 0 {
        let policy = if kind.own_policy { stack.cache.policy.name.as_str() } else { "lru" };
        return Ok(Some(KeptCurves::of_divisions(tenants, (policy, capacity_blocks))));
    }
    let is_wanted = stack.serve.as_ref().is_some_and(|serve| serve.curves);
    let block_shift = stack.cache.block.0.trailing_zeros();
    let sampled = || KeptCurves::sampled((tenants, block_shift), capacity_blocks, stack.seed);
    Ok(is_wanted.then(sampled))
}

/// Whether the cache is divided while it serves.
pub fn is_made_anew(stack: &LiveStack) -> bool {
    needs(stack).contains(&Need::Interval)
}

fn needs(stack: &LiveStack) -> &'static [Need] {
    cachewright_partition::entry(&stack.cache.partition.name).map_or(&[], |entry| entry.needs)
}

/// Errors: the partitioner reads what a server cannot measure, or only a trace has ahead of a run.
fn check_measured(
    stack: &LiveStack,
    partitioner: &dyn Partitioner,
    wanted: Option<Wanted>,
) -> Result<(), String> {
    let name = &stack.cache.partition.name;
    let without = stack.tenants.iter().position(|tenant| tenant.history.is_none());
    if let Some(index) = without.filter(|_| wanted.is_some_and(Wanted::needs_history)) {
        return Err(format!(
            "`cache.partition`: found `{name}` with `ahead = true`, expected `ahead = false`, or a \
             trace in `tenant[{}].history`: a live server has no other to read ahead",
            index + 1
        ));
    }
    let policy = &stack.cache.policy.name;
    let policy_needs = cachewright_policy::entry(policy).map_or(&[][..], |entry| entry.needs);
    if needs(stack).contains(&Need::Curve)
        && partitioner.curves().own_policy
        && !policy_needs.is_empty()
    {
        return Err(format!(
            "`cache.partition`: found `own_policy = true` with the policy `{policy}`, which needs \
             more than accesses to decide; expected another policy, or `own_policy = false`"
        ));
    }
    let share = stack.replay.profile_share;
    if let Some(index) = without.filter(|_| partitioner.reads_profiles() && share > 0.0) {
        return Err(format!(
            "`replay.profile_share`: found `{share}`, expected `0` with `{name}` in a live server, \
             or a trace in `tenant[{}].history`: it has no other to profile",
            index + 1
        ));
    }
    Ok(())
}
