//! Backing devices that have failed and are tried again.
//!
//! For: volumes that come back without a restart. Must never know: why a device has failed, paths.
//! Units: blocks. While its device is tried, a volume has failed still: its requests are refused.
//! The order, by which no older content is ever read:
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
use super::server::BlockServer;
use super::under_way::OpenId;
use super::waiting::SYNC_ALONE;
use crate::io::{ALIGNMENT, Buffer, FileId, Io, IoError, IoOp, Token};
use crate::log::Place;
use crate::log::format::Version;
use cachewright_cache::WriteMode;
use cachewright_steps::ResidentId;
use cachewright_types::TenantId;
use slab::Slab;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The own tokens of a server from here on are those of devices that are tried again.
pub(super) const REVIVE_TOKENS: u64 = 1 << 54;
/// Callers of reads of the log from here on are those of blocks that are written again.
pub(super) const REVIVE_READS: u64 = 1 << 39;
/// Bits of a token that name what it is about.
const VALUE_BITS: u32 = 40;
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

/// An operation on such a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReviveToken {
    /// A sync of a tenant's device.
    Sync(usize),
    /// The first bytes of a tenant's device are read.
    Read(usize),
    /// A block is written, by number.
    Write(usize),
}

impl ReviveToken {
    fn token(self, namespace: u64) -> Token {
        let (code, value) = match self {
            ReviveToken::Sync(tenant) => (0_u64, tenant),
            ReviveToken::Read(tenant) => (1, tenant),
            ReviveToken::Write(block) => (2, block),
        };
        Token(namespace | REVIVE_TOKENS | code << VALUE_BITS | value as u64)
    }

    fn decode(own: u64) -> ReviveToken {
        let value = (own & ((1 << VALUE_BITS) - 1)) as usize;
        match own >> VALUE_BITS & 3 {
            0 => ReviveToken::Sync(value),
            1 => ReviveToken::Read(value),
            _ => ReviveToken::Write(value),
        }
    }
}

/// How far a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// What was begun before ends.
    Draining,
    /// It is synced and read for the first time.
    Trying,
    /// The blocks of the next round are looked for.
    Choosing,
    /// They become durable in the log, up to this group.
    Logging(u64),
    /// They are written.
    Writing,
    /// They become durable.
    Syncing,
    /// The log is told.
    Telling,
}

/// A device that is tried again.
#[derive(Debug)]
struct Revival {
    tenant: TenantId,
    stage: Stage,
    /// Cached blocks of which the device may have older content, that are not chosen yet.
    cached: Vec<u64>,
    /// Blocks of this round that are not written yet.
    chosen: Vec<u64>,
    /// Blocks of this round that are written, with the checksums of what was written.
    written: Vec<(u64, u32)>,
    under_way: usize,
    written_back: u64,
    damaged: BTreeSet<u64>,
    error: Option<IoError>,
}

/// A block that is read or written.
#[derive(Debug)]
struct RevivedBlock {
    tenant: TenantId,
    number: u64,
    place: Place,
    checksum: u32,
}

/// Content that the log has and the backing device may lack.
#[derive(Clone, Copy, Debug)]
struct OnlyInLog {
    place: Place,
    checksum: u32,
    group: u64,
    resident: Option<ResidentId>,
}

/// All devices that are tried again.
#[derive(Debug, Default)]
pub(super) struct Revivals {
    list: Vec<Revival>,
    blocks: Slab<RevivedBlock>,
    ended: Vec<Revived>,
}

impl Revivals {
    /// Whether none is tried.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn find(&mut self, tenant: TenantId) -> Option<&mut Revival> {
        self.list.iter_mut().find(|revival| revival.tenant == tenant)
    }
}

impl BlockServer {
    /// Tries a tenant's failed backing device again; [`BlockServer::take_revived`] says what comes
    /// of it. False if the device has not failed or is being tried, or if the cache has failed: a
    /// start is needed then.
    pub fn revive_volume(&mut self, tenant: TenantId) -> bool {
        let can_be_tried = self.volumes.backing(tenant).has_failed()
            && self.content.failed.is_none()
            && !self.is_reviving(tenant);
        if can_be_tried {
            self.revivals.list.push(Revival {
                tenant,
                stage: Stage::Draining,
                cached: Vec::new(),
                chosen: Vec::new(),
                written: Vec::new(),
                under_way: 0,
                written_back: 0,
                damaged: BTreeSet::new(),
                error: None,
            });
        }
        can_be_tried
    }

    /// Whether a tenant's backing device is being tried again.
    pub fn is_reviving(&self, tenant: TenantId) -> bool {
        self.revivals.list.iter().any(|revival| revival.tenant == tenant)
    }

    /// What has become of devices since the last call.
    pub fn take_revived(&mut self) -> Vec<Revived> {
        std::mem::take(&mut self.revivals.ended)
    }

    /// Goes on with devices that are tried again.
    pub(super) fn go_on_reviving(&mut self, io: &mut impl Io) {
        for mut revival in std::mem::take(&mut self.revivals.list) {
            if self.content.failed.is_some() || self.waiting.is_closing {
                revival.error.get_or_insert(IoError::IO);
            }
            match self.go_on_revival(io, &mut revival) {
                None => self.revivals.list.push(revival),
                Some(revived) => self.revivals.ended.push(revived),
            }
        }
    }

    /// Goes on with one device; returns what has become of it at its end.
    fn go_on_revival(&mut self, io: &mut impl Io, revival: &mut Revival) -> Option<Revived> {
        let tenant = revival.tenant;
        loop {
            if revival.error.is_some() {
                let is_over = revival.under_way == 0;
                return is_over.then(|| self.end_revival(revival));
            }
            match revival.stage {
                Stage::Draining if self.has_settled(tenant) => {
                    revival.stage = Stage::Trying;
                    self.sync_revived(io, revival);
                    return None;
                }
                Stage::Choosing => {
                    revival.chosen = self.choose(revival);
                    if revival.chosen.is_empty() {
                        if !self.has_settled(tenant) {
                            return None;
                        }
                        revival.cached = self.cached_only_in_log(tenant, &revival.damaged);
                        if revival.cached.is_empty() {
                            return Some(self.end_revival(revival));
                        }
                        continue;
                    }
                    let groups = revival.chosen.iter();
                    let groups = groups.filter_map(|number| self.only_in_log(tenant, *number));
                    let group = groups.map(|found| found.group).max().unwrap_or_default();
                    if group > self.content.log.durable() {
                        self.content.log.sync(io, SYNC_ALONE);
                    }
                    revival.stage = Stage::Logging(group);
                }
                Stage::Logging(group) if group <= self.content.log.durable() => {
                    revival.stage = Stage::Writing;
                }
                Stage::Writing => {
                    while revival.under_way < UNDER_WAY
                        && let Some(number) = revival.chosen.pop()
                    {
                        self.begin_revived(io, revival, number);
                    }
                    if revival.under_way > 0 {
                        return None;
                    }
                    if revival.written.is_empty() {
                        revival.stage = Stage::Choosing;
                        continue;
                    }
                    revival.stage = Stage::Syncing;
                    self.sync_revived(io, revival);
                    return None;
                }
                Stage::Telling => {
                    let pool = self.content.streams.pool(tenant);
                    while let Some((number, checksum)) = revival.written.last().copied() {
                        if !self.has_space(pool, 1) {
                            return None;
                        }
                        revival.written.pop();
                        self.tell_log(io, tenant, number, checksum);
                        revival.written_back += 1;
                    }
                    revival.stage = Stage::Choosing;
                }
                _ => return None,
            }
        }
    }

    /// The end of a try: the volume is served again, or has failed as before.
    fn end_revival(&mut self, revival: &Revival) -> Revived {
        let Revival { tenant, written_back, error, .. } = *revival;
        if error.is_none() {
            // Content that is damaged is dirty, so that nothing older takes its place.
            if self.decisions.cache.engine().mode() == WriteMode::WriteBack {
                for number in &revival.damaged {
                    self.decisions.still_dirty(tenant, *number);
                }
            }
            self.volumes.backing_mut(tenant).revive();
        }
        Revived { tenant, written_back, damaged: revival.damaged.len() as u64, error }
    }

    /// Whether nothing of a tenant is under way that was begun before.
    fn has_settled(&self, tenant: TenantId) -> bool {
        let placement = &self.decisions.steps.state().placement;
        let mut works = self.under_way.works.iter();
        let mut fetched = self.content.staged.keys();
        !self.volumes.backing(tenant).has_sync_under_way()
            && self.requests_of(tenant) == 0
            && !works.any(|(_, work)| work.ready.tenant == tenant)
            && !fetched.any(|(resident, _)| placement.stay(*resident).tenant == tenant)
            && !self.waiting.held.holds(tenant)
            && !self.waiting.postponed.holds(tenant)
            && placement.departing(tenant, 0..u64::MAX).next().is_none()
    }

    /// The blocks of the next round: cached ones, then those that are not cached.
    fn choose(&self, revival: &mut Revival) -> Vec<u64> {
        let tenant = revival.tenant;
        let mut chosen = Vec::new();
        while chosen.len() < ROUND_BLOCKS
            && let Some(number) = revival.cached.pop()
        {
            chosen.extend(self.only_in_log(tenant, number).map(|_| number));
        }
        let volume = self.volumes.id(tenant);
        let stranded = self.content.stranded.range((volume, 0)..=(volume, u64::MAX));
        let numbers = stranded.map(|((_, number), _)| *number);
        let is_whole = |number: &u64| {
            let is_known = revival.damaged.contains(number) || chosen.contains(number);
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
        let placement = &self.decisions.steps.state().placement;
        let dirty = self.content.stored_blocks.iter().filter(|(_, stored)| stored.dirty);
        let own = dirty.filter_map(|(resident, _)| {
            let stay = placement.stay(resident);
            (stay.tenant == tenant && !damaged.contains(&stay.number)).then_some(stay.number)
        });
        own.filter(|number| self.only_in_log(tenant, *number).is_some()).collect()
    }

    /// Content of a block that the log has and the device may lack, and that nothing else writes
    /// back. Content that must not be read is none.
    fn only_in_log(&self, tenant: TenantId, number: u64) -> Option<OnlyInLog> {
        if let Some(resident) = self.decisions.resident(tenant, number) {
            let stored = self.content.stored_blocks.get(resident)?;
            let is_left_out = stored.dirty && !self.decisions.is_dirty(tenant, number);
            return is_left_out.then_some(OnlyInLog {
                place: stored.place,
                checksum: stored.checksum,
                group: stored.group,
                resident: Some(resident),
            });
        }
        let found = self.content.stranded.get(&(self.volumes.id(tenant), number))?;
        let checksum = found.checksum.filter(|_| found.dirty)?;
        Some(OnlyInLog { place: found.place, checksum, group: found.group, resident: None })
    }

    /// A block is written again: from memory, or when the log has given it.
    fn begin_revived(&mut self, io: &mut impl Io, revival: &mut Revival, number: u64) {
        let tenant = revival.tenant;
        let Some(found) = self.only_in_log(tenant, number) else { return };
        let OnlyInLog { place, checksum, .. } = found;
        revival.under_way += 1;
        let block = self.revivals.blocks.insert(RevivedBlock { tenant, number, place, checksum });
        self.read_revived(io, block);
    }

    /// Reads the content of a block where it lies now, or takes it from memory.
    fn read_revived(&mut self, io: &mut impl Io, block: usize) {
        let Some(RevivedBlock { tenant, number, place, checksum }) =
            self.revivals.blocks.get(block)
        else {
            return;
        };
        let known = self.volumes.block(*tenant, *number);
        let memory = self.content.log.content(*place);
        let memory = memory.filter(|data| LogContent::is_whole(known, data, *checksum));
        match memory.map(Buffer::copy_of) {
            Some(data) => self.write_revived(io, block, data),
            None => self.content.log.read(io, *place, REVIVE_READS | block as u64),
        }
    }

    /// Writes a block to its device, up to the end of its volume.
    fn write_revived(&mut self, io: &mut impl Io, block: usize, mut data: Buffer) {
        let Some(RevivedBlock { tenant, number, .. }) = self.revivals.blocks.get(block) else {
            return;
        };
        let (file, offset) = (self.volumes.backing(*tenant).file(), *number << self.block_shift);
        data.truncate(self.volumes.bytes(*tenant).saturating_sub(offset) as usize);
        let token = ReviveToken::Write(block).token(self.namespace);
        io.submit(token, IoOp::Write { file, offset, buffer: Arc::new(data) });
    }

    fn sync_revived(&self, io: &mut impl Io, revival: &mut Revival) {
        revival.under_way += 1;
        let file: FileId = self.volumes.backing(revival.tenant).file();
        let token = ReviveToken::Sync(revival.tenant.index()).token(self.namespace);
        io.submit(token, IoOp::Sync { file });
    }

    /// The log has given the content of a block, by number from [`REVIVE_READS`] on.
    pub(super) fn revived_read(
        &mut self,
        io: &mut impl Io,
        caller: u64,
        data: Buffer,
        result: Result<(), IoError>,
    ) {
        let block = (caller - REVIVE_READS) as usize;
        let Some(RevivedBlock { tenant, number, place, checksum }) =
            self.revivals.blocks.get(block)
        else {
            return;
        };
        let (tenant, number) = (*tenant, *number);
        let known = self.volumes.block(tenant, number);
        if result.is_ok() && LogContent::is_whole(known, &data, *checksum) {
            return self.write_revived(io, block, data);
        }
        let now = self.only_in_log(tenant, number);
        match now.filter(|now| now.place != *place) {
            // The cleaner has moved it meanwhile.
            Some(now) => {
                if let Some(read) = self.revivals.blocks.get_mut(block) {
                    (read.place, read.checksum) = (now.place, now.checksum);
                }
                self.read_revived(io, block);
            }
            None => {
                let is_damaged = now.is_some();
                self.revivals.blocks.try_remove(block);
                if let Some(revival) = self.revivals.find(tenant) {
                    revival.under_way -= 1;
                    if is_damaged {
                        revival.damaged.insert(number);
                    }
                }
            }
        }
    }

    /// An operation on a device that is tried again is done; `own` is its token without namespace.
    pub(super) fn revive_done(&mut self, io: &mut impl Io, own: u64, error: Option<IoError>) {
        let (tenant, block) = match ReviveToken::decode(own) {
            ReviveToken::Sync(tenant) | ReviveToken::Read(tenant) => {
                (TenantId(tenant as u16), None)
            }
            ReviveToken::Write(block) => match self.revivals.blocks.try_remove(block) {
                Some(block) => (block.tenant, Some(block)),
                None => return,
            },
        };
        let file = self.volumes.backing(tenant).file();
        let namespace = self.namespace;
        let Some(revival) = self.revivals.find(tenant) else { return };
        revival.under_way -= 1;
        if let Some(error) = error {
            revival.error = Some(error);
            return;
        }
        match (ReviveToken::decode(own), block) {
            (ReviveToken::Write(_), Some(block)) => {
                revival.written.push((block.number, block.checksum));
            }
            (ReviveToken::Sync(_), _) if revival.stage == Stage::Trying => {
                revival.under_way += 1;
                let token = ReviveToken::Read(tenant.index()).token(namespace);
                let bytes = io.file_bytes(file).min(ALIGNMENT as u64);
                let buffer = Buffer::zeroed(bytes as usize);
                io.submit(token, IoOp::Read { file, offset: 0, buffer });
            }
            (ReviveToken::Sync(_), _) => revival.stage = Stage::Telling,
            _ => revival.stage = Stage::Choosing,
        }
    }

    /// The device has the content of a block durably, if that is what the log has still.
    fn tell_log(&mut self, io: &mut impl Io, tenant: TenantId, number: u64, checksum: u32) {
        let found = self.only_in_log(tenant, number).filter(|found| found.checksum == checksum);
        let Some(found) = found else { return };
        if let Some(resident) = found.resident {
            let block = self.volumes.block(tenant, number);
            return self.content.note_clean(io, resident, block);
        }
        let volume = self.volumes.id(tenant);
        self.content.stranded.remove(&(volume, number));
        self.content.log.note_dead(found.place);
        let version: Version = self.last_version();
        self.content.note_gone(io, tenant, volume, number..number + 1, version);
    }

    /// A request has changed its backing device, and is answered: only a sync makes that durable.
    pub(super) fn note_unflushed(&mut self, open: OpenId) {
        let Some(request) = self.under_way.request(open) else { return };
        if request.wrote_through {
            let tenant = request.request.tenant;
            self.volumes.backing_mut(tenant).note_unflushed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_operation() {
        for named in [ReviveToken::Sync(3), ReviveToken::Read(7), ReviveToken::Write(1 << 20)] {
            let Token(token) = named.token(9 << 56);
            assert_eq!((token >> 56, ReviveToken::decode(token & ((1 << 54) - 1))), (9, named));
        }
    }
}
