//! Trained models by which a live server decides.
//!
//! For: policies and partitioners that need some, from the same keys as in a simulation. Must never
//! know: what is in a model, requests. All are read, and tried, when a stack is read: at a start
//! before anything is written, at a reload before anything changes.

use crate::honoured::LiveStack;
use cachewright_partition::{Models, Need};
use cachewright_policy::{Need as PolicyNeed, Policy};
use cachewright_stack::{CharacterizerSpec, KindsSpec, ModelFile};

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
