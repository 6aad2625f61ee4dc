//! A drive with a data cache by the names of a stack file.
//!
//! For: one boxed type for machines, whatever the policy. Must never know: stack files, how a
//! policy decides. Drive and policy are each called through a box: an event of a drive costs far
//! more than the call, and the drive is compiled once instead of once per policy.

use super::cached_drive::{AnyCachedDrive, CachedSsd};
use super::data_cache::DataCache;
use super::params::DataCacheParams;
use cachewright_cache::{Engine, Quotas, WriteMode};
use cachewright_device::ssd::SsdParams;
use cachewright_device::ssd::drive::Drive;
use cachewright_device::ssd::drive::refusal;
use cachewright_device::ssd::flash::Backend;
use cachewright_device::ssd::host::{Host, Port};
use cachewright_policy::{ForeignCode, Policy, registry};
use cachewright_types::{RegistryError, Seed, SettingError, Value};
use thiserror::Error;

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
