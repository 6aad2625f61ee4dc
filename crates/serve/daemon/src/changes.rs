//! What a stack file changes of a server that runs: all of it, or a refusal by key and value.
//!
//! Tenants are told apart by their names. Keys of traces, replays and simulated devices change
//! nothing of a server.

use crate::error::LiveError;
use crate::history::Ahead;
use crate::plan::LivePlan;
use cachewright_stack::cache::STRIPED;
use cachewright_stack::deciding::DIVIDING;
use cachewright_types::Value;
use cachewright_types::declare::Declared;

/// Keys of `[cache]` and `[serve]` that a server takes over while it runs.
const OF_CACHE: [&str; 8] = [
    "capacity",
    "policy",
    "partition",
    "model",
    "models",
    "shrink",
    "sequential_cutoff",
    "sequential_streams",
];
const OF_SERVE: [&str; 13] = [
    "curves",
    "trial",
    "trial_partition",
    "memory",
    "dirty_high",
    "dirty_low",
    "background_bandwidth",
    "latency_target",
    "record_span",
    "record_keep",
    "record_files",
    "record_bytes",
    "record_state",
];
/// Keys of `[flash]` that a server goes by: it does not take over others.
const OF_FLASH: [&str; 2] = ["separation", "reclaim"];
/// Keys of `[replay]` that a server goes by: it takes them over.
const OF_REPLAY: [&str; 4] = ["interval", "hit_time", "miss_time", "profile_share"];
/// Keys of a tenant that stay as long as it is served.
const FIXED: [&str; 4] = ["backing", "export", "read_only", "channels"];
/// Keys of a tenant that say what its history is, where one is wanted.
const OF_HISTORY: [&str; 13] = [
    "history",
    "format",
    "volume",
    "options",
    "time_scale",
    "start",
    "stop",
    "sort",
    "on_bad_record",
    "max_request",
    "operation",
    "sample",
    "request",
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
    /// Whether another policy, or the same by other settings, is to decide.
    pub replaces: bool,
    /// Whether another trial is to begin, or none to go on.
    pub tries: bool,
    /// Whether other models are to decide.
    pub learns: bool,
    /// Whether other requests are to go past the cache.
    pub cuts_off: bool,
    /// Whether other curves are to be kept, or those of another division.
    pub samples: bool,
    /// What is known ahead of each tenant; of those that were removed nothing is.
    pub ahead: Vec<Ahead>,
}

impl Changes {
    /// What `new` changes of a server that runs by `old`, whose tenants are `members`. What is
    /// known `ahead` of tenants is in the order of the new stack; empty if nothing is. Errors: the
    /// first key that such a server cannot take over.
    pub fn between(
        old: &LivePlan,
        new: LivePlan,
        ahead: Vec<Ahead>,
        members: &[Member],
    ) -> Result<Changes, LiveError> {
        check_tables(old, &new).map_err(|error| new.refuse(error))?;
        let replaces = new.stack.cache.policy != old.stack.cache.policy;
        new.models.check_kind(&old.models).map_err(|error| new.refuse(error))?;
        // The miniature of what decides is of a policy and its tenants.
        let tries = replaces
            || new.serve.trial != old.serve.trial
            || new.serve.trial_partition != old.serve.trial_partition;
        let samples = new.serve.curves != old.serve.curves;
        let cuts_off = new.cutoff() != old.cutoff();
        let mut changes = Changes {
            plan: new,
            added: Vec::new(),
            removed: Vec::new(),
            divides: false,
            replaces,
            tries,
            learns: false,
            cuts_off,
            samples,
            ahead,
        };
        let divided = changes.order(old, members)?;
        changes.learns = decides_by_others(old, &changes.plan);
        // Curves by which it is divided may be those of the policy.
        let divides_anew = replaces && changes.plan.is_divided_anew();
        changes.divides = divided || divides_anew || divides_otherwise(old, &changes.plan);
        changes.samples |= changes.divides || replaces;
        changes.tries |= !changes.added.is_empty();
        // A division on trial is of the cache's size and tenants.
        let divides = changes.divides || !changes.removed.is_empty();
        changes.tries |= changes.plan.serve.trial_partition.is_some() && divides;
        changes.check_layout()?;
        Ok(changes)
    }

    /// The policy of `before` decides again, and all else stays.
    pub fn back_to_policy(plan: &LivePlan, before: &LivePlan) -> Changes {
        let plan = plan.clone().with_policy_of(before);
        // Histories would have to be read again; what is divided by them does not depend on it.
        let divides = plan.is_divided_anew() && plan.wanted.is_none();
        let ahead = vec![Ahead::default(); plan.volumes.len()];
        Changes {
            plan,
            added: Vec::new(),
            removed: Vec::new(),
            divides,
            replaces: true,
            tries: false,
            learns: false,
            cuts_off: false,
            samples: true,
            ahead,
        }
    }

    /// Brings the tenants of the new stack into the order of their numbers. Returns whether the
    /// cache is divided among others, or by other weights or goals. Errors: a key is fixed.
    fn order(&mut self, old: &LivePlan, members: &[Member]) -> Result<bool, LiveError> {
        let plan = &self.plan;
        let mut left: Vec<usize> = (0..plan.volumes.len()).collect();
        let (mut tenants, mut volumes, mut places) = (Vec::new(), Vec::new(), Vec::new());
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
            let place = place.map(|place| left.remove(place));
            if let Some(index) = place {
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
            places.push(place);
        }
        for index in left {
            self.added.push(tenants.len());
            tenants.push(plan.stack.tenants[index].clone());
            volumes.push(plan.volumes[index].clone());
            places.push(Some(index));
        }
        divides |= !self.added.is_empty() || !self.removed.is_empty();
        (self.plan.stack.tenants, self.plan.volumes) = (tenants, volumes);
        self.plan.follow(&places);
        let known = |place: &Option<usize>| {
            place.and_then(|place| self.ahead.get(place)).cloned().unwrap_or_default()
        };
        self.ahead = places.iter().map(known).collect();
        Ok(divides)
    }

    /// Errors: the cache is to be divided otherwise, and its layout has given devices to tenants.
    fn check_layout(&self) -> Result<(), LiveError> {
        let (plan, layout) = (&self.plan, &self.plan.stack.cache.layout.name);
        if self.divides && layout != STRIPED {
            return Err(plan.refuse(format!(
                "`cache.layout`: found `{layout}`, which gives devices to tenants at a start, \
                 expected no change of tenants, `cache.partition`, `cache.capacity`, weights, \
                 goals or histories without a restart"
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
        |stack: &crate::plan::LiveStack| stack.flash.as_deref().cloned().unwrap_or_default();
    check_table("flash", &flash(before), &flash(after), |key| OF_FLASH.contains(&key))
}

/// Whether other models decide, as far as policies and tenants that stay are concerned.
fn decides_by_others(old: &LivePlan, new: &LivePlan) -> bool {
    let (before, after) = (&old.models, &new.models);
    let pairs = models_of(old).into_iter().zip(models_of(new));
    let mut staying = pairs.filter_map(|(before, after)| before.zip(after));
    before.policy != after.policy
        || before.partition.joint != after.partition.joint
        || staying.any(|(before, after)| before != after)
}

/// The partitioner's model of each tenant, where it has one.
fn models_of(plan: &LivePlan) -> Vec<Option<&Vec<u8>>> {
    let mut served = plan.models.partition.each.iter();
    let is_absent = |tenant: usize| plan.absent.get(tenant).copied().unwrap_or(false);
    let own = |tenant: usize| if is_absent(tenant) { None } else { served.next() };
    (0..plan.volumes.len()).map(own).collect()
}

/// Whether the cache is divided by another partitioner, or otherwise by the same.
fn divides_otherwise(old: &LivePlan, new: &LivePlan) -> bool {
    let (before, after) = (&old.stack, &new.stack);
    let changed = |key: &str| OF_REPLAY.contains(&key);
    old.capacity_blocks != new.capacity_blocks
        || before.cache.partition != after.cache.partition
        || before.cache.shrink != after.cache.shrink
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
    let has_history = new.wanted.is_some();
    let divides = |key: &str| DIVIDING.contains(&key) || (has_history && OF_HISTORY.contains(&key));
    Ok(first_difference(&**before, &**after, divides).is_some())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::division::LiveModels;
    use std::path::Path;
    use std::sync::Arc;

    /// A plan of these tenants; each has a model of its own name with `version` behind it.
    fn plan(names: &[&str], version: &str) -> LivePlan {
        let head = "[cache]\ncapacity = \"4MiB\"\npolicy = \"lru\"\npartition = \"static\"\n\
                    [serve]\ndevices = [\"one.img\"]\nlisten = [\"unix:live.sock\"]\n";
        let tenant =
            |name: &&str| format!("[[tenant]]\nname = \"{name}\"\nbacking = \"{name}.img\"\n");
        let text = head.to_owned() + &names.iter().map(tenant).collect::<String>();
        let mut plan = LivePlan::read(&text, Path::new("stack.toml"), &[]).unwrap();
        let mut models = LiveModels::default();
        let model = |name: &&str| format!("{name}{version}").into_bytes();
        models.partition.each = names.iter().map(model).collect();
        plan.models = Arc::new(models);
        plan
    }

    fn ahead(names: &[&str]) -> Vec<Ahead> {
        let known = |name: &&str| Ahead {
            profile: vec![(u32::from(name.as_bytes()[0]), 0.5)],
            ..Ahead::default()
        };
        names.iter().map(known).collect()
    }

    /// Names, models and profiles by number.
    fn known(changes: &Changes) -> Vec<(String, String, Option<u32>)> {
        let models = models_of(&changes.plan).into_iter();
        let text = |model: Option<&Vec<u8>>| {
            String::from_utf8(model.cloned().unwrap_or_default()).unwrap()
        };
        let rows = changes.plan.volumes.iter().zip(models).zip(&changes.ahead);
        rows.map(|((volume, model), ahead)| {
            (volume.name.clone(), text(model), ahead.profile.first().map(|point| point.0))
        })
        .collect()
    }

    fn row(name: &str, model: &str, first: Option<char>) -> (String, String, Option<u32>) {
        (name.to_owned(), model.to_owned(), first.map(u32::from))
    }

    #[test]
    fn keys_of_tenants_that_are_compared_are_declared() {
        let plan = plan(&["a"], "1");
        let declared: Vec<&str> = plan.stack.tenants[0].values().iter().map(|own| own.0).collect();
        for key in FIXED.iter().chain(&DIVIDING).chain(&OF_HISTORY) {
            assert!(declared.contains(key), "{key}");
        }
    }

    #[test]
    fn models_and_what_is_known_ahead_follow_tenants_to_their_numbers() {
        let old = plan(&["a", "b", "c"], "1");
        let served = [Member::Served; 3];
        let new = ["d", "c", "a"];
        let changes = Changes::between(&old, plan(&new, "1"), ahead(&new), &served).unwrap();
        let expected = [
            row("a", "a1", Some('a')),
            row("b", "", None),
            row("c", "c1", Some('c')),
            row("d", "d1", Some('d')),
        ];
        assert_eq!(known(&changes), expected);
        assert!((&changes.added[..], &changes.removed[..]) == (&[3][..], &[1][..]));
        assert!(changes.divides && !changes.learns, "those that stay have the models of before");
        // From there on with another model of each, and in another order.
        let members = [Member::Served, Member::Gone, Member::Served, Member::Served];
        let (new, before) = (["a", "c", "d"], changes.plan);
        let changes = Changes::between(&before, plan(&new, "2"), Vec::new(), &members).unwrap();
        let models: Vec<String> = known(&changes).into_iter().map(|row| row.1).collect();
        assert_eq!(models, ["a2", "", "c2", "d2"]);
        assert!(changes.learns && !changes.divides);
        let same = Changes::between(&before, plan(&new, "1"), Vec::new(), &members).unwrap();
        assert!(!same.learns && !same.divides, "another order of tenants is no change");
    }
}
