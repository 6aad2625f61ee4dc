//! What the host asks of flash, and what it gets back.
//!
//! For: page-sized pieces of host requests. Must never know: where pages lie. Units: pages, sectors
//! (a bit each), nanoseconds.

use crate::spent::Spent;
use cachewright_types::{Nanos, TenantId};

/// What the host asks of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOp {
    /// Its data.
    Read,
    /// To hold new data.
    Write,
    /// To be forgotten.
    Trim,
}

/// One page-sized piece of a host request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Returned with the completion.
    pub tag: u64,
    /// Tenant that asks.
    pub tenant: TenantId,
    /// Group of channels; 0 unless channels are exposed in groups.
    pub group: u16,
    /// What is asked.
    pub op: PageOp,
    /// Page of the group.
    pub page: u32,
    /// Sectors of the page that are touched, a bit each.
    pub sectors: u64,
}

/// A transaction that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoneTransaction {
    /// Its tag.
    pub tag: u64,
    /// When it was done.
    pub finished: Nanos,
    /// Where the time since it was submitted went.
    pub spent: Spent,
}
