//! The volumes that are served, with their backing devices.
//!
//! For: names of volumes, and what is known of their devices. Must never know: requests, the log.
//! Units: bytes.

use super::backing::Backing;
use super::content::LogBlock;
use crate::io::FileId;
use crate::io::executor::OpId;
use crate::log::format::VolumeId;
use cachewright_types::{BlockId, TenantId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

/// A volume that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedVolume {
    /// Its number in the log.
    pub id: VolumeId,
    /// Its size in bytes, at least 1. Its last block may be only a part of one: in the cache it is
    /// whole, with zeroes behind the end.
    pub bytes: u64,
    /// Its backing device, at least as large.
    pub backing: FileId,
}

impl ServedVolume {
    /// Its blocks of so many bytes, with one that is only a part.
    pub fn blocks(&self, block_bytes: u64) -> u64 {
        self.bytes.div_ceil(block_bytes)
    }
}

/// A range of bytes of a volume of `volume_bytes` bytes, as the cache sees what changes it: one
/// that ends with the volume covers its last block, also if that is only a part of one.
pub fn covered(bytes: Range<u64>, volume_bytes: u64, block_bytes: u64) -> Range<u64> {
    match bytes.end == volume_bytes {
        true => bytes.start..bytes.end.next_multiple_of(block_bytes),
        false => bytes,
    }
}

/// A volume that goes.
#[derive(Clone, Copy, Debug)]
pub struct GoingVolume {
    /// Whose it was.
    pub tenant: TenantId,
    /// Where to go on taking its blocks out; nothing when all are.
    pub next: Option<BlockId>,
    /// The group of the log that says so, once all is written back.
    pub group: Option<u64>,
}

/// The volumes, by tenant.
pub struct Volumes {
    list: Vec<ServedVolume>,
    backings: Vec<Backing<OpId>>,
    /// Volumes of tenants that were removed: they are served no more.
    removed: Vec<bool>,
    /// Those of them of which something is left.
    going: Vec<GoingVolume>,
    tenants: HashMap<VolumeId, TenantId, FixedState>,
}

impl Volumes {
    /// These volumes, of tenants 0, 1 and so on.
    pub fn new(list: Vec<ServedVolume>) -> Volumes {
        let backings = list.iter().map(|volume| Backing::new(volume.backing)).collect();
        let tenant = |(index, volume): (usize, &ServedVolume)| (volume.id, TenantId(index as u16));
        let tenants = list.iter().enumerate().map(tenant).collect();
        let (removed, going) = (vec![false; list.len()], Vec::new());
        Volumes { list, backings, removed, going, tenants }
    }

    /// A tenant's volume, if it has one.
    pub fn get(&self, tenant: TenantId) -> Option<&ServedVolume> {
        self.list.get(tenant.index()).filter(|_| !self.removed[tenant.index()])
    }

    /// The volume of one more tenant.
    pub fn add(&mut self, volume: ServedVolume) -> TenantId {
        let tenant = TenantId(self.list.len() as u16);
        self.list.push(volume);
        self.backings.push(Backing::new(volume.backing));
        self.removed.push(false);
        self.tenants.insert(volume.id, tenant);
        tenant
    }

    /// A tenant's volume has this size from now on.
    pub fn resize(&mut self, tenant: TenantId, bytes: u64) {
        self.list[tenant.index()].bytes = bytes;
    }

    /// A tenant's volume is served no more: it goes. Its blocks may still be written back.
    pub fn remove(&mut self, tenant: TenantId) {
        self.removed[tenant.index()] = true;
        self.go_on(GoingVolume { tenant, next: Some(BlockId(0)), group: None });
    }

    /// The volumes that go, to be gone on with; each goes on, or is forgotten.
    pub fn take_going(&mut self) -> Vec<GoingVolume> {
        std::mem::take(&mut self.going)
    }

    /// A volume goes on to go.
    pub fn go_on(&mut self, going: GoingVolume) {
        self.going.push(going);
    }

    /// Nothing is known of a removed volume any more.
    pub fn forget(&mut self, tenant: TenantId) {
        let id = self.id(tenant);
        if self.tenant(id) == Some(tenant) {
            self.tenants.remove(&id);
        }
    }

    /// The first tenant that was not removed, or the first of all.
    pub fn first_served(&self) -> TenantId {
        let served = self.removed.iter().position(|removed| !removed);
        TenantId(served.unwrap_or_default() as u16)
    }

    /// Whether a volume was removed and nothing of it is left.
    pub fn has_gone(&self, tenant: TenantId) -> bool {
        self.get(tenant).is_none() && !self.going.iter().any(|going| going.tenant == tenant)
    }

    /// The number of a tenant's volume in the log.
    pub fn id(&self, tenant: TenantId) -> VolumeId {
        self.list[tenant.index()].id
    }

    /// A tenant's block, for the log.
    pub fn block(&self, tenant: TenantId, number: u64) -> LogBlock {
        LogBlock { tenant, volume: self.id(tenant), number }
    }

    /// The tenant of a volume that is served.
    pub fn tenant(&self, id: VolumeId) -> Option<TenantId> {
        self.tenants.get(&id).copied()
    }

    /// All volumes, by tenant: those that were removed among them.
    pub fn list(&self) -> &[ServedVolume] {
        &self.list
    }

    /// Bytes of a tenant's volume: what lies behind them on its backing device is not its own.
    pub fn bytes(&self, tenant: TenantId) -> u64 {
        self.list[tenant.index()].bytes
    }

    /// All tenants.
    pub fn tenants(&self) -> impl Iterator<Item = TenantId> + use<> {
        (0..self.list.len()).map(|index| TenantId(index as u16))
    }

    /// A tenant's backing device.
    pub fn backing(&self, tenant: TenantId) -> &Backing<OpId> {
        &self.backings[tenant.index()]
    }

    /// A tenant's backing device, to be changed.
    pub fn backing_mut(&mut self, tenant: TenantId) -> &mut Backing<OpId> {
        &mut self.backings[tenant.index()]
    }
}

/// What is known of a tenant's losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownLosses {
    /// Losses so far; one may be of many blocks.
    pub count: u64,
    /// Whether such content is lost still: blocks are known that were not overwritten.
    pub is_open: bool,
}

/// How often content was lost, by tenant.
#[derive(Clone, Debug, Default)]
pub struct LossCounts {
    counts: Vec<u64>,
}

impl LossCounts {
    /// Content of a tenant is lost.
    pub fn note(&mut self, tenant: TenantId) {
        let tenants = self.counts.len().max(tenant.index() + 1);
        self.counts.resize(tenants, 0);
        self.counts[tenant.index()] += 1;
    }

    /// Losses of a tenant.
    pub fn count(&self, tenant: TenantId) -> u64 {
        self.counts.get(tenant.index()).copied().unwrap_or_default()
    }
}
