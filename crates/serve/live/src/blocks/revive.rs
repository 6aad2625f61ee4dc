//! Backing devices that have failed and are tried again, so that volumes come back without a
//! restart.
//!
//! While its device is tried, a volume has failed still: its requests are refused. The order, by
//! which no older content is ever read:
//!
//! 1. what was begun before the failure ends, with errors;
//! 2. the device is synced and read, so that it works;
//! 3. what the log has and the device may lack is made durable in the log, written to the device
//!    and made durable there, and then the log is told; it is told of no block before;
//! 4. the volume is served again.
//!
//! The device may lack content that is dirty in the log, although the cache counts on the device:
//! what was written to it when a sync of it failed. What it had taken round the cache may be lost;
//! [`BlockServer::losses`] tells that.

use super::content::LogContent;
use super::copies::CopyId;
use super::server::{BlockServer, Engine, Procedure, State};
use crate::io::executor::Begun;
use crate::io::{ALIGNMENT, Buffer, IoError, Output};
use crate::log::Place;
use cachewright_cache::WriteMode;
use cachewright_types::TenantId;
use std::collections::BTreeSet;

/// Blocks that are written again before a sync.
const ROUND_BLOCKS: usize = 256;
/// Blocks of one volume that are written again side by side.
const UNDER_WAY: usize = 16;

/// What has become of a device that was tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revived {
    /// Whose volume it is.
    pub tenant: TenantId,
    /// Blocks that only the log had, or may have had, and that the device has now.
    pub written_back: u64,
    /// Blocks whose content in the log is damaged: reads of them fail until they are overwritten.
    pub damaged: u64,
    /// Why it fails still; nothing if the volume is served again.
    pub error: Option<IoError>,
}

/// Devices that are tried again.
#[derive(Debug, Default)]
pub(super) struct Revivals {
    tenants: BTreeSet<TenantId>,
    ended: Vec<Revived>,
}

impl Revivals {
    /// Whether none is tried.
    pub fn is_empty(&self) -> bool {
        self.tenants.is_empty()
    }
}

/// Content that the log has and the backing device may lack.
#[derive(Clone, Copy, Debug)]
struct OnlyInLog {
    place: Place,
    checksum: u32,
    group: u64,
    copy: Option<CopyId>,
}

/// What has become of a block that was to be written again.
enum WrittenAgain {
    /// The device has the content with this checksum.
    Written(u32),
    /// The log has nothing of it any more.
    Gone,
    /// Its content in the log is damaged.
    Damaged,
}

impl BlockServer {
    /// Tries a tenant's failed backing device again; [`BlockServer::take_revived`] says what comes
    /// of it. False if the device has not failed or is being tried, or if the cache has failed: a
    /// start is needed then.
    pub fn revive_volume(&mut self, tenant: TenantId) -> bool {
        let mut state = self.state();
        let can_be_tried = state.volumes.backing(tenant).has_failed()
            && state.content.failed.is_none()
            && state.revivals.tenants.insert(tenant);
        if can_be_tried {
            state.begun.push_back(Procedure::Revive(tenant));
        }
        can_be_tried
    }

    /// Whether a tenant's backing device is being tried again.
    pub fn is_reviving(&self, tenant: TenantId) -> bool {
        self.look().revivals.tenants.contains(&tenant)
    }

    /// What has become of devices since the last call.
    pub fn take_revived(&mut self) -> Vec<Revived> {
        std::mem::take(&mut self.state().revivals.ended)
    }
}

impl Engine {
    /// Tries a device again.
    pub(super) async fn revive(self, tenant: TenantId) {
        let mut damaged = BTreeSet::new();
        let mut written_back = 0;
        let result = self.write_what_it_lacks(tenant, &mut written_back, &mut damaged).await;
        self.with(|state| {
            if result.is_ok() {
                // Content that is damaged is dirty, so that nothing older takes its place.
                if state.decisions.decider.cache.engine().mode() == WriteMode::WriteBack {
                    for number in &damaged {
                        state.decisions.still_dirty(tenant, *number);
                    }
                }
                state.volumes.backing_mut(tenant).revive();
            }
            state.revivals.tenants.remove(&tenant);
            let (damaged, error) = (damaged.len() as u64, result.err());
            state.revivals.ended.push(Revived { tenant, written_back, damaged, error });
        });
    }

    /// Brings a device to what the log says that it has. Errors: it fails still; the cache has
    /// failed, or ends.
    async fn write_what_it_lacks(
        &self,
        tenant: TenantId,
        written_back: &mut u64,
        damaged: &mut BTreeSet<u64>,
    ) -> Result<(), IoError> {
        while !self.with(|state| state.has_settled(tenant)) {
            self.next_turn().await?;
        }
        self.sync_revived(tenant).await?;
        self.read_device(tenant, 0..ALIGNMENT as u64).await?;
        let mut cached = Vec::new();
        loop {
            let chosen = self.with(|state| state.choose(tenant, &mut cached, damaged));
            if chosen.is_empty() {
                if !self.with(|state| state.has_settled(tenant)) {
                    self.next_turn().await?;
                    continue;
                }
                cached = self.with(|state| state.cached_only_in_log(tenant, damaged));
                if cached.is_empty() {
                    return Ok(());
                }
                continue;
            }
            let written = self.write_round_again(tenant, chosen, damaged).await?;
            if written.is_empty() {
                continue;
            }
            self.sync_revived(tenant).await?;
            for (number, checksum) in written.into_iter().rev() {
                let pool = self.with(|state| state.content.streams.pool(tenant));
                while !self.with(|state| state.has_space(pool, 1)) {
                    self.next_turn().await?;
                }
                self.with(|state| state.tell_log(tenant, number, checksum));
                *written_back += 1;
            }
        }
    }

    /// Waits until the server goes on the next time. Errors: the cache has failed, or ends.
    async fn next_turn(&self) -> Result<(), IoError> {
        self.goes_on()?;
        self.with(|state| state.advanced.clone()).wait().await;
        self.goes_on()
    }

    /// Errors: the cache has failed, or ends.
    fn goes_on(&self) -> Result<(), IoError> {
        match self.with(|state| state.content.failed.is_some() || state.is_closing) {
            true => Err(IoError::IO),
            false => Ok(()),
        }
    }

    async fn sync_revived(&self, tenant: TenantId) -> Result<(), IoError> {
        self.goes_on()?;
        self.sync_device(tenant).await?;
        self.goes_on()
    }

    /// Writes blocks again, some of them side by side, once the log has them durably; returns those
    /// that are written, with the checksums of what was written. Errors: the device's.
    async fn write_round_again(
        &self,
        tenant: TenantId,
        chosen: Vec<u64>,
        damaged: &mut BTreeSet<u64>,
    ) -> Result<Vec<(u64, u32)>, IoError> {
        let group = self.with(|state| {
            let groups = chosen.iter().filter_map(|number| state.only_in_log(tenant, *number));
            groups.map(|found| found.group).max().unwrap_or_default()
        });
        self.log_durable(group).await?;
        let mut written = Vec::new();
        let mut error = None;
        for batch in chosen.rchunks(UNDER_WAY) {
            let begin = |number: &u64| {
                let procedure = self.clone().write_again(tenant, *number);
                (*number, self.with(|state| state.tasks.begin(procedure)))
            };
            let begun: Vec<(u64, Begun<_>)> = batch.iter().rev().map(begin).collect();
            for (number, ended) in begun {
                match ended.await {
                    Ok(WrittenAgain::Written(checksum)) => written.push((number, checksum)),
                    Ok(WrittenAgain::Damaged) => drop(damaged.insert(number)),
                    Ok(WrittenAgain::Gone) => {}
                    Err(failed) => error = error.or(Some(failed)),
                }
            }
            if let Some(error) = error {
                return Err(error);
            }
            self.goes_on()?;
        }
        Ok(written)
    }

    /// Writes a block again: from memory, or from where it lies in the log. Errors: the device's.
    async fn write_again(self, tenant: TenantId, number: u64) -> Result<WrittenAgain, IoError> {
        let mut read_at = None;
        let (checksum, data) = loop {
            // The cleaner may have moved it since it was read.
            let found = self.with(|state| state.only_in_log(tenant, number));
            let Some(found) = found else { return Ok(WrittenAgain::Gone) };
            if read_at == Some(found.place) {
                return Ok(WrittenAgain::Damaged);
            }
            read_at = Some(found.place);
            let known = self.with(|state| state.volumes.block(tenant, number));
            let is_whole = |data: &[u8]| LogContent::is_whole(known, data, found.checksum);
            let read = self.with(|state| {
                let memory = state.content.log.content(found.place);
                match memory.filter(|data| is_whole(data)) {
                    Some(data) => Ok(Buffer::copy_of(data)),
                    None => Err(state.read_log(found.place)),
                }
            });
            let data = match read {
                Ok(data) => data,
                Err(op) => match op.await {
                    Ok(Output::Buffer(data, _)) => data,
                    _ => continue,
                },
            };
            if is_whole(&data) {
                break (found.checksum, data);
            }
        };
        let offset = number << self.with(|state| state.block_shift);
        self.write_device(tenant, offset, data).await.map(|()| WrittenAgain::Written(checksum))
    }
}

impl State {
    /// Whether nothing of a tenant is under way that was begun before.
    fn has_settled(&self, tenant: TenantId) -> bool {
        !self.volumes.backing(tenant).has_sync_under_way()
            && self.requests_of(tenant) == 0
            && self.leavings.write_backs_of(tenant) == 0
            && self.content.copies.leaving(tenant, 0..u64::MAX).next().is_none()
    }

    /// The blocks of the next round: cached ones, then those that are not cached.
    fn choose(&self, tenant: TenantId, cached: &mut Vec<u64>, damaged: &BTreeSet<u64>) -> Vec<u64> {
        let mut chosen = Vec::new();
        while chosen.len() < ROUND_BLOCKS
            && let Some(number) = cached.pop()
        {
            chosen.extend(self.only_in_log(tenant, number).map(|_| number));
        }
        let volume = self.volumes.id(tenant);
        let stranded = self.content.stranded.range((volume, 0)..=(volume, u64::MAX));
        let numbers = stranded.map(|((_, number), _)| *number);
        let is_whole = |number: &u64| {
            let is_known = damaged.contains(number) || chosen.contains(number);
            !is_known && self.only_in_log(tenant, *number).is_some()
        };
        let left = ROUND_BLOCKS - chosen.len();
        let more: Vec<u64> = numbers.filter(is_whole).take(left).collect();
        chosen.extend(more);
        chosen
    }

    /// Cached blocks of a tenant that are dirty in the log, although the cache counts on the
    /// backing device: nothing else would write them back.
    fn cached_only_in_log(&self, tenant: TenantId, damaged: &BTreeSet<u64>) -> Vec<u64> {
        let copies = self.content.copies.iter();
        let own = copies.filter(|(_, copy, stored)| {
            stored.dirty && copy.tenant == tenant && !damaged.contains(&copy.number)
        });
        let numbers = own.map(|(_, copy, _)| copy.number);
        numbers.filter(|number| self.only_in_log(tenant, *number).is_some()).collect()
    }

    /// Content of a block that the log has and the device may lack, and that nothing else writes
    /// back. Content that must not be read is none.
    fn only_in_log(&self, tenant: TenantId, number: u64) -> Option<OnlyInLog> {
        if let Some(copy) = self.cached(tenant, number) {
            let stored = self.content.copies.stored(copy)?;
            let is_left_out = stored.dirty && !self.decisions.is_dirty(tenant, number);
            return is_left_out.then_some(OnlyInLog {
                place: stored.place,
                checksum: stored.checksum,
                group: stored.group,
                copy: Some(copy),
            });
        }
        let found = self.content.stranded.get(&(self.volumes.id(tenant), number))?;
        let checksum = found.checksum.filter(|_| found.dirty)?;
        Some(OnlyInLog { place: found.place, checksum, group: found.group, copy: None })
    }

    /// The device has the content of a block durably, if that is what the log has still.
    fn tell_log(&mut self, tenant: TenantId, number: u64, checksum: u32) {
        let found = self.only_in_log(tenant, number).filter(|found| found.checksum == checksum);
        let Some(found) = found else { return };
        if let Some(copy) = found.copy {
            let block = self.volumes.block(tenant, number);
            return self.content.note_clean(copy, block);
        }
        let volume = self.volumes.id(tenant);
        self.content.stranded.remove(&(volume, number));
        self.content.log.note_dead(found.place);
        let version = self.last_version();
        self.content.note_gone(tenant, volume, number..number + 1, version);
    }
}
