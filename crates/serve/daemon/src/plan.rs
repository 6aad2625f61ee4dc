//! What a stack says of its live server, checked.
//!
//! For: a server and offline tools that find every value they need. Must never know: devices,
//! clocks. Units: bytes, blocks. Quotas, policies and their seeds are those of a
//! simulation of the same stack.

use crate::devices::log_settings;
use crate::division;
use crate::error::LiveError;
use crate::history::{self, Ahead, Wanted};
use crate::honoured::{self, LiveStack};
use crate::identity::Accepted;
use crate::layout::{LaidOut, laid_out};
use crate::models::LiveModels;
use cachewright_cache::{Cache, Engine, Quotas, SequentialCutoff, WriteMode};
use cachewright_control::KeptCurves;
use cachewright_live::blocks::{BackgroundSettings, CleaningSettings, Division};
use cachewright_live::exports::Caps;
use cachewright_live::io::FileId;
use cachewright_live::log::DeviceSet;
use cachewright_policy::Policy;
use cachewright_policy::registry::PolicyMaker;
use cachewright_stack::ServeSpec;
use cachewright_trace::DivisionsHead;
use cachewright_types::Seed;
use std::path::{Path, PathBuf};
use std::rc::Rc;
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
    maker: Rc<PolicyMaker>,
    /// Trained models.
    pub(crate) models: Rc<LiveModels>,
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
    /// that a live server cannot honour.
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
        honoured::check(&stack).map_err(refuse)?;
        let capacity_blocks = stack.capacity_blocks(None).map_err(refuse)?;
        let wanted = division::check(&stack).map_err(refuse)?;
        let models = Rc::new(LiveModels::read(&stack).map_err(refuse)?);
        let maker = Rc::new(stack.policy_maker().map_err(refuse)?);
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
        let known = (&self.models.partition, ahead, &[][..], &self.absent[..]);
        let first = division::first(&self.stack, self.capacity_blocks, known);
        let first = first.map_err(|error| self.refuse(error))?;
        let devices = (set, &log_settings(self, set)?, listed);
        laid_out(&self.stack, devices, &first).map_err(|error| self.refuse(error))
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
        let engine = self.engine(self.volumes.len(), &quotas);
        Ok(Cache::new(engine, self.block_bytes().trailing_zeros()))
    }

    /// How the cache is divided at first, within `limits`. Errors: as of [`LivePlan::cache`].
    pub fn quotas(&self, ahead: &[Ahead], limits: &[u32]) -> Result<Quotas, LiveError> {
        let known = (&self.models.partition, ahead, limits, &self.absent[..]);
        let first = division::first(&self.stack, self.capacity_blocks, known);
        first.map(|(_, quotas)| quotas).map_err(|error| self.refuse(error))
    }

    /// The policy of a pool of so many blocks.
    pub fn policy(&self, pool: usize, capacity_blocks: u32) -> Box<dyn Policy> {
        let policy = (self.maker)(capacity_blocks, self.stack.pool_seed(pool));
        self.models.given_to(policy)
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
        let known = (&self.models.partition, ahead, limits, &self.absent[..]);
        let division = division::anew(&self.stack, self.capacity_blocks, known);
        division.map_err(|error| self.refuse(error))
    }

    /// When requests go past the cache, if some do.
    pub fn cutoff(&self) -> Option<SequentialCutoff> {
        self.stack.cache.cutoff()
    }

    /// The curves of the last hour that the status tells, if it tells some. Errors: as of
    /// [`LivePlan::division`].
    pub fn kept_curves(&self) -> Result<Option<KeptCurves>, LiveError> {
        let curves = division::kept_curves(&self.stack, self.capacity_blocks, self.volumes.len());
        curves.map_err(|error| self.refuse(error))
    }

    /// What the divisions of a server are recorded from; nothing where quotas stay.
    pub fn divisions_head(&self) -> Option<DivisionsHead> {
        let (cache, interval_ns) = (&self.stack.cache, self.stack.replay.interval.0);
        let head = DivisionsHead {
            partition: cache.partition.name.clone(),
            interval_ns,
            block_bytes: cache.block.0,
            capacity_blocks: self.capacity_blocks,
            tenants: self.volumes.iter().map(|volume| volume.name.clone()).collect(),
        };
        (interval_ns > 0 && division::is_made_anew(&self.stack)).then_some(head)
    }

    fn engine(&self, tenants: usize, quotas: &Quotas) -> Engine<Box<dyn Policy>> {
        let make = |pool: usize, capacity: u32| self.policy(pool, capacity);
        Engine::new(tenants, quotas, self.stack.cache.write, make)
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
