//! The end of a server, in order.
//!
//! For: a log whose segments all have footers, so that the next start reads little, and damage is
//! told from a loss of power. Must never know: who stops it. To be called when no request is under
//! way.

use super::server::{BlockServer, State};
use crate::io::Io;

impl BlockServer {
    /// Ends all segments of the log; [`BlockServer::advance`] is to be called until that is done.
    /// No segment is cleaned any more.
    pub fn close(&mut self, io: &mut impl Io) {
        let mut state = self.state();
        state.is_closing = true;
        state.go_on_closing();
        drop(state);
        self.submit(io);
    }

    /// Whether segments of the log are being ended. A log that has failed ends none.
    pub fn is_closing(&self) -> bool {
        let state = self.look();
        let log = &state.content.log;
        let is_ended = !log.is_closing() && !log.has_begun() && !state.is_syncing();
        state.content.failed.is_none() && !is_ended
    }
}

impl State {
    /// Ends segments again that took what backing devices have settled meanwhile.
    pub(super) fn go_on_closing(&mut self) {
        if self.is_closing && self.content.log.has_begun() && !self.is_syncing() {
            self.content.log.close(&mut self.tasks);
        }
    }

    fn is_syncing(&self) -> bool {
        self.volumes.tenants().any(|tenant| self.volumes.backing(tenant).is_syncing())
    }
}
