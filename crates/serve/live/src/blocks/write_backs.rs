//! Write-backs that no request waits for, a bounded number at one time.
//!
//! For: divisions that take thousands of dirty blocks away, beside clients. Must never know: why
//! blocks leave. Units: steps. A write-back waits for the log and for its devices, never for
//! another that was decided later: so the oldest ones always go on.

use super::carry::ReadyStep;
use super::server::BlockServer;
use crate::io::Io;
use cachewright_types::TenantId;
use std::collections::VecDeque;

/// Steps of write-backs under way: more wait.
const MAX_UNDER_WAY: usize = 128;

/// Write-backs that have not begun, in the order of their decisions.
#[derive(Debug, Default)]
pub struct PostponedWriteBacks {
    queue: VecDeque<ReadyStep>,
    /// Begun while other steps were ready: what follows them is not known yet.
    fresh: usize,
}

impl PostponedWriteBacks {
    /// Whether one of a tenant has not begun.
    pub(super) fn holds(&self, tenant: TenantId) -> bool {
        self.queue.iter().any(|ready| ready.tenant == tenant)
    }
}

impl BlockServer {
    /// Begins a write-back, or lets it wait.
    pub(super) fn begin_write_back(&mut self, io: &mut impl Io, ready: ReadyStep) {
        if self.waiting.postponed.queue.is_empty() && self.may_write_back() {
            self.waiting.postponed.fresh += 1;
            self.begin_read(io, ready, None);
        } else {
            self.waiting.postponed.queue.push_back(ready);
        }
    }

    /// Begins write-backs that have waited, when no other step is ready; returns whether there were
    /// some.
    pub(super) fn begin_postponed(&mut self, io: &mut impl Io) -> bool {
        let mut begun = false;
        self.waiting.postponed.fresh = 0;
        while self.may_write_back()
            && let Some(ready) = self.waiting.postponed.queue.pop_front()
        {
            begun = true;
            self.waiting.postponed.fresh += 1;
            self.begin_read(io, ready, None);
            self.take_ends(io);
        }
        begun
    }

    fn may_write_back(&self) -> bool {
        let known = self.under_way.without_request() + self.waiting.held.without_request();
        known + self.waiting.postponed.fresh < MAX_UNDER_WAY
    }

    /// Steps of write-backs that are under way or wait.
    pub(super) fn write_backs_under_way(&self) -> usize {
        let known = self.under_way.without_request() + self.waiting.held.without_request();
        known + self.waiting.postponed.queue.len()
    }
}
