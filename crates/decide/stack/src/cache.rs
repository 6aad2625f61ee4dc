//! The `[cache]` table: what is cached and how that is decided.
//!
//! `partition = "auto"` and `policy = "auto"`: the schemes that fit what a stack has. The scheme
//! takes the place of `auto` as the file is read, so that the resolved stack names it. Constants of
//! `hull` are those of `icache-x`, set before any of the tables of docs/which-scheme.md was
//! measured. For responses the policy is that of least worst regret in the table of policies there;
//! else it is `duel-x`, which follows the best of three. Both need nothing, so that each stack can
//! run them.
//!
//! The keys `tenant.model`, `cache.model`, `cache.models`, `cache.workload` and
//! `cache.characterize`. A model is read when a case is run whose partitioner or policy needs it.
//! Other schemes ignore it, so that one file can compare them.

use crate::document::Reader;
use crate::stack::Stack;
use crate::tables::{CacheTable, Shadow, Trim};
use crate::tenant::{Goal, TenantSpec};
use cachewright_cache::{SequentialCutoff, Shrink};
use cachewright_ftl::CleaningSchemes;
use cachewright_partition::{ActiveTenants, Need, Partitioner, ResponseGoal};
use cachewright_policy::characterize::Characterizer;
use cachewright_policy::registry::PolicyMaker;
use cachewright_types::declare::Scheme;
use cachewright_types::{BlockId, Nanos, Seed, Size, Value, parse_duration};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The `[cache]` table with every default filled in, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSpec {
    table: CacheTable,
    /// Size of the cache, which has no default.
    pub capacity: Size,
    /// The file of a model of all tenants together, for partitioners that predict by one.
    pub model: Option<ModelFile>,
    /// Models by kind of workload, for policies that decide by one.
    pub kinds: KindsSpec,
}

impl Deref for CacheSpec {
    type Target = CacheTable;

    fn deref(&self) -> &CacheTable {
        &self.table
    }
}

impl CacheTable {
    /// Whether trims drop cached blocks.
    pub fn drops_trimmed(&self) -> bool {
        self.trim == Trim::Drop
    }

    /// When requests go past the cache, if some do.
    pub fn cutoff(&self) -> Option<SequentialCutoff> {
        let (bytes, streams) = (self.sequential_cutoff.0, self.sequential_streams);
        (bytes > 0).then_some(SequentialCutoff { bytes, streams })
    }
}

impl CacheSpec {
    /// Sets another policy with its default settings, unless it is that one already.
    pub fn set_policy(&mut self, name: &str) {
        if self.policy.name != name {
            self.table.policy = Scheme::named(name);
        }
    }

    /// Sets another partitioner.
    pub fn set_partition(&mut self, partition: Scheme) {
        self.table.partition = partition;
    }

    /// Takes the policy of another cache, with its settings.
    pub fn take_policy_of(&mut self, other: &CacheSpec) {
        self.table.policy = other.policy.clone();
    }

    /// Puts the schemes that fit in the place of each `auto`. Errors: settings of `auto`.
    pub(crate) fn choose_schemes(&mut self, facts: StackFacts) -> Result<(), String> {
        self.table.policy = auto_policy(&self.table.policy, facts)?;
        self.table.partition = auto_partition(&self.table.partition, facts)?;
        Ok(())
    }

    /// Errors: blocks are to stay beyond quotas where they cannot.
    pub(crate) fn check_shrink(&self) -> Result<(), String> {
        let refuse = |found: &str, reason: &str| {
            Err(format!("`cache.shrink`: found `as-needed` {found}, expected `at-once`: {reason}"))
        };
        match self.shrink {
            Shrink::AtOnce => Ok(()),
            Shrink::AsNeeded if self.layout.name != STRIPED => {
                let found = format!("with `cache.layout = \"{}\"`", self.layout.name);
                refuse(&found, "a tenant has no more channels than its quota fills")
            }
            Shrink::AsNeeded if self.shadow != Shadow::None => {
                refuse("with `cache.shadow`", "shadow partitions are parts of a quota")
            }
            Shrink::AsNeeded => Ok(()),
        }
    }

    /// The table of a file in `folder`. Errors: there is none, a key is refused, no such scheme.
    pub fn read(file: &Reader<'_>, folder: &Path) -> Result<CacheSpec, String> {
        let reader = file.table("cache")?;
        if !reader.is_there() {
            return Err("found no `[cache]` table, expected one".to_owned());
        }
        let mut table: CacheTable = reader.read()?;
        let block = table.block;
        if !block.0.is_power_of_two() {
            return Err(format!(
                "`cache.block`: found `{block}`, expected a power of two from 512B to 1GiB"
            ));
        }
        if table.policy.name != AUTO {
            let known = cachewright_policy::entry(&table.policy.name);
            known.map_err(|error| format!("`cache.policy`: {error}"))?;
        }
        if table.partition.name != AUTO {
            let known = cachewright_partition::entry(&table.partition.name);
            known.map_err(|error| format!("`cache.partition`: {error}"))?;
        }
        let known = cachewright_partition::layout::boxed(&table.layout.name, &table.layout.pairs);
        known.map_err(|error| format!("`cache.layout`: {error}"))?;
        let capacity = table.capacity.ok_or(
            "found no `cache.capacity`, expected a size such as `64MiB` or `10%wss`".to_owned(),
        )?;
        let kinds = KindsSpec::new(&table, folder)?;
        table.workload.clone_from(&kinds.first);
        let model = table.model.as_deref().map(|text| ModelFile::new(text, folder));
        Ok(CacheSpec { table, capacity, model, kinds })
    }
}

impl<M> Stack<M> {
    /// The root of the randomness of the policy in a pool.
    pub fn pool_seed(&self, pool: usize) -> Seed {
        self.seed.derive("policy").derive(&format!("pool/{pool}"))
    }

    /// The root of the randomness of the policy in a profile ahead of a run.
    pub fn profile_seed(&self) -> Seed {
        self.seed.derive("profile")
    }

    /// The root of the randomness of the curve of a tenant ahead of a run.
    pub fn head_curve_seed(&self, place: usize) -> Seed {
        self.seed.derive(&format!("curve of head/{place}"))
    }

    /// A maker of the policy, with its settings. Errors: a setting is refused.
    pub fn policy_maker(&self) -> Result<PolicyMaker, String> {
        let policy = &self.cache.policy;
        cachewright_policy::registry::maker(&policy.name, &policy.pairs)
            .map_err(|error| format!("`cache.policy`: {error}"))
    }

    /// Checks that quotas can be split in shadow partitions, if they are to be. Errors: the first
    /// reason why not; `devices` says that requests go to devices.
    pub(crate) fn check_shadow(&self, devices: bool) -> Result<(), String> {
        if self.cache.shadow == Shadow::None {
            return Ok(());
        }
        let refuse = |found: String, expected: &str| {
            Err(format!("`cache.shadow`: found `talus` {found}, expected {expected}"))
        };
        if devices {
            let expected = "`none`: ids of blocks are given anew there, and a shadow partition \
                            follows blocks by their ids";
            return refuse("with devices".to_owned(), expected);
        }
        let (policy, named) = (&self.cache.policy.name, &self.cache.partition.name);
        let reads = |entry: &cachewright_partition::Entry| entry.needs.contains(&Need::Curve);
        if !cachewright_partition::entry(named).is_ok_and(reads) {
            let expected = "a partitioner that reads curves, such as `hull`";
            return refuse(format!("with the partitioner `{named}`"), expected);
        }
        let kind = self.partitioner()?.curves();
        if kind.ahead {
            return refuse("with curves measured ahead".to_owned(), "curves of intervals");
        }
        let knows = cachewright_policy::entry(policy).is_ok_and(|entry| entry.needs.is_empty());
        if !knows || (policy != "lru" && !kind.own_policy) {
            let expected =
                "`lru`, or a policy without needs and curves of it (`own_policy = true`)";
            return refuse(format!("with the policy `{policy}`"), expected);
        }
        Ok(())
    }

    /// The partitioner, with its settings and without models. Errors: a setting is refused.
    pub fn partitioner(&self) -> Result<Box<dyn Partitioner>, String> {
        self.partitioner_among(self.tenants.len())
    }

    /// The same in a server that has removed the tenants that are `absent`; all of the stack are
    /// served where that is empty.
    pub fn partitioner_without(&self, absent: &[bool]) -> Result<Box<dyn Partitioner>, String> {
        let served = absent.iter().filter(|absent| !**absent).count();
        if served == absent.len() {
            return self.partitioner();
        }
        Ok(Box::new(ActiveTenants::among(self.partitioner_among(served)?, absent)))
    }

    fn partitioner_among(&self, tenants: usize) -> Result<Box<dyn Partitioner>, String> {
        let named = &self.cache.partition;
        let seed = self.seed.derive("partition");
        cachewright_partition::boxed(&named.name, &named.pairs, tenants, seed)
            .map_err(|error| format!("`cache.partition`: {error}"))
    }

    /// The schemes of a log under the cache, with the seed that `wa` gives them; nothing without a
    /// `[flash]` table.
    pub fn cleaning_schemes(&self) -> Option<CleaningSchemes> {
        let flash = self.flash.as_ref()?;
        let (separation, reclaim) = (flash.separation.clone(), flash.reclaim.clone());
        Some(CleaningSchemes { separation, reclaim, seed: self.seed })
    }

    /// The hit-ratio goal of each tenant that has one, or a latency that stands for one. Errors: a
    /// latency that no hit ratio gives.
    pub fn goals(&self) -> Result<Vec<Option<f64>>, String> {
        let (hit, miss) = (self.replay.hit_time, self.replay.miss_time);
        let goal = |(place, tenant): (usize, &TenantSpec)| {
            let ratio = tenant.goal.map(|goal| goal.hit_ratio(hit, miss)).transpose();
            let ratio = ratio.map(Option::flatten);
            ratio.map_err(|error| format!("`tenant[{}].goal_latency`: {error}", place + 1))
        };
        self.tenants.iter().enumerate().map(goal).collect()
    }

    /// The response times promised to each tenant.
    pub fn response_goals(&self) -> Vec<Option<ResponseGoal>> {
        self.tenants.iter().map(|tenant| tenant.goal.and_then(Goal::response)).collect()
    }

    /// Checks that a partitioner that keeps goals, by its `needs`, keeps those of the stack.
    /// Errors: a goal in response time that it does not read.
    pub fn check_response_goals(&self, needs: &[Need]) -> Result<(), String> {
        if !needs.contains(&Need::Goal) || needs.contains(&Need::GoalResponses) {
            return Ok(());
        }
        let given = |tenant: &TenantSpec| tenant.goal.filter(|goal| goal.response().is_some());
        match self
            .tenants
            .iter()
            .map(given)
            .enumerate()
            .find_map(|(place, goal)| Some((place, goal?)))
        {
            None => Ok(()),
            Some((place, goal)) => Err(format!(
                "`tenant[{}].{}`: found a goal in response time with the partitioner `{}`, which \
                 keeps hit ratios; expected `soft-qos-x`, or another goal",
                place + 1,
                goal.key(),
                self.cache.partition.name
            )),
        }
    }

    /// The capacity in blocks, where the working set has so many blocks, if it is known. Errors: a
    /// share of an unknown working set; a capacity that cannot be.
    pub fn capacity_blocks(&self, working_set: Option<u32>) -> Result<u32, String> {
        let found = self.cache.capacity;
        let refuse =
            |expected: &str| format!("`cache.capacity`: found `{found}`, expected {expected}");
        let blocks = match found {
            Size::Blocks(blocks) => blocks,
            Size::WorkingSetPercent(percent) => {
                let unknown = "a size or `N blocks`: the working set is not known";
                let working_set = working_set.ok_or_else(|| refuse(unknown))?;
                (f64::from(working_set) * percent / 100.0).round().max(1.0) as u64
            }
            Size::Bytes(_) if self.replay.unit() => {
                return Err(refuse("`N blocks` or `P%wss`, since unit blocks have no size"));
            }
            Size::Bytes(bytes) => bytes.0 / self.cache.block.0,
        };
        let limit = u64::from(BlockId::LIMIT);
        match u32::try_from(blocks) {
            Ok(blocks) if blocks > 0 && u64::from(blocks) < limit => Ok(blocks),
            Ok(0) => Err(refuse(&format!("at least one block ({})", self.cache.block))),
            _ => Err(refuse("fewer than 2^32 - 16 blocks; a larger `cache.block` makes fewer")),
        }
    }
}

/// The layout in which all channels, or devices, hold all tenants' blocks.
pub const STRIPED: &str = "striped";
/// The word in stack files.
pub const AUTO: &str = "auto";

/// What the rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFacts {
    /// Tenants.
    pub tenants: usize,
    /// A tenant has a goal.
    pub goals: bool,
    /// Requests have response times: devices are simulated, or a live server measures.
    pub responses: bool,
}

/// The partitioner that `named` stands for: itself, unless it is `auto`. Errors: settings of
/// `auto`.
pub fn auto_partition(named: &Scheme, facts: StackFacts) -> Result<Scheme, String> {
    Ok(match facts {
        _ if !is_auto("cache.partition", named)? => named.clone(),
        StackFacts { tenants: 0 | 1, .. } => Scheme::named("shared"),
        StackFacts { goals: true, .. } => Scheme::named("soft-qos-x"),
        StackFacts { responses: true, .. } => patient_icache_x(),
        _ => steady_hull(),
    })
}

/// The policy that `named` stands for: itself, unless it is `auto`. Errors: settings of `auto`.
pub fn auto_policy(named: &Scheme, facts: StackFacts) -> Result<Scheme, String> {
    Ok(match facts {
        _ if !is_auto("cache.policy", named)? => named.clone(),
        StackFacts { responses: true, .. } => Scheme::named("access-frequency"),
        _ => Scheme::named("duel-x"),
    })
}

/// Whether a scheme is to be chosen. Errors: it has settings.
fn is_auto(key: &str, named: &Scheme) -> Result<bool, String> {
    let setting = named.pairs.first().filter(|_| named.name == AUTO);
    match setting {
        None => Ok(named.name == AUTO),
        Some((setting, _)) => Err(format!(
            "`{key}`: found the setting `{setting}` of `{AUTO}`, expected none; settings belong \
             to the scheme that is chosen"
        )),
    }
}

/// `icache-x` with a past of minutes, that weighs the tenant which is slowed down most. Chosen on
/// mixes that do not judge, at loads that their devices carry (docs/design/cache.md, C-36).
fn patient_icache_x() -> Scheme {
    with_settings("icache-x", &[("half_life", 64.0), ("norm", 2.0)])
}

/// `hull` that changes for a gain, by parts, and leaves every tenant a tenth of an equal share.
fn steady_hull() -> Scheme {
    with_settings("hull", &[("min_gain", 0.02), ("max_moved", 0.25), ("floor_share", 0.1)])
}

fn with_settings(name: &str, settings: &[(&str, f64)]) -> Scheme {
    let pair = |(key, value): &(&str, f64)| ((*key).to_owned(), Value::Float(*value));
    Scheme { name: name.to_owned(), pairs: settings.iter().map(pair).collect() }
}

/// How often a characterizer is asked unless a stack says otherwise.
const MINUTE: Nanos = Nanos(60_000_000_000);

/// A file of a trained model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFile {
    /// As written in the stack file.
    pub text: String,
    /// Its path, a relative one taken from the stack file's folder.
    pub path: PathBuf,
}

impl ModelFile {
    /// The file of a text, relative ones below `folder`.
    pub fn new(text: &str, folder: &Path) -> ModelFile {
        ModelFile { text: text.to_owned(), path: folder.join(text) }
    }
}

/// Models of caching by the kind of workload they were trained on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KindsSpec {
    /// In order of the names.
    pub files: Vec<(String, ModelFile)>,
    /// The kind to begin with.
    pub first: Option<String>,
    /// What says which kind runs.
    pub characterizer: Option<CharacterizerSpec>,
}

/// A characterizer.
#[derive(Clone, Debug, PartialEq)]
pub struct CharacterizerSpec {
    /// Its name and settings.
    pub named: Scheme,
    /// Its model.
    pub model: ModelFile,
    /// How often it is asked.
    pub every: Nanos,
}

impl CharacterizerSpec {
    /// The characterizer that the cache's table names, if any.
    fn new(table: &CacheTable, folder: &Path) -> Result<Option<CharacterizerSpec>, String> {
        let Some(mut named) = table.characterize.clone() else { return Ok(None) };
        let mut take = |key: &str| {
            let index = named.pairs.iter().position(|(name, _)| name == key)?;
            Some(named.pairs.swap_remove(index).1)
        };
        let model = match take("model") {
            Some(Value::Text(text)) => ModelFile::new(&text, folder),
            Some(_) => {
                let expected = "expected a file in quotes";
                return Err(format!("`cache.characterize.model`: found no text, {expected}"));
            }
            None => {
                let expected = "expected the file of its model";
                return Err(format!("`cache.characterize`: found no `model`, {expected}"));
            }
        };
        let every = match take("every") {
            None => MINUTE,
            Some(Value::Text(text)) => parse_duration(&text)
                .map_err(|error| format!("`cache.characterize.every`: {error}"))?,
            Some(_) => Nanos(0),
        };
        if every.0 == 0 {
            let expected = "expected a time above 0, such as \"60s\"";
            return Err(format!("`cache.characterize.every`: found none, {expected}"));
        }
        named.pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        cachewright_policy::characterize::boxed(&named.name, &named.pairs)
            .map_err(|error| format!("`cache.characterize`: {error}"))?;
        Ok(Some(CharacterizerSpec { named, model, every }))
    }

    /// One with its model, which has observed nothing. Errors: a setting or a model is refused.
    pub fn with_model(&self, model: &[u8]) -> Result<Box<dyn Characterizer>, String> {
        let made = cachewright_policy::characterize::boxed(&self.named.name, &self.named.pairs);
        let mut made = made.map_err(|error| error.to_string())?;
        made.learn(model)?;
        Ok(made)
    }
}

impl KindsSpec {
    /// Errors: a characterizer tells only kinds apart of which there are no models.
    pub fn check_kinds(&self, characterizer: &dyn Characterizer) -> Result<(), String> {
        let known: Vec<&str> = self.files.iter().map(|(kind, _)| kind.as_str()).collect();
        let kinds = characterizer.kinds();
        if kinds.iter().any(|kind| known.contains(&kind.as_str())) {
            return Ok(());
        }
        let (classified, known) = (kinds.join(", "), known.join(", "));
        Err(format!("it tells {classified} apart, expected some of {known}"))
    }

    /// The models that the cache's table names. Errors: a first kind without a model, or none said
    /// where there are several.
    pub fn new(table: &CacheTable, folder: &Path) -> Result<KindsSpec, String> {
        let models = table.models.0.iter();
        let files: Vec<(String, ModelFile)> =
            models.map(|(kind, text)| (kind.clone(), ModelFile::new(text, folder))).collect();
        let kinds: Vec<&str> = files.iter().map(|(kind, _)| kind.as_str()).collect();
        let first = match table.workload.clone() {
            None if kinds.len() > 1 => {
                let kinds = kinds.join(", ");
                let found = "`cache.workload`: found none beside several models";
                return Err(format!("{found}, expected the kind to begin with: one of {kinds}"));
            }
            None => kinds.first().map(|kind| (*kind).to_owned()),
            Some(kind) if kinds.contains(&kind.as_str()) => Some(kind),
            Some(kind) => {
                let expected = match kinds.is_empty() {
                    true => "models of it in `cache.models`".to_owned(),
                    false => format!("one of {}", kinds.join(", ")),
                };
                return Err(format!("`cache.workload`: found `{kind}`, expected {expected}"));
            }
        };
        let characterizer = CharacterizerSpec::new(table, folder)?;
        Ok(KindsSpec { files, first, characterizer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_come_before_response_times_and_these_before_curves() {
        let facts = |tenants, goals, responses| StackFacts { tenants, goals, responses };
        let name = |facts| auto_partition(&Scheme::named(AUTO), facts).unwrap().name;
        assert_eq!(name(facts(1, true, true)), "shared");
        assert_eq!(name(facts(2, true, true)), "soft-qos-x");
        assert_eq!(name(facts(2, false, true)), "icache-x");
        assert_eq!(name(facts(2, false, false)), "hull");
    }

    #[test]
    fn every_choice_is_a_partitioner_that_takes_its_settings() {
        for (goals, responses) in [(true, true), (false, true), (false, false)] {
            let facts = StackFacts { tenants: 2, goals, responses };
            let chosen = auto_partition(&Scheme::named(AUTO), facts).unwrap();
            let made = cachewright_partition::registry::resolved(&chosen.name, &chosen.pairs);
            assert!(made.is_ok(), "{chosen:?}");
        }
        assert!(cachewright_partition::entry(AUTO).is_err(), "no scheme has the name");
    }

    #[test]
    fn other_schemes_stay_and_settings_are_refused() {
        let facts = StackFacts { tenants: 2, goals: false, responses: false };
        let equal = Scheme::named("equal");
        assert_eq!(auto_partition(&equal, facts), Ok(equal));
        let arc = Scheme::named("arc");
        assert_eq!(auto_policy(&arc, facts), Ok(arc));
        let pairs = vec![("granules".to_owned(), Value::Int(3))];
        let set = Scheme { name: AUTO.to_owned(), pairs };
        for (resolve, key) in [
            (
                auto_partition as fn(&Scheme, StackFacts) -> Result<Scheme, String>,
                "cache.partition",
            ),
            (auto_policy, "cache.policy"),
        ] {
            let error = resolve(&set, facts).unwrap_err();
            let found = format!("`{key}`: found the setting `granules` of `auto`, expected none");
            assert!(error.starts_with(&found), "{error}");
        }
    }

    #[test]
    fn a_policy_is_chosen_for_misses_or_for_response_times_and_needs_nothing() {
        for (responses, expected) in [(false, "duel-x"), (true, "access-frequency")] {
            for (tenants, goals) in [(1, false), (3, true)] {
                let facts = StackFacts { tenants, goals, responses };
                let chosen = auto_policy(&Scheme::named(AUTO), facts).unwrap();
                assert_eq!(chosen, Scheme::named(expected));
                let entry = cachewright_policy::entry(&chosen.name).unwrap();
                assert!(entry.needs.is_empty(), "{expected}");
            }
        }
        assert!(cachewright_policy::entry(AUTO).is_err(), "no policy has the name");
    }
}
