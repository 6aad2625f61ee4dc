//! Listeners, and which client is served next.
//!
//! For: clients in the order in which they came, wherever they connect, and no more of them than
//! there may be. Must never know: connections. Units: numbers of listeners. Each listener accepts
//! one client ahead, which waits until there is a place for it; further ones wait in the system's
//! queue. So no listener is deaf while another one waits for a client, and those of all listeners
//! get their turns.

use crate::io::{ListenerId, SocketId};
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

/// All listeners of a node.
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
}
