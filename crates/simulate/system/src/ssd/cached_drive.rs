//! A drive with a data cache as machines see it, whatever its policy, and how it is built by the
//! names of a stack file.
//!
//! Drive and policy are each called through a box: an event of a drive costs far more than the
//! call, and the drive is compiled once instead of once per policy.

use super::data_cache::{CacheStats, DataCache};
use super::params::DataCacheParams;
use crate::series::QuotaState;
use cachewright_cache::{Engine, Quotas, WriteMode};
use cachewright_control::{Control, Signals};
use cachewright_device::ssd::SsdParams;
use cachewright_device::ssd::drive::{Drive, refusal};
use cachewright_device::ssd::flash::Backend;
use cachewright_device::ssd::host::{Host, Port};
use cachewright_device::{Completion, Device};
use cachewright_partition::VictimSelector;
use cachewright_policy::{ForeignCode, Policy, registry};
use cachewright_types::measure::Counts;
use cachewright_types::{Nanos, RegistryError, Request, Seed, SettingError, TenantId, Value};
use thiserror::Error;

/// A drive with a data cache.
pub type CachedSsd<P> = Drive<DataCache<P>>;

/// What a machine may do with a drive whose policy it does not know.
pub trait DataCached {
    /// Changes the division of the cache at `now`; pages that must leave go at background pace. The
    /// kind of division stays (see `Engine::set_quotas`).
    fn set_quotas(&mut self, now: Nanos, quotas: &Quotas) -> bool;
    /// Lets a control loop divide the cache at the end of an interval; `signals` are those
    /// of the interval.
    fn control(&mut self, now: Nanos, control: &mut Control, signals: &Signals);
    /// Lets space follow requests from now on. The cache must be empty, with a pool of no pages for
    /// each tenant; all of them share `pages`.
    fn follow(&mut self, pages: u32, selector: Box<dyn VictimSelector>);
    /// How far a tenant is from what the division gives it; none where it has no quota of its own.
    fn state(&self, tenant: TenantId) -> QuotaState;
    /// Counters of a tenant, in pages.
    fn counts(&self, tenant: TenantId) -> Counts;
    /// Counts from now on only what commands after the last ones of each tenant, given by their
    /// tags, ask of the cache; tags of a tenant ascend.
    fn count_after(&mut self, last: &[Option<u64>]);
    /// Counters of a tenant since [`DataCached::count_after`] was called, if it was.
    fn counted(&self, tenant: TenantId) -> Counts;
    /// As [`Drive::advance_to_answer`].
    fn advance_to_answer(&mut self, until: Nanos, done: &mut Vec<Completion>) -> Nanos;
    /// Starts to load what requests to come will read.
    fn prefetch(&self, requests: &[Request]);
    /// From now on keeps how many pages each command found in the cache.
    fn tell_hits(&mut self);
    /// Appends the tags of commands that found pages in the cache since the last call, and how
    /// many; a command may appear more than once.
    fn take_hits(&mut self, hits: &mut Vec<(u64, u64)>);
    /// Pages a tenant holds.
    fn occupancy(&self, tenant: TenantId) -> u32;
    /// Pages a tenant may hold, once it has given up or got what the division says.
    fn quota(&self, tenant: TenantId) -> u32;
    /// The pool of each tenant, where some tenants but not all share one; otherwise nothing.
    fn mixed_pools(&self) -> Vec<u16>;
    /// Pages all tenants together may hold.
    fn pages(&self) -> u64;
    /// Pages that are dirty.
    fn dirty_pages(&self) -> u64;
    /// What the cache has done.
    fn cache_stats(&self) -> CacheStats;
    /// Time in which the wires to the drive and to the host carried something.
    fn link_busy(&self) -> [Nanos; 2];
}

/// A drive whose policy is not known by type.
pub trait AnyCachedDrive: Device + DataCached + Send {}

impl AnyCachedDrive for CachedSsd<Box<dyn Policy>> {}

impl<P: Policy> DataCached for CachedSsd<P> {
    fn set_quotas(&mut self, now: Nanos, quotas: &Quotas) -> bool {
        self.change(|inside| inside.divide(now.0, quotas))
    }

    fn control(&mut self, now: Nanos, control: &mut Control, signals: &Signals) {
        self.change(|inside| inside.divide_by(now.0, control, signals));
    }

    fn follow(&mut self, pages: u32, selector: Box<dyn VictimSelector>) {
        self.change(|inside| inside.follow(pages, selector));
    }

    fn state(&self, tenant: TenantId) -> QuotaState {
        self.inside().state(tenant)
    }

    fn counts(&self, tenant: TenantId) -> Counts {
        *self.inside().engine().counts(tenant)
    }

    fn count_after(&mut self, last: &[Option<u64>]) {
        self.change(|inside| inside.count_after(last));
    }

    fn counted(&self, tenant: TenantId) -> Counts {
        self.inside().counted(tenant)
    }

    fn advance_to_answer(&mut self, until: Nanos, done: &mut Vec<Completion>) -> Nanos {
        Drive::advance_to_answer(self, until, done)
    }

    fn prefetch(&self, requests: &[Request]) {
        self.inside().prefetch(requests);
    }

    fn tell_hits(&mut self) {
        self.change(|inside| inside.account_mut().keep_hits());
    }

    fn take_hits(&mut self, hits: &mut Vec<(u64, u64)>) {
        self.change(|inside| inside.account_mut().take_hits(hits));
    }

    fn occupancy(&self, tenant: TenantId) -> u32 {
        self.inside().engine().occupancy(tenant)
    }

    fn quota(&self, tenant: TenantId) -> u32 {
        self.inside().target(tenant)
    }

    fn mixed_pools(&self) -> Vec<u16> {
        self.inside().engine().mixed_pools()
    }

    fn pages(&self) -> u64 {
        self.inside().total()
    }

    fn dirty_pages(&self) -> u64 {
        self.inside().engine().dirty_blocks()
    }

    fn cache_stats(&self) -> CacheStats {
        self.inside().stats()
    }

    fn link_busy(&self) -> [Nanos; 2] {
        self.host().link_busy()
    }
}

/// What a drive with a cache is made of.
pub struct CachedParts<'a, P> {
    /// The drive.
    pub params: &'a SsdParams,
    /// The tenants' access to it.
    pub ports: &'a [Port],
    /// The empty cache; one pool for all, or one per tenant.
    pub engine: Engine<P>,
    /// How it treats pages.
    pub axes: DataCacheParams,
    /// For the flash.
    pub seed: Seed,
}

/// Puts a drive with a data cache together. Errors: the drive cannot be.
pub fn cached<P: Policy>(parts: CachedParts<'_, P>) -> Result<CachedSsd<P>, SettingError> {
    let CachedParts { params, ports, engine, axes, seed } = parts;
    params.check()?;
    let tenants = ports.len().max(1) as u32;
    let flash = Backend::new(&params.flash(tenants), seed).map_err(refusal)?;
    let inside = DataCache::new(params, flash, engine, &axes);
    Ok(Drive::assemble(Host::new(params, ports), inside, params.power()))
}

/// Why a drive could not be built.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BuildError {
    /// The policy is unknown, or a setting of it is refused.
    #[error(transparent)]
    Policy(#[from] RegistryError),
    /// The drive cannot be, or a parameter is refused.
    #[error(transparent)]
    Drive(#[from] SettingError),
}

/// A drive with a data cache, described.
pub struct DriveDescription<'a> {
    /// The drive.
    pub params: &'a SsdParams,
    /// The tenants' access to it; one per tenant.
    pub ports: &'a [Port],
    /// The policy's name and settings.
    pub policy: (&'a str, &'a [(String, Value)]),
    /// The policy's code, where it stands outside.
    pub code: Option<&'a ForeignCode>,
    /// Pages of the cache, for all or for each tenant.
    pub quotas: &'a Quotas,
    /// Where writes go.
    pub mode: WriteMode,
    /// How the cache treats pages.
    pub axes: &'a DataCacheParams,
    /// For policy and flash.
    pub seed: Seed,
}

/// Builds the drive. Errors: unknown policy, refused settings, a drive that cannot be.
pub fn build(description: &DriveDescription<'_>) -> Result<Box<dyn AnyCachedDrive>, BuildError> {
    let (name, pairs) = description.policy;
    let policy = registry::maker(name, pairs)?;
    let make = |pool: usize, capacity: u32| {
        let mut made = policy(capacity, description.seed.derive(&format!("pool-{pool}")));
        description.code.iter().for_each(|code| made.attach_code(code));
        made
    };
    let (params, ports) = (description.params, description.ports);
    let engine = Engine::new(ports.len().max(1), description.quotas, description.mode, make);
    let (axes, seed) = (description.axes.clone(), description.seed.derive("flash"));
    Ok(Box::new(cached(CachedParts { params, ports, engine, axes, seed })?))
}
