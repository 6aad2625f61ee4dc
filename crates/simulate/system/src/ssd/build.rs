//! A drive with a data cache by the names of a stack file.
//!
//! For: one boxed type for machines, whatever the policy. Must never know: stack files, how a
//! policy decides. Drive and policy are each called through a box: an event of a drive costs far
//! more than the call, and the drive is compiled once instead of once per policy.

use super::{CachedParts, CachedSsd, DataCacheParams, DataCached, cached};
use cachewright_cache::{Engine, Quotas, WriteMode};
use cachewright_device::Device;
use cachewright_device::ssd::SsdParams;
use cachewright_device::ssd::host::Port;
use cachewright_policy::{ForeignCode, Policy, registry};
use cachewright_types::{RegistryError, Seed, SettingError, Value};
use thiserror::Error;

/// A drive whose policy is not known by type.
pub trait CachedDrive: Device + DataCached + Send {}

impl CachedDrive for CachedSsd<Box<dyn Policy>> {}

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
pub struct Description<'a> {
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
pub fn build(description: &Description<'_>) -> Result<Box<dyn CachedDrive>, BuildError> {
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
