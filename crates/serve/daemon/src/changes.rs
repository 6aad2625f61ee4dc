//! What a stack file changes of a server that runs.
//!
//! For: a reload that is refused whole, by key and value, or carried out whole. Must never know:
//! devices, requests. Tenants are told apart by their names. Keys of traces, replays and simulated
//! devices change nothing of a server.

use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_types::Value;
use cachewright_types::declare::Declared;

/// Keys of `[cache]` and `[serve]` that a server takes over while it runs.
const OF_CACHE: [&str; 4] = ["capacity", "partition", "model", "models"];
const OF_SERVE: [&str; 9] = [
    "curves",
    "dirty_high",
    "dirty_low",
    "background_bandwidth",
    "latency_target",
    "record_span",
    "record_keep",
    "record_files",
    "record_bytes",
];
/// Keys of `[flash]` that a server goes by: it does not take over others.
const OF_FLASH: [&str; 2] = ["separation", "reclaim"];
/// Keys of `[replay]` that a server goes by: it takes them over.
const OF_REPLAY: [&str; 4] = ["interval", "hit_time", "miss_time", "profile_share"];
/// Keys of a tenant that stay as long as it is served.
const FIXED: [&str; 4] = ["backing", "export", "read_only", "channels"];
/// Keys of a tenant by which the cache is divided.
const DIVIDING: [&str; 7] = [
    "weight",
    "schedule",
    "sensitive",
    "goal_hit_ratio",
    "goal_latency",
    "goal_response",
    "goal_p99",
];

/// How a tenant of a running server is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// To clients.
    Served,
    /// To none: what clients have sent is answered, and connections end.
    Closing,
    /// To none: its blocks are written back and leave the cache.
    Going,
    /// It is served no more; its number is not given again.
    Gone,
}

/// A stack that a server goes on with.
pub struct Changes {
    /// The stack, with tenants in the order of their numbers, those that were removed among them.
    pub plan: LivePlan,
    /// The numbers of tenants that come, behind all others, and of those that go.
    pub added: Vec<usize>,
    /// Those that go.
    pub removed: Vec<usize>,
    /// Whether the cache is to be divided otherwise.
    pub divides: bool,
    /// Whether other models are to decide.
    pub learns: bool,
    /// Whether other curves are to be kept, or those of another division.
    pub samples: bool,
}

impl Changes {
    /// What `new` changes of a server that runs by `old`, whose tenants are `members`. Errors: the
    /// first key that such a server cannot take over.
    pub fn between(
        old: &LivePlan,
        new: LivePlan,
        members: &[Member],
    ) -> Result<Changes, LiveError> {
        check_tables(old, &new).map_err(|error| new.refuse(error))?;
        new.models.check_kind(&old.models).map_err(|error| new.refuse(error))?;
        let learns = new.models != old.models;
        let samples = new.serve.curves != old.serve.curves;
        let mut changes = Changes {
            plan: new,
            added: Vec::new(),
            removed: Vec::new(),
            divides: false,
            learns,
            samples,
        };
        let divided = changes.order(old, members)?;
        changes.divides = divided || divides_otherwise(old, &changes.plan);
        changes.samples |= changes.divides;
        changes.check_division(old)?;
        Ok(changes)
    }

    /// Brings the tenants of the new stack into the order of their numbers. Returns whether the
    /// cache is divided among others, or by other weights or goals. Errors: a key is fixed.
    fn order(&mut self, old: &LivePlan, members: &[Member]) -> Result<bool, LiveError> {
        let plan = &self.plan;
        let mut left: Vec<usize> = (0..plan.volumes.len()).collect();
        let (mut tenants, mut volumes, mut absent) = (Vec::new(), Vec::new(), Vec::new());
        let mut divides = false;
        for (number, member) in members.iter().enumerate() {
            let name = &old.volumes[number].name;
            let place = left.iter().position(|index| plan.volumes[*index].name == *name);
            let is_leaving = matches!(member, Member::Closing | Member::Going);
            if is_leaving && place.is_some() {
                return Err(plan.refuse(format!(
                    "`tenant.name`: found `{name}`, which is being removed, expected another name, \
                     or this one when it has gone"
                )));
            }
            let place = place.filter(|_| *member == Member::Served);
            if let Some(index) = place.map(|place| left.remove(place)) {
                divides |=
                    check_tenant(old, number, plan, index).map_err(|error| plan.refuse(error))?;
                tenants.push(plan.stack.tenants[index].clone());
                volumes.push(plan.volumes[index].clone());
            } else {
                tenants.push(old.stack.tenants[number].clone());
                volumes.push(old.volumes[number].clone());
                if *member == Member::Served {
                    self.removed.push(number);
                }
            }
            absent.push(place.is_none());
        }
        for index in left {
            self.added.push(tenants.len());
            tenants.push(plan.stack.tenants[index].clone());
            volumes.push(plan.volumes[index].clone());
            absent.push(false);
        }
        divides |= !self.added.is_empty() || !self.removed.is_empty();
        self.plan.stack.tenants = tenants;
        (self.plan.volumes, self.plan.absent) = (volumes, absent);
        Ok(divides)
    }

    /// Errors: the cache is to be divided otherwise, and that takes what is read at a start only.
    fn check_division(&self, old: &LivePlan) -> Result<(), LiveError> {
        let plan = &self.plan;
        let partition = &plan.stack.cache.partition.name;
        let restart = "expected no change of tenants, `cache.partition`, `cache.capacity`, weights \
                       or goals without a restart";
        if self.divides && (plan.wanted.is_some() || old.wanted.is_some()) {
            return Err(plan.refuse(format!(
                "`cache.partition`: found `{partition}`, which reads histories of tenants at a \
                 start, {restart}"
            )));
        }
        let layout = &plan.stack.cache.layout.name;
        if self.divides && layout != "striped" {
            return Err(plan.refuse(format!(
                "`cache.layout`: found `{layout}`, which gives devices to tenants at a start, \
                 {restart}"
            )));
        }
        Ok(())
    }
}

/// Errors: a key of the whole file that stays as it is while a server runs.
fn check_tables(old: &LivePlan, new: &LivePlan) -> Result<(), String> {
    let (before, after) = (&old.stack, &new.stack);
    if before.seed != after.seed {
        return Err(fixed("seed", &before.seed.0.to_string(), &after.seed.0.to_string()));
    }
    let except = |keys: &'static [&str]| move |key: &str| !keys.contains(&key);
    check_table("cache", &*before.cache, &*after.cache, except(&OF_CACHE))?;
    check_table("serve", &*old.serve, &*new.serve, except(&OF_SERVE))?;
    let flash =
        |stack: &crate::honoured::LiveStack| stack.flash.as_deref().cloned().unwrap_or_default();
    check_table("flash", &flash(before), &flash(after), |key| OF_FLASH.contains(&key))
}

/// Whether the cache is divided by another partitioner, or otherwise by the same.
fn divides_otherwise(old: &LivePlan, new: &LivePlan) -> bool {
    let (before, after) = (&old.stack, &new.stack);
    let changed = |key: &str| OF_REPLAY.contains(&key);
    old.capacity_blocks != new.capacity_blocks
        || before.cache.partition != after.cache.partition
        || first_difference(&before.replay, &after.replay, changed).is_some()
}

/// Compares a tenant of two stacks; returns whether the cache is divided otherwise because of it.
/// Errors: a key that stays as long as the tenant is served.
fn check_tenant(
    old: &LivePlan,
    number: usize,
    new: &LivePlan,
    index: usize,
) -> Result<bool, String> {
    let (before, after) = (&old.stack.tenants[number], &new.stack.tenants[index]);
    let table = format!("tenant[{}]", index + 1);
    check_table(&table, &**before, &**after, |key| FIXED.contains(&key))?;
    Ok(first_difference(&**before, &**after, |key| DIVIDING.contains(&key)).is_some())
}

/// Errors: two tables differ in a key of some.
fn check_table<T: Declared>(
    table: &str,
    before: &T,
    after: &T,
    counts: impl Fn(&str) -> bool,
) -> Result<(), String> {
    match first_difference(before, after, counts) {
        Some((key, before, after)) => Err(fixed(&format!("{table}.{key}"), &before, &after)),
        None => Ok(()),
    }
}

/// The first key of some in which two tables differ, with both values as text.
fn first_difference<T: Declared>(
    before: &T,
    after: &T,
    counts: impl Fn(&str) -> bool,
) -> Option<(&'static str, String, String)> {
    let text = |value: Option<Value>| match value {
        None => "nothing".to_owned(),
        Some(Value::Text(text)) => text,
        Some(value) => value.to_string(),
    };
    let pairs = before.values().into_iter().zip(after.values());
    let mut differing = pairs.filter(|((key, before), (_, after))| counts(key) && before != after);
    differing.next().map(|((key, before), (_, after))| (key, text(before), text(after)))
}

fn fixed(key: &str, before: &str, after: &str) -> String {
    format!("`{key}`: found `{after}`, expected `{before}`, which only a restart can change")
}
