//! A server whose log takes nothing any more.
//!
//! For: the way from serving through the cache to serving past it (`bypass`). Must never know: how
//! content is rescued, how requests pass. Units: bytes, blocks. What was begun ends first, so that
//! the newest content of each block is known; then requests that needed the log begin again.

use super::bypass::{BYPASS_TOKENS, BypassNews, DirtyContent, VolumePassage};
use super::content::LogContent;
use super::copies::BlockCopy;
use super::losses::KnownLosses;
use super::server::{BlockServer, State};
use crate::io::{IoError, Output};
use crate::log::Place;
use crate::log::format::VolumeId;
use crate::record::RequestRecorder;
use cachewright_types::TenantId;
use std::ops::Range;

impl BlockServer {
    /// How a tenant's volume is served while the cache is bypassed; nothing while it is not.
    pub fn passage(&self, tenant: TenantId) -> Option<VolumePassage> {
        self.look().bypass.volume(tenant)
    }

    /// Runs of a tenant's blocks whose content is lost: reads of them fail until they are
    /// overwritten whole, trimmed or zeroed.
    pub fn lost_runs(&self, tenant: TenantId) -> Vec<Range<u64>> {
        self.look().bypass.lost_runs(tenant)
    }

    /// Dirty blocks of a tenant that were lost with the log: the count only rises.
    pub fn lost_with_log(&self, tenant: TenantId) -> u64 {
        self.look().bypass.lost_blocks(tenant)
    }

    /// Losses of a tenant's content that was answered and that no flush had made durable. A flush
    /// does not fail because of them: which clients are to be told is the caller's to know.
    pub fn losses(&self, tenant: TenantId) -> KnownLosses {
        let state = self.look();
        let is_open = state.bypass.has_unflushed_losses(tenant);
        KnownLosses { count: state.losses.count(tenant), is_open }
    }

    /// The device of the log that has failed, in the order of the set.
    pub fn failed_device(&self) -> Option<usize> {
        self.look().content.log.failed_device()
    }

    /// Blocks that only the cache has.
    pub fn dirty_blocks(&self) -> u64 {
        let state = self.look();
        match state.bypass.is_begun() {
            true => state.bypass.left_in_log(),
            false => state.decisions.cache.engine().dirty_blocks(),
        }
    }

    /// Whether the backing device of a tenant has all that the cache has of it. Tenants that share
    /// a pool share the answer.
    pub fn is_written_back(&self, tenant: TenantId) -> bool {
        let state = self.look();
        let engine = state.decisions.cache.engine();
        let volume = state.volumes.id(tenant);
        let stays = |block: &(VolumeId, u64)| block.0 == volume;
        !state.bypass.is_begun()
            && engine.dirty_in(engine.pool_of(tenant)) == 0
            && !state.content.stranded.keys().any(stays)
    }
}

impl State {
    /// The log has failed: nothing is decided any more, and requests wait to pass the cache. Where
    /// it cannot be bypassed, at a start and behind the last flush, they fail.
    pub(super) fn turn_to_bypass(&mut self) {
        let Some(cause) = self.content.failed else { return };
        if self.can_bypass() && !self.bypass.is_begun() {
            self.decisions.recorder.take().map(RequestRecorder::finish);
            (self.decisions.division, self.decisions.curves) = (None, None);
            self.bypass.begin(cause);
        }
        for request in std::mem::take(&mut self.space.queue) {
            match self.bypass.is_begun() {
                true => self.pass(request),
                false => self.answers.refuse(&request, IoError::IO),
            }
        }
    }

    fn can_bypass(&self) -> bool {
        self.bypass.is_armed() && !self.is_closing
    }

    /// Whether a tenant's request that was under way is not to fail, because the log alone has: it
    /// is begun again past the cache, in which it finds what its volume's device has by then.
    pub(super) fn begins_again(&self, tenant: TenantId) -> bool {
        let log_failed = self.content.failed.is_some();
        log_failed && self.can_bypass() && !self.volumes.backing(tenant).has_failed()
    }

    /// A request that was not decided goes past the cache.
    pub(super) fn pass(&mut self, request: super::request::BlockRequest) {
        self.bypass.take(&mut self.tasks, request);
        self.take_bypassed();
    }

    /// Begins what is due past the cache.
    pub(super) fn go_on_bypassing(&mut self) {
        if self.bypass.is_draining() && self.has_drained() {
            let dirty = self.dirty_content();
            let failed = |tenant: &TenantId| self.volumes.backing(*tenant).has_failed();
            let failed: Vec<TenantId> = self.volumes.tenants().filter(failed).collect();
            let open = &self.open;
            self.bypass.leave_out(|order, request| open.overtaken(order, request));
            self.bypass.drained(&mut self.tasks, dirty, &failed);
        }
        self.bypass.advance(&mut self.tasks);
        self.take_bypassed();
    }

    /// An operation past the cache is done.
    pub(super) fn bypass_done(&mut self, own: u64, output: Output, error: Option<IoError>) {
        self.bypass.on_done(&mut self.tasks, own - BYPASS_TOKENS, output, error);
        self.take_bypassed();
    }

    fn take_bypassed(&mut self) {
        let BypassNews { answers, failed, lost } = self.bypass.take_news();
        lost.into_iter().for_each(|tenant| self.losses.note(tenant));
        answers.into_iter().for_each(|answer| self.answers.push(answer));
        failed.into_iter().for_each(|tenant| self.fail_volume(tenant));
    }

    /// Whether nothing is under way that was begun through the cache.
    fn has_drained(&self) -> bool {
        let mut backings = self.volumes.tenants().map(|tenant| self.volumes.backing(tenant));
        self.at_work == 0
            && self.open.is_empty()
            && self.space.queue.is_empty()
            && !backings.any(|backing| backing.is_syncing())
    }

    /// Content that no backing device has, where it is the newest of its block. Nothing is under
    /// way, so that each block is cached, or its content is stranded, or its device has all of it.
    /// What is stranded is older than what is cached.
    fn dirty_content(&self) -> Vec<(TenantId, u64, DirtyContent)> {
        let (mut dirty, content) = (Vec::new(), &self.content);
        for (copy, known, stored) in content.copies.iter().filter(|(.., stored)| stored.dirty) {
            let BlockCopy { tenant, number, .. } = *known;
            debug_assert!(self.cached(tenant, number) == Some(copy), "what has left has ended");
            let checksum = Some(stored.checksum);
            let found = self.located(tenant, number, stored.place, checksum, stored.group);
            dirty.push((tenant, number, found));
        }
        for ((volume, number), found) in content.stranded.iter().filter(|(_, found)| found.dirty) {
            let Some(tenant) = self.volumes.tenant(*volume) else { continue };
            let cached = self.cached(tenant, *number);
            if cached.and_then(|copy| content.copies.stored(copy)).is_none() {
                let found = self.located(tenant, *number, found.place, found.checksum, found.group);
                dirty.push((tenant, *number, found));
            }
        }
        dirty
    }

    /// Where content may be read: in memory, at its place, which is read twice before it counts as
    /// damaged, and where the cleaner has copied it from. Without a checksum it must not be read.
    fn located(
        &self,
        tenant: TenantId,
        number: u64,
        place: Place,
        checksum: Option<u32>,
        group: u64,
    ) -> DirtyContent {
        let block = self.volumes.block(tenant, number);
        let durable = group <= self.content.log.durable();
        let Some(checksum) = checksum else {
            return DirtyContent { durable, ..DirtyContent::default() };
        };
        let memory = self.content.log.content(place);
        let memory = memory.filter(|data| LogContent::is_whole(block, data, checksum));
        let memory = memory.map(crate::io::Buffer::copy_of);
        let set = self.content.log.set();
        let page = |place: Place| {
            let (segment, page) = set.locate(place);
            set.page(segment, page)
        };
        let copied_from = self.content.copies.moved_from(place).map(page);
        let place = Some(page(place));
        DirtyContent { checksum, durable, memory, place, copied_from, tries: 2 }
    }
}
