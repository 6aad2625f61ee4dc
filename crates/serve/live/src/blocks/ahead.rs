//! Dirty blocks that are written back before they must leave.
//!
//! For: evictions that find clean blocks, so that a request need not wait for a slow volume. Must
//! never know: how much may be done (`background`), how a step is carried out. Units: blocks.
//! Blocks are taken in the order of their ids and written in that of their numbers, a batch at a
//! time. Hits, admissions and evictions are those of a server that writes nothing back ahead; only
//! write-backs come earlier, and there are more of them where blocks are written again.

use super::server::{BlockServer, State};
use cachewright_types::{BlockId, TenantId};

/// Blocks that are written back together: a sixteenth of a pool's, and at most so many.
const MAX_BATCH: u64 = 32;
/// Write-backs under way beyond which no batch begins.
const MAX_UNDER_WAY: usize = 64;

impl BlockServer {
    /// Bounds work that no request waits for, from now on.
    pub fn set_background(&mut self, settings: super::BackgroundSettings) {
        self.state().background.set(settings);
    }

    /// Bytes per second that such work may move now, if it is bounded, and those it has moved.
    pub fn background(&self) -> (Option<u64>, u64) {
        let background = &self.look().background;
        (background.rate(), background.moved_bytes())
    }

    /// A client's request was answered after so long.
    pub fn client_answered(&mut self, now_ns: u64, response_ns: u64) {
        let background = &mut self.state().background;
        if background.has_target() {
            background.answered(now_ns, response_ns);
        }
    }

    /// Begins to write back a batch of each pool with too many dirty blocks.
    pub(super) fn write_back_ahead(&mut self) {
        let pools = self.look().decisions.cache.engine().pools();
        for pool in 0..pools {
            if !self.state().write_back_some(pool) {
                return;
            }
            self.settle();
        }
    }
}

impl State {
    /// Begins to write back a batch of a pool, if it has too many dirty blocks; false if no more may
    /// be written back now.
    fn write_back_some(&mut self, pool: usize) -> bool {
        if self.content.failed.is_some() || self.is_closing || self.bypass.is_begun() {
            return false;
        }
        let engine = self.decisions.cache.engine();
        let dirty = u64::from(engine.dirty_in(pool));
        let capacity = u64::from(engine.policy(pool).capacity());
        let Some(next) = self.background.begins_at(pool, dirty, capacity) else { return true };
        let batch = (capacity / 16).clamp(1, MAX_BATCH);
        if !self.may_write_ahead(pool, batch) {
            return true;
        }
        let now_ns = self.now_ns;
        self.background.adjust(now_ns);
        if !self.background.may_go_on(now_ns) {
            return false;
        }
        let (plan, next) = self.decisions.clean_some(pool, BlockId(next), batch as u32);
        let cleaned = plan.moves.len() as u64;
        self.carry_alone(TenantId(0), plan);
        self.background.go_on_at(pool, next.map(|block| block.0));
        self.background.charge(cleaned << self.block_shift, now_ns);
        true
    }

    /// Whether the devices of a pool's tenants and the log take another batch.
    fn may_write_ahead(&self, pool: usize, batch: u64) -> bool {
        let engine = self.decisions.cache.engine();
        let own = |tenant: &TenantId| engine.pool_of(*tenant) == pool;
        let mut tenants = self.volumes.tenants().filter(own);
        self.leavings.write_backs() < MAX_UNDER_WAY
            && tenants.all(|tenant| {
                let place = self.content.streams.pool(tenant);
                !self.volumes.backing(tenant).has_failed() && self.has_space(place, batch)
            })
    }
}
