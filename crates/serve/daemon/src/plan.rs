//! What a stack says of its live server, checked.
//!
//! Quotas, policies and their seeds are those of a simulation of the same stack. A key that
//! decides, and that a live server would ignore, is refused. Keys of traces, replays, simulated
//! devices and machines only price or feed a simulation, so a live server leaves them alone; and so
//! it does with the sizes of a simulated drive in `[flash]`.
//!
//! The layout of the cache's channels holds for devices: a device is a channel. It holds as many
//! blocks as a log on it alone would, so that several of them hold at least the sum.

use crate::devices::log_settings;
use crate::division::{self, DivisionInputs, LiveModels};
use crate::error::LiveError;
use crate::history::{self, Ahead, Wanted};
use crate::identity::Accepted;
use crate::trial;
use cachewright_cache::{Cache, Engine, Quotas, SequentialCutoff, SequentialStreams, WriteMode};
use cachewright_control::{Control, HourlyCurves};
use cachewright_live::blocks::{
    BackgroundSettings, CleaningSettings, DeviceLayout, Division, LiveDecider, PolicySource,
    max_blocks,
};
use cachewright_live::exports::{TlsConfig, TlsConfigError};
use cachewright_live::front::Caps;
use cachewright_live::io::FileId;
use cachewright_live::log::{DeviceSet, LogSettings};
use cachewright_partition::Need as PartitionNeed;
use cachewright_partition::layout::{ChannelMap, ChannelSizes, LayoutTenant, Wish, boxed};
use cachewright_policy::registry::PolicyMaker;
use cachewright_policy::{Need as PolicyNeed, Policy};
use cachewright_stack::cache::STRIPED;
use cachewright_stack::kinds::ChannelWish;
use cachewright_stack::tables::Blocks;
use cachewright_stack::{
    DecidingModels, MachineTables, Reader, Rest, ServeSpec, ServerTenants, Stack,
};
use cachewright_trace::DivisionsHead;
use cachewright_types::declare::Scheme;
use cachewright_types::{Bytes, Nanos, Seed, TenantId, Value, nearest};
use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A volume of the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackVolume {
    /// The tenant's name, by which the cache's devices know the volume.
    pub name: String,
    /// The name under which clients find it.
    pub export: String,
    /// Its file or block device.
    pub backing: PathBuf,
    /// Names of certificates that may see it; empty: every client may.
    pub clients: Vec<String>,
    /// Clients cannot write to it.
    pub read_only: bool,
    /// Connections that it may have at one time, if that is said.
    pub max_connections: Option<usize>,
}

/// A stack that can be served.
#[derive(Clone)]
pub struct LivePlan {
    /// Where the cache is kept, and where clients connect.
    pub serve: ServeSpec,
    /// The volumes, in the order of tenants.
    pub volumes: Vec<StackVolume>,
    /// Blocks of the cache.
    pub capacity_blocks: u32,
    pub(crate) stack: LiveStack,
    pub(crate) wanted: Option<Wanted>,
    /// What the operator accepts of the devices.
    pub(crate) accepted: Accepted,
    /// Tenants that were removed while the server runs; empty if none were.
    pub(crate) absent: Vec<bool>,
    maker: Arc<PolicyMaker>,
    /// Trained models.
    pub(crate) models: Arc<LiveModels>,
}

impl LivePlan {
    /// Reads a stack file. Errors: as of [`LivePlan::read`]; it cannot be read.
    pub fn open(origin: &Path, overrides: &[(String, String)]) -> Result<LivePlan, LiveError> {
        let text = std::fs::read_to_string(origin).map_err(|error| {
            let origin = origin.display();
            LiveError::Refused(format!("{origin}: {error}; expected a stack file"))
        })?;
        LivePlan::read(&text, origin, overrides)
    }

    /// Reads a stack file's text; `origin` is its path; `overrides` are `key=value` pairs set over
    /// it. Errors: anything wrong with it; no devices, a tenant without a backing device; a key
    /// that a live server does not support.
    pub fn read(
        text: &str,
        origin: &Path,
        overrides: &[(String, String)],
    ) -> Result<LivePlan, LiveError> {
        let refuse = |message: String| LiveError::stack(origin, message);
        let stack = LiveStack::parse(text, origin, overrides).map_err(refuse)?;
        let serve = stack.serve.clone().filter(|serve| !serve.devices.is_empty());
        let serve = serve.ok_or_else(|| {
            let expected = "expected the files or block devices of the cache";
            refuse(format!("found no `serve.devices`, {expected}"))
        })?;
        let volumes = volumes(&stack).map_err(refuse)?;
        check(&stack).map_err(refuse)?;
        let capacity_blocks = stack.capacity_blocks(None).map_err(refuse)?;
        let wanted = division::check(&stack).map_err(refuse)?;
        let models = Arc::new(LiveModels::read(&stack).map_err(refuse)?);
        let maker = Arc::new(stack.policy_maker().map_err(refuse)?);
        let (absent, accepted) = (Vec::new(), Accepted::default());
        let plan = LivePlan {
            serve,
            volumes,
            capacity_blocks,
            stack,
            wanted,
            accepted,
            absent,
            maker,
            models,
        };
        plan.check_schemes().map_err(|error| plan.refuse(error))?;
        plan.check_ids().map_err(|error| plan.refuse(error))?;
        plan.division(&[], &[])?;
        trial::maker(&plan)?;
        trial::divided_otherwise(&plan)?;
        Ok(plan)
    }

    /// The same plan for a start, or a tool, of which an operator accepts this.
    pub fn accepting(self, accepted: Accepted) -> LivePlan {
        LivePlan { accepted, ..self }
    }

    /// The same plan with one of its volumes alone.
    pub(crate) fn of_one(&self, volume: &StackVolume) -> LivePlan {
        LivePlan { volumes: vec![volume.clone()], ..self.clone() }
    }

    /// A refusal of the stack file.
    pub(crate) fn refuse(&self, message: impl std::fmt::Display) -> LiveError {
        LiveError::stack(&self.stack.origin, message)
    }

    /// The number of the tenant of this name. Errors: there is none, in words.
    pub fn tenant_named(&self, name: &str) -> Result<usize, String> {
        let names = || self.volumes.iter().map(|volume| volume.name.as_str());
        names().position(|own| own == name).ok_or_else(|| {
            let near = nearest(name, names()).map(|near| format!("; nearest is `{near}`"));
            format!(
                "found the volume `{name}`, expected the name of a `[[tenant]]` of {}{}",
                self.origin().display(),
                near.unwrap_or_default()
            )
        })
    }

    /// The path of the stack file.
    pub fn origin(&self) -> &Path {
        &self.stack.origin
    }

    /// The hit ratio that each tenant is to reach, if it is to reach one. Errors: a latency that no
    /// hit ratio gives.
    pub fn goals(&self) -> Result<Vec<Option<f64>>, LiveError> {
        self.stack.goals().map_err(|error| self.refuse(error))
    }

    /// The root of all randomness.
    pub(crate) fn seed(&self) -> Seed {
        self.stack.seed
    }

    /// The root of the randomness of a pool's policy.
    pub(crate) fn pool_seed(&self, pool: usize) -> Seed {
        self.stack.pool_seed(pool)
    }

    /// The same plan, but for its policy, which is that of another.
    pub(crate) fn with_policy_of(self, other: &LivePlan) -> LivePlan {
        let mut plan = LivePlan { maker: Arc::clone(&other.maker), ..self };
        plan.stack.cache.take_policy_of(&other.stack.cache);
        if plan.models.policy != other.models.policy {
            let mut models = LiveModels::clone(&plan.models);
            models.policy = other.models.policy.clone();
            plan.models = Arc::new(models);
        }
        plan
    }

    /// Divides by another partitioner, which reads neither models nor histories. Errors: there is
    /// no such partitioner, or a server cannot divide by it.
    pub(crate) fn divide_by(&mut self, partition: Scheme) -> Result<(), String> {
        let found = partition.name.clone();
        self.stack.cache.set_partition(partition);
        check_partition(&self.stack)?;
        let needs = cachewright_partition::entry(&found).map_or(&[][..], |entry| entry.needs);
        let is_trained =
            |need: &PartitionNeed| matches!(need, PartitionNeed::Model | PartitionNeed::JointModel);
        if needs.iter().any(is_trained) {
            return refuse("cache.partition", &found, "one that needs no trained models");
        }
        if division::check(&self.stack)?.is_some_and(Wanted::needs_history) {
            return refuse("cache.partition", &found, "one that needs no histories of tenants");
        }
        let inputs = self.division_inputs(&[], &[]);
        division::anew(&self.stack, self.capacity_blocks, inputs).map(drop)
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u64 {
        self.stack.cache.block.0
    }

    /// Bytes of the cache.
    pub fn capacity_bytes(&self) -> u64 {
        u64::from(self.capacity_blocks) * self.block_bytes()
    }

    /// Whether the cache may hold blocks whose backing device has older content.
    pub fn keeps_dirty(&self) -> bool {
        self.stack.cache.write == WriteMode::WriteBack
    }

    /// The cache in words: policy, partitioner and write mode.
    pub fn schemes(&self) -> [&str; 3] {
        let cache = &self.stack.cache;
        [&cache.policy.name, &cache.partition.name, cache.write.word()]
    }

    /// What the partitioner takes from the histories of tenants, which are read; empty if it takes
    /// nothing. Errors: a file that cannot be read, or says nothing.
    pub fn ahead(&self) -> Result<Vec<Ahead>, LiveError> {
        let (stack, blocks, never) = (&self.stack, self.capacity_blocks, AtomicBool::new(false));
        self.wanted.map_or(Ok(Vec::new()), |wanted| history::ahead(stack, blocks, wanted, &never))
    }

    /// Which devices of a set hold which tenants' blocks; the stack lists the devices as `listed`.
    /// `ahead` is what was taken from histories. Errors: the devices do not suffice.
    pub fn layout(
        &self,
        set: &DeviceSet,
        listed: &[FileId],
        ahead: &[Ahead],
    ) -> Result<LaidOut, LiveError> {
        let inputs = self.division_inputs(ahead, &[]);
        let first = division::first(&self.stack, self.capacity_blocks, inputs);
        let (control, quotas) = first.map_err(|error| self.refuse(error))?;
        let settings = log_settings(self, set)?;
        laid_out(&self.stack, set, &settings, listed, &control, &quotas)
            .map_err(|error| self.refuse(error))
    }

    /// The cache, empty, with the quotas and policies of a simulation of the stack; `ahead` is what
    /// was taken from histories. A layout bounds quotas by `limits`, in blocks by tenant. Errors: a
    /// setting is refused.
    pub fn cache(
        &self,
        ahead: &[Ahead],
        limits: &[u32],
    ) -> Result<Cache<Box<dyn Policy>>, LiveError> {
        let quotas = self.quotas(ahead, limits)?;
        let mut engine = self.engine(self.volumes.len(), &quotas);
        engine.explain_misses_by_address(self.capacity_blocks);
        Ok(Cache::new(engine, self.block_bytes().trailing_zeros()))
    }

    fn division_inputs<'a>(&'a self, ahead: &'a [Ahead], limits: &'a [u32]) -> DivisionInputs<'a> {
        let (models, absent) = (&self.models.partition, &self.absent[..]);
        DivisionInputs { models, ahead, limits, absent }
    }

    /// How the cache is divided at first, within `limits`. Errors: as of [`LivePlan::cache`].
    pub fn quotas(&self, ahead: &[Ahead], limits: &[u32]) -> Result<Quotas, LiveError> {
        let inputs = self.division_inputs(ahead, limits);
        let first = division::first(&self.stack, self.capacity_blocks, inputs);
        first.map(|(_, quotas)| quotas).map_err(|error| self.refuse(error))
    }

    /// The policy of a pool of so many blocks.
    pub fn policy(&self, pool: usize, capacity_blocks: u32) -> Box<dyn Policy> {
        let policy = (self.maker)(capacity_blocks, self.stack.pool_seed(pool));
        self.models.given_to(policy)
    }

    /// The same for all that comes, also on other threads.
    pub(crate) fn policy_source(&self) -> PolicySource {
        let plan = self.clone();
        Arc::new(move |pool, capacity_blocks| plan.policy(pool, capacity_blocks))
    }

    /// What decides in a server of the stack, before its first decision and without what is known
    /// ahead, so that a snapshot can be restored into it. Errors: a setting is refused.
    pub fn decider(&self) -> Result<LiveDecider, LiveError> {
        let engine = self.engine(self.volumes.len(), &self.quotas(&[], &[])?);
        let cache = Cache::new(engine, self.block_bytes().trailing_zeros());
        let streams = self.cutoff().map(SequentialStreams::new);
        Ok(LiveDecider::new(cache, self.division(&[], &[])?, streams))
    }

    /// What clients of a tenant's export may do.
    pub fn caps(&self, tenant: usize) -> Caps {
        let spec = &self.stack.tenants[tenant];
        Caps { requests: spec.max_iops, bytes: spec.max_bandwidth.map(|bytes| bytes.0) }
    }

    /// Bounds on work that no request waits for.
    pub fn background(&self) -> BackgroundSettings {
        BackgroundSettings {
            dirty_high: self.serve.dirty_high,
            dirty_low: self.serve.dirty_low(),
            bytes_per_s: self.serve.background_bandwidth.map(|bytes| bytes.0),
            latency_ns: self.serve.latency_target.map(|time| time.0),
        }
    }

    /// How the log is cleaned.
    pub fn cleaning(&self) -> CleaningSettings {
        let schemes = self.stack.cleaning_schemes().unwrap_or_default();
        CleaningSettings { schemes, drops_cold: self.serve.drop_cold }
    }

    /// How the cache is divided while it serves, within `limits`; nothing where quotas stay.
    /// Errors: what a partitioner divides by cannot be measured.
    pub fn division(&self, ahead: &[Ahead], limits: &[u32]) -> Result<Option<Division>, LiveError> {
        let inputs = self.division_inputs(ahead, limits);
        let division = division::anew(&self.stack, self.capacity_blocks, inputs);
        division.map_err(|error| self.refuse(error))
    }

    /// When requests go past the cache, if some do.
    pub fn cutoff(&self) -> Option<SequentialCutoff> {
        self.stack.cache.cutoff()
    }

    /// The curves of the last hour that the status tells, if it tells some. Errors: as of
    /// [`LivePlan::division`].
    pub fn kept_curves(&self) -> Result<Option<HourlyCurves>, LiveError> {
        let curves = division::kept_curves(&self.stack, self.capacity_blocks, self.volumes.len());
        curves.map_err(|error| self.refuse(error))
    }

    /// The keys that decide with their values, beside which a snapshot of decisions stands. Errors:
    /// a scheme's setting is refused.
    pub fn deciding(&self) -> Result<Vec<(String, String)>, String> {
        let LiveModels { policy, characterizer, partition, .. } = &*self.models;
        let characterizer = characterizer.as_ref().map(|(_, model)| model.as_slice());
        let models = DecidingModels { partition, policy, characterizer };
        self.stack.deciding(self.capacity_blocks, models, &self.server_tenants())
    }

    /// The tenants by their numbers, with those that were removed while the server runs.
    fn server_tenants(&self) -> ServerTenants {
        let numbered = self.volumes.iter().enumerate().map(|(number, volume)| {
            let was_removed = self.absent.get(number).copied().unwrap_or(false);
            (volume.name.clone(), Some(number).filter(|_| !was_removed))
        });
        ServerTenants::new(numbered)
    }

    /// Those that were removed while the server runs.
    pub(crate) fn removed_tenants(&self) -> impl Iterator<Item = TenantId> {
        let numbered = self.absent.iter().enumerate();
        numbered.filter(|(_, absent)| **absent).map(|(number, _)| TenantId(number as u16))
    }

    /// The same stack in a server that has given its tenants other numbers, and has removed some.
    pub fn numbered(&self, tenants: &ServerTenants) -> LivePlan {
        let mut plan = self.clone();
        let own = tenants.places().into_iter().zip(tenants.names());
        // Nothing but the name of a tenant that was removed is asked for.
        let with_gone = |(place, name): (Option<usize>, &str)| {
            let at = place.unwrap_or_default();
            let volume = StackVolume { name: name.to_owned(), ..self.volumes[at].clone() };
            (self.stack.tenants[at].clone(), volume)
        };
        (plan.stack.tenants, plan.volumes) = own.map(with_gone).unzip();
        plan.follow(&tenants.places());
        plan
    }

    /// Brings what belongs to each tenant into the order of numbers; `places` are those that they
    /// had so far, none of tenants that were removed.
    pub(crate) fn follow(&mut self, places: &[Option<usize>]) {
        self.absent = places.iter().map(Option::is_none).collect();
        let of_served =
            places.iter().flatten().filter_map(|place| self.models.partition.each.get(*place));
        let each: Vec<Vec<u8>> = of_served.cloned().collect();
        if each != self.models.partition.each {
            let mut models = LiveModels::clone(&self.models);
            models.partition.each = each;
            self.models = Arc::new(models);
        }
    }

    /// Whether the cache is divided while it serves.
    pub(crate) fn is_divided_anew(&self) -> bool {
        self.stack.replay.interval.0 > 0 && division::is_made_anew(&self.stack)
    }

    /// What divisions of a server are recorded from, in a recording that begins at `origin` on the
    /// clock of decisions; nothing where quotas stay.
    pub fn divisions_head(&self, origin: Nanos) -> Option<DivisionsHead> {
        let (cache, interval_ns) = (&self.stack.cache, self.stack.replay.interval.0);
        let head = DivisionsHead {
            partition: cache.partition.name.clone(),
            interval_ns,
            origin_ns: origin.0,
            block_bytes: cache.block.0,
            capacity_blocks: self.capacity_blocks,
            tenants: self.volumes.iter().map(|volume| volume.name.clone()).collect(),
        };
        self.is_divided_anew().then_some(head)
    }

    /// The deciding part of a cache, empty.
    pub(crate) fn engine(&self, tenants: usize, quotas: &Quotas) -> Engine<Box<dyn Policy>> {
        let make = |pool: usize, capacity: u32| self.policy(pool, capacity);
        let engine = Engine::new(tenants, quotas, self.stack.cache.write, make);
        engine.shrinking(self.stack.cache.shrink)
    }

    /// Errors: a log cannot follow the separation or the reclaim policy.
    fn check_schemes(&self) -> Result<(), String> {
        let streams = self.cleaning().schemes.streams();
        streams.map(|_| ()).map_err(|error| format!("`flash.separation`: {error}"))
    }

    /// Errors: the policy needs ids in the order of blocks, which a live cache does not have.
    fn check_ids(&self) -> Result<(), String> {
        if self.engine(1, &Quotas::Shared(1)).policy(0).has_adjacent_ids() {
            let name = &self.stack.cache.policy.name;
            return Err(format!(
                "`cache.policy`: found `{name}` with regions of several blocks, expected \
                 `region_blocks = 1` in a live server"
            ));
        }
        Ok(())
    }
}

/// The volumes of all tenants. Errors: one has no backing device.
fn volumes(stack: &LiveStack) -> Result<Vec<StackVolume>, String> {
    let volume = |(index, tenant): (usize, &cachewright_stack::TenantSpec)| {
        let backing = tenant.backing.clone().ok_or_else(|| {
            let key = format!("tenant[{}].backing", index + 1);
            format!("found no `{key}`, expected the file or block device of the tenant's volume")
        })?;
        let (name, export) = (tenant.name.clone(), tenant.export.clone());
        let (clients, read_only) = (tenant.clients.clone(), tenant.read_only);
        let max_connections = tenant.max_connections.map(|connections| connections as usize);
        Ok(StackVolume { name, export, backing, clients, read_only, max_connections })
    };
    stack.tenants.iter().enumerate().map(volume).collect()
}

/// The smallest block that a log can hold, in bytes.
const MIN_BLOCK: Bytes = Bytes(4096);

/// The tables of simulated devices, which a live server does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedDevices;

/// A stack as a live server reads it.
pub type LiveStack = Stack<SimulatedDevices>;

impl MachineTables for SimulatedDevices {
    const TABLES: &'static [&'static str] = &["device", "machine"];
    const MEASURES: bool = true;

    fn read(file: &Reader<'_>, _rest: &Rest<'_>) -> Result<Option<SimulatedDevices>, String> {
        let there = Self::TABLES.iter().any(|name| file.get(name).is_some());
        Ok(there.then_some(SimulatedDevices))
    }

    fn check(_machine: Option<&SimulatedDevices>, _rest: &Rest<'_>) -> Result<(), String> {
        Ok(())
    }

    fn resolved(&self) -> Result<Vec<(&'static str, Value)>, String> {
        Ok(Vec::new())
    }
}

/// A refusal: the key, what was found, what a live server expects.
fn refuse(key: &str, found: &str, expected: &str) -> Result<(), String> {
    Err(format!("`{key}`: found `{found}`, expected {expected} in a live server"))
}

/// Checks the keys that decide. Errors: the first that a live server does not support.
pub fn check(stack: &LiveStack) -> Result<(), String> {
    let cache = &stack.cache;
    check_policy(stack)?;
    check_partition(stack)?;
    if !SERVED.contains(&cache.layout.name.as_str()) {
        return refuse("cache.layout", &cache.layout.name, "`striped`, `dedicated` or `flashblox`");
    }
    if cache.block < MIN_BLOCK {
        return refuse("cache.block", &cache.block.to_string(), "at least 4KiB");
    }
    if !cache.drops_trimmed() {
        return refuse("cache.trim", "ignore", "`drop`");
    }
    if stack.replay.blocks == Blocks::Unit {
        return refuse("replay.blocks", "unit", "`split`");
    }
    check_clients(stack)
}

/// Names of clients need certificates, which authorities sign.
fn check_clients(stack: &LiveStack) -> Result<(), String> {
    let secure = stack.serve.as_ref().and_then(|serve| serve.secure.as_ref());
    let Some(index) = stack.tenants.iter().position(|tenant| !tenant.clients.is_empty()) else {
        return Ok(());
    };
    if secure.is_some_and(|secure| secure.authorities.is_some()) {
        return Ok(());
    }
    let found = stack.tenants[index].clients.join("`, `");
    Err(format!(
        "`tenant[{}].clients`: found `{found}`, expected `serve.tls_authorities` beside it, whose \
         certificates name clients",
        index + 1
    ))
}

fn check_policy(stack: &LiveStack) -> Result<(), String> {
    let name = &stack.cache.policy.name;
    let entry = cachewright_policy::entry(name);
    let entry = entry.map_err(|error| format!("`cache.policy`: {error}"))?;
    for need in entry.needs {
        let expected = match need {
            PolicyNeed::Requests | PolicyNeed::Model => continue,
            PolicyNeed::Future | PolicyNeed::Benefit => "a policy that does not need the future",
            PolicyNeed::Code => "a policy of the registry",
        };
        return refuse("cache.policy", name, expected);
    }
    Ok(())
}

fn check_partition(stack: &LiveStack) -> Result<(), String> {
    let name = &stack.cache.partition.name;
    let entry = cachewright_partition::entry(name);
    let entry = entry.map_err(|error| format!("`cache.partition`: {error}"))?;
    for need in entry.needs {
        let expected = match need {
            PartitionNeed::Interval
            | PartitionNeed::Curve
            | PartitionNeed::Goal
            | PartitionNeed::GoalResponses
            | PartitionNeed::Features
            | PartitionNeed::Reuse
            | PartitionNeed::Prices
            | PartitionNeed::Model
            | PartitionNeed::JointModel => continue,
            PartitionNeed::Future => "one that does not need the future, such as `hull`,",
            PartitionNeed::Channels => "one that needs no channels of a drive, such as `static`,",
        };
        return refuse("cache.partition", name, expected);
    }
    Ok(())
}

/// Layouts that a live server carries out: in them a tenant shares its devices with no other, and
/// has them while it is served.
const SERVED: [&str; 3] = [STRIPED, "dedicated", "flashblox"];

/// Which devices hold which tenants' blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaidOut {
    /// For the log.
    pub devices: DeviceLayout,
    /// The devices of each tenant, as the stack lists them; empty where all hold all.
    pub of_tenants: Vec<Vec<u32>>,
    /// Most blocks of each tenant; empty where nothing but the capacity bounds them.
    pub limits: Vec<u32>,
}

/// Lays the tenants of a stack out on the devices of a set, which the stack lists as `listed`.
/// The cache is divided into `quotas` at first. Errors: the refusal, by key and value.
pub fn laid_out(
    stack: &LiveStack,
    set: &DeviceSet,
    settings: &LogSettings,
    listed: &[FileId],
    control: &Control,
    quotas: &Quotas,
) -> Result<LaidOut, String> {
    let named = &stack.cache.layout;
    if named.name == STRIPED {
        return Ok(LaidOut::default());
    }
    let pools = quotas.pools_of(stack.tenants.len());
    let each: Vec<u32> = pools.iter().map(|pool| quotas.blocks()[usize::from(*pool)]).collect();
    let views: Vec<LayoutTenant<'_>> =
        (0..each.len()).map(|tenant| view(stack, control, tenant, each[tenant])).collect();
    let device_segments = set.segments() / listed.len().max(1);
    let each_blocks = max_blocks(set, settings, device_segments).min(u32::MAX.into()) as u32;
    let channels = ChannelSizes {
        blocks: vec![each_blocks; listed.len()],
        total_blocks: control.total_blocks(),
    };
    let mut layout = boxed(&named.name, &named.pairs).map_err(|error| error.to_string())?;
    let map = layout.lay_out(&views, &channels).map_err(|refusal| match refusal.tenant {
        Some(tenant) => format!("`tenant[{}].channels`: {refusal}", tenant + 1),
        None => format!("`cache.layout`: {refusal}; a device of the cache is a channel"),
    })?;
    debug_assert_eq!(map.audit(&views, &channels), Ok(()));
    let limits: Vec<u32> = (0..each.len()).map(|tenant| map.limit_blocks(tenant)).collect();
    let may_cut = layout.may_cut() && matches!(quotas, Quotas::PerTenant(_));
    if let Some(tenant) = (0..each.len()).find(|tenant| each[*tenant] > limits[*tenant])
        && !may_cut
    {
        let is_shared = pools.iter().filter(|pool| **pool == pools[tenant]).count() > 1;
        return Err(too_few(stack, tenant, limits[tenant], each[tenant], is_shared));
    }
    let of_tenant = |tenant| map.pools.get(pool_of_tenant(&map, tenant)).cloned();
    let of_tenants = (0..each.len()).map(|tenant| of_tenant(tenant).unwrap_or_default()).collect();
    Ok(LaidOut { devices: pools_of_devices(&map, set, listed), of_tenants, limits })
}

/// What a layout may know of a tenant.
fn view<'a>(
    stack: &'a LiveStack,
    control: &Control,
    tenant: usize,
    quota_blocks: u32,
) -> LayoutTenant<'a> {
    let spec = &stack.tenants[tenant];
    let required = control.required().get(tenant);
    LayoutTenant {
        weight: spec.weight,
        quota_blocks,
        need_blocks: required.map_or(quota_blocks, |required| required.blocks),
        miss_ratio: required.map_or(0.0, |required| required.miss_ratio),
        absent: false,
        wish: spec.channels.as_ref().map(|ChannelWish(wish): &ChannelWish| -> &Wish { wish }),
    }
}

/// The pool of a tenant: layouts that are served give it one.
fn pool_of_tenant(map: &ChannelMap, tenant: usize) -> usize {
    map.tenants[tenant].first().map_or(0, |share| share.pool)
}

/// The pools of a map, each with one tenant. Devices of no tenant are a pool of their own.
fn pools_of_devices(map: &ChannelMap, set: &DeviceSet, listed: &[FileId]) -> DeviceLayout {
    let pool_of = |file: &FileId| {
        let channel = listed.iter().position(|other| other == file);
        let channel = channel.unwrap_or_default() as u32;
        let owner = map.pools.iter().position(|pool| pool.contains(&channel));
        owner.unwrap_or(map.pools.len())
    };
    let devices = set.files().iter().map(pool_of).collect();
    let tenants = (0..map.tenants.len()).map(|tenant| pool_of_tenant(map, tenant)).collect();
    DeviceLayout { devices, tenants }
}

fn too_few(stack: &LiveStack, tenant: usize, limit: u32, quota: u32, is_shared: bool) -> String {
    let bytes = |blocks: u32| Bytes(u64::from(blocks) * stack.cache.block.0);
    let why = match is_shared {
        true => " (`cache.partition` lets it have all of a pool it shares)",
        false => "",
    };
    format!(
        "`tenant[{}].channels`: found room for `{}` on the devices of `{}`, expected room for its \
         quota of `{}`{why}",
        tenant + 1,
        bytes(limit),
        stack.tenants[tenant].name,
        bytes(quota)
    )
}

/// How the stack does TLS, and whether clients must use it; nothing where it does not. Errors: a
/// file cannot be read, or is not what it is given for.
pub fn tls_config(plan: &LivePlan) -> Result<Option<(TlsConfig, bool)>, LiveError> {
    let Some(files) = &plan.serve.secure else { return Ok(None) };
    let read = |key: &str, path: &Path| {
        std::fs::read(path).map_err(|error| {
            let path = path.display();
            plan.refuse(format!("`serve.{key}`: found that `{path}` cannot be read: {error}"))
        })
    };
    let certificate = read("tls_certificate", &files.certificate)?;
    let private = read("tls_key", &files.key)?;
    let authorities = files.authorities.as_ref();
    let authorities = authorities.map(|path| read("tls_authorities", path)).transpose()?;
    let config = TlsConfig::new(&certificate, &private, authorities.as_deref());
    let config = config.map_err(|error| {
        let (key, path) = match &error {
            TlsConfigError::Certificate(_) => ("tls_certificate", Some(&files.certificate)),
            TlsConfigError::Key(_) => ("tls_key", Some(&files.key)),
            TlsConfigError::Authorities(_) => ("tls_authorities", files.authorities.as_ref()),
        };
        let path = path.map(|path| path.display().to_string()).unwrap_or_default();
        plan.refuse(format!("`serve.{key}`: in `{path}` {error}"))
    })?;
    Ok(Some((config, files.is_required)))
}

/// The folders that a service manager gives for state, one behind the other.
const STATE: &str = "STATE_DIRECTORY";

/// Lets the process keep such files in the first folder that takes them: that for temporary files
/// (`TMPDIR`, else `/tmp`), the state of the service, that of the stack. Where none does, reading
/// says that there is no temporary folder.
pub fn choose_scratch_folder(stack: &Path) {
    let usual = env::temp_dir();
    let found = first_that_takes_files(&usual, env::var_os(STATE), stack);
    if let Some(folder) = found.filter(|folder| *folder != usual) {
        // Another one was chosen before: that one takes files as well.
        let _chosen = tempfile::env::override_temp_dir(&folder);
    }
}

fn first_that_takes_files(usual: &Path, state: Option<OsString>, stack: &Path) -> Option<PathBuf> {
    let state = state.unwrap_or_default();
    let state = state.as_bytes().split(|byte| *byte == b':').map(<[u8]>::to_vec);
    let state = state.filter(|path| !path.is_empty()).map(OsString::from_vec).map(PathBuf::from);
    let own = stack.parent().map(|folder| match folder.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => folder.to_owned(),
    });
    let mut folders = [usual.to_owned()].into_iter().chain(state).chain(own);
    folders.find(|folder| tempfile::tempfile_in(folder).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_to_the_first_folder_that_takes_them() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = root.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (usual, state, own) = (folder("tmp"), folder("state"), folder("own"));
        let (missing, stack) = (root.path().join("missing"), own.join("stack.toml"));
        let listed = |folders: &[&Path]| {
            let parts: Vec<&[u8]> =
                folders.iter().map(|path| path.as_os_str().as_bytes()).collect();
            Some(OsString::from_vec(parts.join(&b':')))
        };
        let given = listed(&[&missing, &state]);
        assert_eq!(first_that_takes_files(&usual, given.clone(), &stack), Some(usual));
        assert_eq!(first_that_takes_files(&missing, given, &stack), Some(state));
        let none = listed(&[&missing]);
        assert_eq!(first_that_takes_files(&missing, none.clone(), &stack), Some(own.clone()));
        assert_eq!(first_that_takes_files(&missing, None, &stack), Some(own));
        assert_eq!(first_that_takes_files(&missing, none, &missing.join("stack.toml")), None);
    }
}
