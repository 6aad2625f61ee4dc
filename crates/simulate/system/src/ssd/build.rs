//! A drive with a data cache by the names of a stack file.
//!
//! For: one boxed type for machines, whatever the policy. Must never know: stack files, how a
//! policy decides. The call through the box is once per event of a drive, which costs far less than
//! what the event does.

use super::{CachedParts, CachedSsd, DataCacheParams, DataCached, cached};
use cachewright_cache::{Engine, Quotas, WriteMode};
use cachewright_device::Device;
use cachewright_device::ssd::SsdParams;
use cachewright_device::ssd::host::Port;
use cachewright_policy::{Policy, PolicyVisitor, Registered};
use cachewright_types::{RegistryError, Seed, SettingError, Value};
use thiserror::Error;

/// A drive whose policy is not known by type.
pub trait CachedDrive: Device + DataCached + Send {}

impl<P: Policy> CachedDrive for CachedSsd<P> {}

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
    /// Pages of the cache, for all or for each tenant.
    pub quotas: &'a Quotas,
    /// Where writes go.
    pub mode: WriteMode,
    /// How the cache treats pages.
    pub axes: &'a DataCacheParams,
    /// For policy and flash.
    pub seed: Seed,
}

impl PolicyVisitor for &Description<'_> {
    type Output = Result<Box<dyn CachedDrive>, SettingError>;

    fn visit<P: Registered>(self, settings: P::Settings) -> Self::Output {
        let make = |pool: usize, capacity: u32| {
            P::new(capacity, &settings, self.seed.derive(&format!("pool-{pool}")))
        };
        let engine = Engine::new(self.ports.len().max(1), self.quotas, self.mode, make);
        let (params, ports, axes) = (self.params, self.ports, self.axes.clone());
        let seed = self.seed.derive("flash");
        Ok(Box::new(cached(CachedParts { params, ports, engine, axes, seed })?))
    }
}

/// Builds the drive. Errors: unknown policy, refused settings, a drive that cannot be.
pub fn build(description: &Description<'_>) -> Result<Box<dyn CachedDrive>, BuildError> {
    let (name, pairs) = description.policy;
    Ok(cachewright_policy::visit(name, pairs, description)??)
}
