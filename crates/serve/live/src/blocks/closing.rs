//! The end of a server, in order.
//!
//! For: a log whose segments all have footers, so that the next start reads little, and damage is
//! told from a loss of power. Must never know: who stops it. To be called when no request is under
//! way.

use super::server::BlockServer;
use crate::io::Io;

impl BlockServer {
    /// Ends all segments of the log; [`BlockServer::advance`] is to be called until that is done.
    pub fn close(&mut self, io: &mut impl Io) {
        self.content.log.close(io);
    }

    /// Whether segments of the log are being ended. A log that has failed ends none.
    pub fn is_closing(&self) -> bool {
        self.content.failed.is_none() && self.content.log.is_closing()
    }
}
