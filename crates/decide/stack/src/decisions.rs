//! What decides in the cache of a stack: its size, its policies, its partitioner.
//!
//! For: replays and live servers, so that both decide alike, seeds included. Must never know: how a
//! scheme decides, models, what carries decisions out. Units: blocks.

use crate::goal::Goal;
use crate::stack::Stack;
use crate::tables::Shadow;
use crate::tenant::TenantSpec;
use cachewright_ftl::CleaningSchemes;
use cachewright_partition::{Need, Partitioner, ResponseGoal};
use cachewright_policy::registry::PolicyMaker;
use cachewright_types::{BlockId, Seed, Size};

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

    /// The same among so many tenants.
    pub fn partitioner_among(&self, tenants: usize) -> Result<Box<dyn Partitioner>, String> {
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
            Ok(0) => Err(refuse("at least one block")),
            _ => Err(refuse("fewer than 2^32 - 16 blocks; a larger `cache.block` makes fewer")),
        }
    }
}
