//! Volumes that come, grow and go while others are served.
//!
//! For: changes of a server without a restart. Must never know: why. Units: bytes, blocks. The
//! order, by which no start finds blocks of a volume that it does not know, or older content:
//!
//! - a volume is in the table of volumes, durably, before a request of it is decided;
//! - one that goes takes no request; its dirty blocks are written back and made durable; then the
//!   log is told, durably, that its blocks are gone; it stays in the table, under its number.

use super::division::Division;
use super::replica::PolicySource;
use super::server::{BlockServer, State};
use super::volumes::{GoingVolume, ServedVolume};
use crate::io::batch::Aside;
use crate::io::{Done, Io, IoError};
use crate::log::OpenSetError;
use crate::log::format::Volume;
use cachewright_cache::{Quotas, Shrink};
use cachewright_control::SchemeTrial;
use cachewright_types::TenantId;
use std::cell::Ref;

/// Ids that are looked at together: a sixteenth of a pool's blocks, and at most so many.
const MAX_BATCH: u32 = 256;
/// Write-backs under way beyond which no batch begins.
const MAX_UNDER_WAY: usize = 128;

impl BlockServer {
    /// The volumes that the cache's devices know.
    pub fn table(&mut self) -> Vec<Volume> {
        self.state().bypass.marker().map(|marker| marker.volumes().to_vec()).unwrap_or_default()
    }

    /// What the owner of the cache's devices keeps on them.
    pub fn notes(&mut self) -> Vec<u8> {
        self.state().bypass.marker().map(|marker| marker.notes().to_vec()).unwrap_or_default()
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
        let mut state = self.state();
        let log_failed = state.content.failed;
        let failed = OpenSetError::Io { device: 0, error: log_failed.unwrap_or(IoError::IO) };
        let result = match state.bypass.marker().filter(|_| log_failed.is_none()) {
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
        make: PolicySource,
    ) -> Option<TenantId> {
        let mut state = self.state();
        if state.content.failed.is_some() {
            return None;
        }
        let tenant = state.decisions.add_tenant(capacity_blocks, make)?;
        let max_ids = state.decisions.max_ids();
        state.content.copies.reserve(&max_ids);
        let added = state.volumes.add(volume);
        debug_assert_eq!(added, tenant, "tenants are counted alike");
        state.bypass.add_volume(volume.id);
        Some(tenant)
    }

    /// A volume has grown.
    pub fn grow_volume(&mut self, tenant: TenantId, bytes: u64) {
        self.state().volumes.resize(tenant, bytes);
    }

    /// A volume goes: its requests are refused from now on. [`BlockServer::has_gone`] says when
    /// nothing of it is left. None of its requests may be under way.
    pub fn remove_volume(&mut self, tenant: TenantId) {
        let mut state = self.state();
        if state.volumes.get(tenant).is_some() {
            state.volumes.remove(tenant);
        }
    }

    /// Requests of a tenant that are not answered.
    pub fn requests_of(&self, tenant: TenantId) -> usize {
        self.look().requests_of(tenant)
    }

    /// Whether nothing of a removed volume is left: its device is not needed any more. If the
    /// device has failed, what only the log has of it stays there, and this never comes.
    pub fn has_gone(&self, tenant: TenantId) -> bool {
        self.look().volumes.has_gone(tenant)
    }

    /// Divides the cache otherwise from now on: these quotas at once, and then by what `division`
    /// makes, each time the same. Tenants give up blocks as `shrink` says. Errors: those of
    /// `division`; nothing has changed then.
    pub fn divide_otherwise<E>(
        &mut self,
        io: &mut impl Io,
        quotas: &Quotas,
        shrink: Shrink,
        division: impl Fn() -> Result<Option<Division>, E>,
    ) -> Result<(), E> {
        let mut state = self.state();
        state.now_ns = io.now_ns();
        let now_ns = state.now_ns;
        let of_replica = if state.decisions.has_replica() { division()? } else { None };
        let plan = state.decisions.set_quotas(now_ns, quotas, shrink, division()?, of_replica);
        state.carry_in_pieces(plan);
        drop(state);
        self.settle();
        self.submit(io);
        Ok(())
    }

    /// Decides by other policies from now on, which `make` builds for a pool and its capacity. The
    /// cached blocks stay where they are, but for those that the new policies do not keep.
    pub fn replace_policies(&mut self, io: &mut impl Io, make: PolicySource) {
        let mut state = self.state();
        state.now_ns = io.now_ns();
        let plan = state.decisions.replace_policies(make);
        state.carry_in_pieces(plan);
        drop(state);
        self.settle();
        self.submit(io);
    }

    /// Tries another policy or division on a sample of the blocks from now on, or none.
    pub fn try_scheme(&mut self, trial: Option<SchemeTrial>) {
        self.state().decisions.trial = trial;
    }

    /// The trial that runs, if one does.
    pub fn trial(&self) -> Option<Ref<'_, SchemeTrial>> {
        Ref::filter_map(self.look(), |state| state.decisions.trial.as_ref()).ok()
    }

    /// Goes on with volumes that go.
    pub(super) fn empty_removed_volumes(&mut self) {
        let mut state = self.state();
        if state.content.failed.is_some() || state.is_closing {
            return;
        }
        let all_going = state.volumes.take_going();
        drop(state);
        for mut going in all_going {
            while self.state().remove_some(&mut going) {
                self.settle();
            }
            let mut state = self.state();
            match state.has_left_log(&mut going) {
                true => state.volumes.forget(going.tenant),
                false => state.volumes.go_on(going),
            }
        }
    }
}

impl State {
    /// Requests of a tenant that are not answered.
    pub(super) fn requests_of(&self, tenant: TenantId) -> usize {
        let waiting = self.space.queue.iter().filter(|request| request.tenant == tenant);
        waiting.count() + self.open.count_of(tenant)
    }

    /// Takes some blocks of a volume that goes out of the cache; false if none are left, or no more
    /// may be now.
    fn remove_some(&mut self, going: &mut GoingVolume) -> bool {
        let tenant = going.tenant;
        let Some(next) = going.next else { return false };
        if self.leavings.write_backs() >= MAX_UNDER_WAY {
            return false;
        }
        let engine = self.decisions.decider.cache.engine();
        let blocks = engine.policy(engine.pool_of(tenant)).capacity();
        let max_ids = (blocks / 16).clamp(1, MAX_BATCH);
        let Some(batch) = self.batch_with_space(tenant, max_ids) else {
            self.free_records(tenant);
            return false;
        };
        let (plan, next) = self.decisions.remove_some(self.now_ns, tenant, next, batch);
        going.next = next;
        self.carry_alone(tenant, plan);
        true
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
        self.sync_wanted.extend(held);
    }

    /// Whether the log says durably that nothing of a volume is left.
    fn has_left_log(&mut self, going: &mut GoingVolume) -> bool {
        let tenant = going.tenant;
        let volume = self.volumes.id(tenant);
        let leaving = self.content.copies.leaving(tenant, 0..u64::MAX);
        if going.next.is_some() || leaving.count() > 0 {
            return false;
        }
        let backing = self.volumes.backing(tenant);
        if backing.needs_sync() || backing.is_syncing() || backing.leaving() > 0 {
            self.sync_wanted.insert(tenant);
            return false;
        }
        if self.content.stranded.keys().any(|(other, _)| *other == volume) {
            return false;
        }
        match going.group {
            None => {
                self.sync_log_unasked();
                going.group = Some(self.content.log.last_group());
                false
            }
            Some(group) => self.content.log.durable() >= group,
        }
    }
}
