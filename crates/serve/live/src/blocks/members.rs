//! Volumes that come, grow and go while others are served.
//!
//! For: changes of a server without a restart. Must never know: why. Units: bytes, blocks. The
//! order, by which no start finds blocks of a volume that it does not know, or older content:
//!
//! - a volume is in the table of volumes, durably, before a request of it is decided;
//! - one that goes takes no request; its dirty blocks are written back and made durable; then the
//!   log is told, durably, that its blocks are gone; it stays in the table, under its number.

use super::division::Division;
use super::server::BlockServer;
use super::volumes::{GoingVolume, ServedVolume};
use super::waiting::SYNC_ALONE;
use crate::io::batch::Aside;
use crate::io::{Done, Io, IoError};
use crate::log::OpenSetError;
use crate::log::format::Volume;
use cachewright_cache::Quotas;
use cachewright_policy::Policy;
use cachewright_types::TenantId;

/// Ids that are looked at together: a sixteenth of a pool's blocks, and at most so many.
const MAX_BATCH: u32 = 256;
/// Write-backs under way beyond which no batch begins.
const MAX_UNDER_WAY: usize = 128;

impl BlockServer {
    /// The volumes that the cache's devices know.
    pub fn table(&mut self) -> Vec<Volume> {
        self.bypass.marker().map(|marker| marker.volumes().to_vec()).unwrap_or_default()
    }

    /// What the owner of the cache's devices keeps on them.
    pub fn notes(&mut self) -> Vec<u8> {
        self.bypass.marker().map(|marker| marker.notes().to_vec()).unwrap_or_default()
    }

    /// The cache's devices know these volumes and these notes from now on, durably. Returns what
    /// operations under way have brought meanwhile, whose owners are to be told. Errors: a device
    /// fails, or has; the notes do not fit.
    pub fn set_table<I: Io>(
        &mut self,
        io: &mut I,
        table: Vec<Volume>,
        notes: Vec<u8>,
    ) -> (Result<(), OpenSetError>, Vec<Done>) {
        let mut aside = Aside::new(io);
        let failed =
            OpenSetError::Io { device: 0, error: self.content.failed.unwrap_or(IoError::IO) };
        let result = match self.bypass.marker().filter(|_| self.content.failed.is_none()) {
            Some(marker) => marker.set_volumes(&mut aside, table, notes),
            None => Err(failed),
        };
        (result, aside.into_others())
    }

    /// One more volume, which the table has. Its policy is made by `make`, of so many blocks, where
    /// each tenant has one. Nothing if some tenants share a pool, or the cache has failed.
    pub fn add_volume(
        &mut self,
        volume: ServedVolume,
        capacity_blocks: u32,
        make: impl FnOnce(usize, u32) -> Box<dyn Policy>,
    ) -> Option<TenantId> {
        if self.content.failed.is_some() {
            return None;
        }
        let tenant = self.decisions.add_tenant(capacity_blocks, make)?;
        let added = self.volumes.add(volume);
        debug_assert_eq!(added, tenant, "tenants are counted alike");
        self.bypass.add_volume(volume);
        Some(tenant)
    }

    /// A volume has grown.
    pub fn grow_volume(&mut self, tenant: TenantId, bytes: u64) {
        self.volumes.resize(tenant, bytes);
        self.bypass.resize_volume(tenant, bytes);
    }

    /// A volume goes: its requests are refused from now on. [`BlockServer::has_gone`] says when
    /// nothing of it is left. None of its requests may be under way.
    pub fn remove_volume(&mut self, tenant: TenantId) {
        if self.volumes.get(tenant).is_some() {
            self.volumes.remove(tenant);
        }
    }

    /// Requests of a tenant that are not answered.
    pub fn requests_of(&self, tenant: TenantId) -> usize {
        let waiting = self.waiting.queue.iter().filter(|request| request.tenant == tenant);
        let begun = self.under_way.open.iter().filter(|(_, open)| open.request.tenant == tenant);
        waiting.count() + begun.count()
    }

    /// Whether nothing of a removed volume is left: its device is not needed any more. If the
    /// device has failed, what only the log has of it stays there, and this never comes.
    pub fn has_gone(&self, tenant: TenantId) -> bool {
        self.volumes.has_gone(tenant)
    }

    /// Divides the cache otherwise from now on: these quotas at once, and then by `division`.
    pub fn divide_otherwise(
        &mut self,
        io: &mut impl Io,
        quotas: &Quotas,
        division: Option<Division>,
    ) {
        let departures = self.decisions.set_quotas(io.now_ns(), quotas, division);
        self.depart(io, departures, None);
        self.take_ends(io);
        self.settle(io);
    }

    /// Goes on with volumes that go.
    pub(super) fn empty_removed_volumes(&mut self, io: &mut impl Io) {
        if self.content.failed.is_some() || self.waiting.is_closing {
            return;
        }
        for mut going in self.volumes.take_going() {
            let tenant = going.tenant;
            let engine = self.decisions.cache.engine();
            let blocks = engine.policy(engine.pool_of(tenant)).capacity();
            let max_ids = (blocks / 16).clamp(1, MAX_BATCH);
            while let Some(next) = going.next
                && self.write_backs_under_way() < MAX_UNDER_WAY
            {
                let Some(batch) = self.batch_with_space(tenant, max_ids) else {
                    self.free_records(tenant);
                    break;
                };
                let now_ns = io.now_ns();
                let (departures, next) = self.decisions.remove_some(now_ns, tenant, next, batch);
                going.next = next;
                self.depart(io, departures, None);
                self.take_ends(io);
                self.settle(io);
            }
            if !self.has_left_log(io, &mut going) {
                self.volumes.go_on(going);
            } else {
                self.volumes.forget(tenant);
            }
        }
    }

    /// So many ids of a volume, at most `most`, that the log has room for their blocks to leave
    /// together. Fewer than `most` where the log is small: no request may come for which room for
    /// all of them would be made. Nothing while there is no room for one.
    fn batch_with_space(&self, tenant: TenantId, max_ids: u32) -> Option<u32> {
        let pool = self.content.streams.pool(tenant);
        std::iter::successors(Some(max_ids), |ids| Some(ids / 2).filter(|ids| *ids > 0))
            .find(|ids| self.has_space(pool, u64::from(*ids)))
    }

    /// The records for blocks that have left take room until the backing devices of a volume's pool
    /// are synced.
    fn free_records(&mut self, tenant: TenantId) {
        let pool = self.content.streams.pool(tenant);
        let own = self.volumes.tenants().filter(|other| self.content.streams.pool(*other) == pool);
        let held = own.filter(|other| {
            let backing = self.volumes.backing(*other);
            backing.leaving() + backing.unsettled() > 0
        });
        let held: Vec<TenantId> = held.collect();
        self.waiting.leaving.extend(held);
    }

    /// Whether the log says durably that nothing of a volume is left.
    fn has_left_log(&mut self, io: &mut impl Io, going: &mut GoingVolume) -> bool {
        let tenant = going.tenant;
        let volume = self.volumes.id(tenant);
        let departing = self.decisions.steps.state().placement.departing(tenant, 0..u64::MAX);
        if going.next.is_some() || departing.count() > 0 {
            return false;
        }
        let backing = self.volumes.backing(tenant);
        if backing.needs_sync() || backing.is_syncing() || backing.leaving() > 0 {
            self.waiting.leaving.insert(tenant);
            return false;
        }
        if self.content.stranded.keys().any(|(other, _)| *other == volume) {
            return false;
        }
        match going.group {
            None => {
                self.content.log.sync(io, SYNC_ALONE);
                going.group = Some(self.content.log.last_group());
                false
            }
            Some(group) => self.content.log.durable() >= group,
        }
    }
}
