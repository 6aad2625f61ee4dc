//! Pages of different tenants in different blocks.
//!
//! For: a separation that must know whose a write is, which only the owner of a
//! [`Layer`](crate::layer::Layer) says. It stands in no table of separations. Must never know:
//! queues, time. One stream per tenant for the host's pages and one for moved ones. MQSim keeps one
//! open block of each kind per flow and plane (FAST'18, section 4.4). Tenants beyond the set number
//! share streams in turn.

use crate::separation::{self, MovedPage, Registered, Write};
use crate::{Entry, Geometry, Separation, Stream};
use cachewright_types::declare::Declared;
use cachewright_types::registry::{self, RegistryError, Resolved};
use cachewright_types::{Seed, Value, declare};

declare! {
    /// How many tenants are told apart.
    pub struct TenantSettings {
        /// tenants with blocks of their own
        tenants: u32 = 2, "tenants", 1 ..= 32;
    }
}

/// The separations that a layer can run, by name.
pub fn names() -> Vec<&'static str> {
    let entries = separation::entries();
    entries.iter().map(|entry| entry.name).chain([ByTenant::ENTRY.name]).collect()
}

/// Every setting of one of them under `pairs`. Errors: no such scheme; a setting is refused.
pub fn resolved(name: &str, pairs: &[(String, Value)]) -> Result<Resolved, RegistryError> {
    if name == ByTenant::ENTRY.name {
        let settings = registry::settings::<TenantSettings>("separation", name, pairs)?;
        return Ok(settings.values());
    }
    separation::resolved(name, pairs)
}

/// A stream for each tenant.
#[derive(Clone, Copy, Debug)]
pub struct ByTenant {
    tenants: u8,
    writer: u8,
}

impl ByTenant {
    /// Notes whose the next writes are.
    #[inline]
    pub fn turn(&mut self, tenant: u16) {
        self.writer = (tenant % u16::from(self.tenants)) as u8;
    }
}

impl Registered for ByTenant {
    type Settings = TenantSettings;
    const ENTRY: Entry = Entry {
        name: "by-tenant",
        doc: "pages of each tenant apart, and moved pages apart from both",
        source: "MQSim (Tavakkol et al.), FAST'18, section 4.4",
        needs: &[],
    };

    fn new(_: &Geometry, settings: &TenantSettings, _: Seed) -> ByTenant {
        ByTenant { tenants: settings.tenants as u8, writer: 0 }
    }
}

impl Separation for ByTenant {
    fn streams(&self) -> u32 {
        2 * u32::from(self.tenants)
    }

    #[inline]
    fn place_user(&mut self, _: &Write) -> Stream {
        Stream(self.writer)
    }

    #[inline]
    fn place_moved(&mut self, page: &MovedPage<'_>) -> Stream {
        Stream(self.tenants + page.victim.stream.0 % self.tenants)
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        0.0
    }
}
