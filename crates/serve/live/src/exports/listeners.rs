//! Listeners, and which client is served next.
//!
//! Each listener accepts one client ahead, which waits until there is a connection for it; further
//! ones wait in the system's queue. So no listener is deaf while another one waits for a client,
//! and those of all listeners get their turns. Half of all connections that there may be is kept
//! for exports that have few, in even parts of at least one each. The other half goes to those that
//! come first.

use crate::io::{ListenerId, SocketId};
use cachewright_types::TenantId;
use std::collections::VecDeque;

/// A listener.
#[derive(Clone, Copy, Debug)]
struct Listening {
    listener: ListenerId,
    /// An accept is under way, or the pause after one that failed, or a client waits.
    is_taken: bool,
}

/// A client that was accepted and waits for a place.
#[derive(Clone, Copy, Debug)]
struct WaitingClient {
    listener: usize,
    socket: SocketId,
}

/// All listeners.
#[derive(Clone, Debug, Default)]
pub struct Listeners {
    list: Vec<Listening>,
    waiting: VecDeque<WaitingClient>,
    /// No client is accepted any more.
    stopping: bool,
}

impl Listeners {
    /// One more listener.
    pub fn add(&mut self, listener: ListenerId) {
        self.list.push(Listening { listener, is_taken: false });
    }

    /// A listener that is to accept a client, with its number.
    pub fn begin_accept(&mut self) -> Option<(usize, ListenerId)> {
        if self.stopping {
            return None;
        }
        let mut list = self.list.iter_mut().enumerate();
        let (index, listening) = list.find(|(_, listening)| !listening.is_taken)?;
        listening.is_taken = true;
        Some((index, listening.listener))
    }

    /// An accept has brought a client, which waits for a place.
    pub fn accepted(&mut self, index: usize, socket: SocketId) {
        self.waiting.push_back(WaitingClient { listener: index, socket });
    }

    /// An accept has brought no client.
    pub fn end_accept(&mut self, index: usize) {
        self.list[index].is_taken = false;
    }

    /// The client that has waited longest; its listener may accept the next one.
    pub fn next_client(&mut self) -> Option<SocketId> {
        let WaitingClient { listener, socket } = self.waiting.pop_front()?;
        self.end_accept(listener);
        Some(socket)
    }

    /// No client is accepted any more; those that wait are still to be taken.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Whether no client is accepted any more.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }
}

/// An export's connections.
#[derive(Clone, Copy, Debug, Default)]
struct ExportConnections {
    open: usize,
    /// The most that it may have, if that is said.
    limit: Option<usize>,
    /// It is there no more.
    is_closed: bool,
}

/// The connections of all exports, by tenant; see the top of the file.
#[derive(Clone, Debug)]
pub struct ConnectionSlots {
    all: usize,
    exports: Vec<ExportConnections>,
}

impl ConnectionSlots {
    /// At most `all` connections to all exports together, of which there are none yet.
    pub fn new(all: usize) -> ConnectionSlots {
        ConnectionSlots { all, exports: Vec::new() }
    }

    /// One more export.
    pub fn add(&mut self) {
        self.exports.push(ExportConnections::default());
    }

    /// Bounds the connections to an export, or does not; those that are open stay.
    pub fn set_limit(&mut self, tenant: TenantId, limit: Option<usize>) {
        self.exports[tenant.index()].limit = limit;
    }

    /// An export is there no more: nothing is kept for it.
    pub fn close(&mut self, tenant: TenantId) {
        self.exports[tenant.index()].is_closed = true;
    }

    /// Whether one more connection may open an export.
    pub fn has_place(&self, tenant: TenantId) -> bool {
        let own = self.exports[tenant.index()];
        if own.limit.is_some_and(|limit| own.open >= limit) {
            return false;
        }
        let served = self.exports.iter().filter(|export| !export.is_closed).count().max(1);
        let kept = (self.all / (2 * served)).max(1);
        if own.open < kept {
            return true;
        }
        let open: usize = self.exports.iter().map(|export| export.open).sum();
        let others = self.exports.iter().enumerate();
        let others = others.filter(|(place, export)| *place != tenant.index() && !export.is_closed);
        let kept_for =
            |export: &ExportConnections| export.limit.map_or(kept, |limit| limit.min(kept));
        let wanting: usize =
            others.map(|(_, export)| kept_for(export).saturating_sub(export.open)).sum();
        open + wanting < self.all
    }

    /// A connection has opened an export.
    pub fn open(&mut self, tenant: TenantId) {
        self.exports[tenant.index()].open += 1;
    }

    /// Such a connection is gone.
    pub fn leave(&mut self, tenant: TenantId) {
        let export = &mut self.exports[tenant.index()];
        export.open = export.open.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_listener_has_one_client_ahead_and_they_are_taken_as_they_came() {
        let mut listeners = Listeners::default();
        (0..2).for_each(|number| listeners.add(ListenerId(number)));
        let index = |begun: Option<(usize, ListenerId)>| begun.map(|(index, _)| index);
        assert_eq!(index(listeners.begin_accept()), Some(0));
        assert_eq!(index(listeners.begin_accept()), Some(1));
        assert_eq!(index(listeners.begin_accept()), None);
        listeners.accepted(1, SocketId(7));
        listeners.accepted(0, SocketId(8));
        assert_eq!(index(listeners.begin_accept()), None, "their clients wait");
        assert_eq!(listeners.next_client(), Some(SocketId(7)));
        assert_eq!(index(listeners.begin_accept()), Some(1));
        listeners.end_accept(1);
        listeners.stop();
        assert!(listeners.is_stopping() && listeners.begin_accept().is_none());
        let rest = [listeners.next_client(), listeners.next_client()];
        assert_eq!(rest, [Some(SocketId(8)), None]);
    }

    fn places(all: usize, exports: usize) -> ConnectionSlots {
        let mut places = ConnectionSlots::new(all);
        (0..exports).for_each(|_| places.add());
        places
    }

    /// Opens all that an export may have; returns how many.
    fn fill(places: &mut ConnectionSlots, tenant: u16) -> usize {
        let mut opened = 0;
        while places.has_place(TenantId(tenant)) {
            places.open(TenantId(tenant));
            opened += 1;
        }
        opened
    }

    #[test]
    fn no_export_takes_the_places_of_others() {
        let mut four = places(64, 4);
        assert_eq!([0, 1, 2, 3].map(|tenant| fill(&mut four, tenant)), [40, 8, 8, 8]);
        four.leave(TenantId(0));
        assert!(four.has_place(TenantId(1)), "what is kept for none goes to any");
        assert_eq!(fill(&mut places(64, 1), 0), 64, "there is no other");
        let mut many = places(10, 30);
        assert_eq!((fill(&mut many, 3), fill(&mut many, 4)), (1, 1));
    }

    #[test]
    fn a_bound_of_an_export_holds_and_one_that_has_gone_keeps_nothing() {
        let mut two = places(64, 2);
        two.set_limit(TenantId(0), Some(5));
        assert_eq!(fill(&mut two, 0), 5);
        two.set_limit(TenantId(0), Some(3));
        two.leave(TenantId(0));
        assert!(!two.has_place(TenantId(0)));
        assert_eq!(fill(&mut two, 1), 60, "no more is kept for the other than it may have");
        let mut two = places(64, 2);
        assert_eq!(fill(&mut two, 0), 48);
        two.close(TenantId(1));
        assert_eq!(fill(&mut two, 0), 16);
    }
}
