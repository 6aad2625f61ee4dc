//! How the cache of a stack is divided, at the start and while it serves.
//!
//! Quotas are those of a simulation of the same stack. What a simulation takes from the head of a
//! trace, a server takes from the history of a tenant; without one it is refused. Models of
//! policies and partitioners are read, and tried, when a stack is read: at a start before anything
//! is written, at a reload before anything changes.

use crate::history::{Ahead, Wanted};
use crate::plan::LiveStack;
use cachewright_cache::Quotas;
use cachewright_control::{CachePolicy, Control, HourlyCurves, SignalNeeds};
use cachewright_live::blocks::Division;
use cachewright_partition::{Models, Need, Partitioner, TenantConstants, TenantGoal};
use cachewright_policy::{Need as PolicyNeed, Policy};
use cachewright_stack::{CharacterizerSpec, Goal, KindsSpec, ModelFile, TenantSpec};

/// What a first division starts from.
#[derive(Clone, Copy)]
pub struct DivisionInputs<'a> {
    /// Trained models of the partitioner.
    pub models: &'a Models,
    /// What is known ahead of each tenant.
    pub ahead: &'a [Ahead],
    /// The most blocks of each tenant; empty where nothing bounds them.
    pub limits: &'a [u32],
    /// Which tenants were removed.
    pub absent: &'a [bool],
}

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

/// The control loop of a stack and its first quotas. Errors: as of [`check`].
pub fn first(
    stack: &LiveStack,
    capacity_blocks: u32,
    inputs: DivisionInputs<'_>,
) -> Result<(Control, Quotas), String> {
    let DivisionInputs { models, ahead, limits, absent } = inputs;
    let mut partitioner = stack.partitioner_without(absent)?;
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

/// The division while it serves; nothing where quotas stay. Errors: as of [`first`]; curves of the
/// policy cannot be measured.
pub fn anew(
    stack: &LiveStack,
    capacity_blocks: u32,
    inputs: DivisionInputs<'_>,
) -> Result<Option<Division>, String> {
    let needs = needs(stack);
    if !is_made_anew(stack) {
        return Ok(None);
    }
    let (control, _) = first(stack, capacity_blocks, inputs)?;
    let partitioner = stack.partitioner()?;
    let policy = CachePolicy {
        name: &stack.cache.policy.name,
        pairs: &stack.cache.policy.pairs,
        capacity_blocks,
        seed: stack.seed,
    };
    let signals = SignalNeeds::of(&*partitioner, needs, policy, stack.tenants.len());
    let signals = signals.map_err(|error| format!("`cache.policy`: {error}"))?;
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
) -> Result<Option<HourlyCurves>, String> {
    let kind = stack.partitioner()?.curves();
    let is_divided_by_them = needs(stack).contains(&Need::Curve) && !kind.ahead;
    if is_divided_by_them && is_made_anew(stack) && stack.replay.interval.0 > 0 {
        let policy = if kind.own_policy { stack.cache.policy.name.as_str() } else { "lru" };
        return Ok(Some(HourlyCurves::of_divisions(tenants, policy, capacity_blocks)));
    }
    let is_wanted = stack.serve.as_ref().is_some_and(|serve| serve.curves);
    let block_shift = stack.cache.block.0.trailing_zeros();
    let sampled = || HourlyCurves::sampled(tenants, block_shift, capacity_blocks, stack.seed);
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

/// The models of a stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveModels {
    /// Those of the policy, each by the kind of workload that it was trained on.
    pub policy: Vec<(String, Vec<u8>)>,
    /// The kind that runs, or runs first where a characterizer finds it.
    pub kind: Option<String>,
    /// What finds the kind that runs, and its model.
    pub characterizer: Option<(CharacterizerSpec, Vec<u8>)>,
    /// Those of the partitioner.
    pub partition: Models,
}

impl LiveModels {
    /// Reads the models that the policy and the partitioner of a stack need. Errors: none where
    /// some are needed, a file that cannot be read, or one that is of no use; by its key.
    pub fn read(stack: &LiveStack) -> Result<LiveModels, String> {
        let mut models = LiveModels { partition: of_partition(stack)?, ..LiveModels::default() };
        let policy = &stack.cache.policy;
        let entry = cachewright_policy::entry(&policy.name).ok();
        if entry.is_some_and(|entry| entry.needs.contains(&PolicyNeed::Model)) {
            models.policy = of_policy(stack)?;
            models.kind.clone_from(&stack.cache.kinds.first);
            models.characterizer = characterizer(&stack.cache.kinds)?;
        }
        models.try_partition(stack)?;
        Ok(models)
    }

    /// A policy with its models, which were tried on one of its kind.
    pub fn given_to<P: Policy>(&self, mut policy: P) -> P {
        if !self.policy.is_empty() && policy.load_models(&self.policy).is_ok() {
            self.kind.iter().for_each(|kind| policy.set_workload(kind));
            if let Some((spec, model)) = &self.characterizer
                && let Ok(characterizer) = spec.with_model(model)
            {
                policy.characterize(characterizer, spec.every.0);
            }
        }
        policy
    }

    /// Errors: the partitioner cannot use its models.
    fn try_partition(&self, stack: &LiveStack) -> Result<(), String> {
        let key = if self.partition.joint.is_some() { "cache.model" } else { "tenant.model" };
        let name = &stack.cache.partition.name;
        let learned = stack.partitioner()?.learn(&self.partition);
        learned.map_err(|error| format!("`{key}`: found a file that `{name}` cannot use: {error}"))
    }

    /// Errors: models of kinds of workload among which the one that runs first is not; another
    /// model of the characterizer.
    pub fn check_kind(&self, before: &LiveModels) -> Result<(), String> {
        if let Some((spec, model)) = &self.characterizer
            && before.characterizer.as_ref().is_some_and(|(_, before)| before != model)
        {
            let path = spec.model.path.display();
            return Err(format!(
                "`cache.characterize.model`: found another content of `{path}`, expected that of \
                 the start until the next restart"
            ));
        }
        if self.kind == before.kind {
            return Ok(());
        }
        let text = |kind: &Option<String>| kind.clone().unwrap_or_default();
        let (found, expected) = (text(&self.kind), text(&before.kind));
        Err(format!(
            "`cache.workload`: found `{found}`, expected `{expected}` until the next restart"
        ))
    }
}

/// The models of a policy that needs some. Errors: see [`LiveModels::read`].
fn of_policy(stack: &LiveStack) -> Result<Vec<(String, Vec<u8>)>, String> {
    let (policy, kinds) = (&stack.cache.policy, &stack.cache.kinds);
    let name = &policy.name;
    if kinds.files.is_empty() {
        return Err(format!(
            "`cache.policy`: `{name}` needs trained models, expected files by kind of workload in \
             `cache.models`"
        ));
    }
    let file = |(kind, file): &(String, ModelFile)| {
        Ok((kind.clone(), bytes(&format!("cache.models.{kind}"), file)?))
    };
    let files = kinds.files.iter().map(file).collect::<Result<Vec<_>, String>>()?;
    cachewright_policy::registry::boxed(name, &policy.pairs, 0, stack.seed)
        .map_err(|error| format!("`cache.policy`: {error}"))?
        .load_models(&files)
        .map_err(|error| {
            format!("`cache.models`: found a file that `{name}` cannot use: {error}")
        })?;
    Ok(files)
}

/// What finds the kind of workload that runs, with its model. Errors: see [`LiveModels::read`].
fn characterizer(kinds: &KindsSpec) -> Result<Option<(CharacterizerSpec, Vec<u8>)>, String> {
    let Some(spec) = &kinds.characterizer else { return Ok(None) };
    let key = "cache.characterize.model";
    let model = bytes(key, &spec.model)?;
    let tried = spec.with_model(&model).and_then(|found| kinds.check_kinds(&*found));
    tried.map_err(|error| {
        format!("`{key}`: found a file that `{}` cannot use: {error}", spec.named.name)
    })?;
    Ok(Some((spec.clone(), model)))
}

/// The models of the partitioner. Errors: see [`LiveModels::read`].
fn of_partition(stack: &LiveStack) -> Result<Models, String> {
    let name = &stack.cache.partition.name;
    let entry = cachewright_partition::entry(name).ok();
    let needs = |need| entry.is_some_and(|entry| entry.needs.contains(&need));
    let mut models = Models::default();
    if needs(Need::JointModel) {
        let file = stack.cache.model.as_ref().ok_or_else(|| {
            format!("`cache.partition`: found `{name}`, expected a file in `cache.model`")
        })?;
        models.joint = Some(bytes("cache.model", file)?);
    }
    if needs(Need::Model) {
        for (index, tenant) in stack.tenants.iter().enumerate() {
            let key = format!("tenant[{}].model", index + 1);
            if !tenant.model_updates.is_empty() {
                let found = tenant.model_updates.len();
                return Err(format!(
                    "`{key}_updates`: found {found} files, which take over in intervals of a \
                     recorded trace, expected none in a live server: it takes another `model` at \
                     a reload"
                ));
            }
            let file = tenant.model.as_ref().ok_or_else(|| {
                format!("`cache.partition`: found `{name}`, expected a file in `{key}`")
            })?;
            models.each.push(bytes(&key, file)?);
        }
    }
    Ok(models)
}

/// A file's bytes. Errors: it cannot be read, by its key.
fn bytes(key: &str, file: &ModelFile) -> Result<Vec<u8>, String> {
    std::fs::read(&file.path).map_err(|error| {
        let path = file.path.display();
        format!("`{key}`: found `{path}`, which cannot be read ({error}), expected a model file")
    })
}
