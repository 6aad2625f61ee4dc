//! The end of a server, in order.
//!
//! For: a log whose segments all have footers, so that the next start reads little, and damage is
//! told from a loss of power. Must never know: who stops it. To be called when no request is under
//! way.

use super::server::BlockServer;
use crate::io::Io;

impl BlockServer {
    /// Ends all segments of the log; [`BlockServer::advance`] is to be called until that is done.
    /// No segment is cleaned any more.
    pub fn close(&mut self, io: &mut impl Io) {
        self.waiting.is_closing = true;
        self.go_on_closing(io);
    }

    /// Whether segments of the log are being ended. A log that has failed ends none.
    pub fn is_closing(&self) -> bool {
        let log = &self.content.log;
        let is_ended = !log.is_closing() && !log.has_begun() && !self.is_syncing();
        self.content.failed.is_none() && !is_ended
    }

    /// Ends segments again that took what backing devices have settled meanwhile.
    pub(super) fn go_on_closing(&mut self, io: &mut impl Io) {
        if self.waiting.is_closing && self.content.log.has_begun() && !self.is_syncing() {
            self.content.log.close(io);
        }
    }

    fn is_syncing(&self) -> bool {
        self.volumes.tenants().any(|tenant| self.volumes.backing(tenant).is_syncing())
    }
}
