//! How the capacity of a cache is divided among pools, and pools among tenants.
//!
//! For: the engine and the control loop. Must never know: policies, partitioners. Unit: blocks.

/// How the capacity is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quotas {
    /// One pool for all tenants, of so many blocks.
    Shared(u32),
    /// One pool per tenant, of so many blocks each, in tenant order.
    PerTenant(Vec<u32>),
    /// Pools that several tenants may share.
    Pools {
        /// The pool of each tenant; every pool has a tenant.
        of: Vec<u16>,
        /// The blocks of each pool.
        blocks: Vec<u32>,
    },
}

impl Quotas {
    /// The blocks of each pool.
    pub fn blocks(&self) -> &[u32] {
        match self {
            Quotas::Shared(total) => std::slice::from_ref(total),
            Quotas::PerTenant(each) => each,
            Quotas::Pools { blocks, .. } => blocks,
        }
    }

    /// The pool of each of so many tenants.
    pub fn pools_of(&self, tenants: usize) -> Vec<u16> {
        match self {
            Quotas::Shared(_) => vec![0; tenants],
            Quotas::PerTenant(_) => (0..tenants as u16).collect(),
            Quotas::Pools { of, .. } => of.clone(),
        }
    }
}
