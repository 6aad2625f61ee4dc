//! Listeners, and which of them accept a client next.
//!
//! For: one accept under way per listener, and none of more clients than there may be. Must never
//! know: connections. Units: numbers of listeners.

use crate::io::ListenerId;

/// A listener.
#[derive(Clone, Copy, Debug)]
struct Listening {
    listener: ListenerId,
    /// An accept is under way, or the pause after one that failed.
    waiting: bool,
}

/// All listeners of a node.
#[derive(Clone, Debug, Default)]
pub struct Listeners {
    list: Vec<Listening>,
    /// No client is accepted any more.
    stopping: bool,
}

impl Listeners {
    /// One more listener.
    pub fn add(&mut self, listener: ListenerId) {
        self.list.push(Listening { listener, waiting: false });
    }

    /// A listener that is to accept a client, with its number, if one more may come beside those
    /// that others accept; `free`: connections that there may be more of.
    pub fn begin_accept(&mut self, free: usize) -> Option<(usize, ListenerId)> {
        let accepting = self.list.iter().filter(|listening| listening.waiting).count();
        if accepting >= free || self.stopping {
            return None;
        }
        let mut list = self.list.iter_mut().enumerate();
        let (index, listening) = list.find(|(_, listening)| !listening.waiting)?;
        listening.waiting = true;
        Some((index, listening.listener))
    }

    /// An accept is over.
    pub fn end_accept(&mut self, index: usize) {
        self.list[index].waiting = false;
    }

    /// No client is accepted any more.
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
    fn no_more_clients_are_accepted_than_there_may_be() {
        let mut listeners = Listeners::default();
        (0..3).for_each(|number| listeners.add(ListenerId(number)));
        let index = |begun: Option<(usize, ListenerId)>| begun.map(|(index, _)| index);
        assert_eq!(index(listeners.begin_accept(2)), Some(0));
        assert_eq!(index(listeners.begin_accept(2)), Some(1));
        assert_eq!(index(listeners.begin_accept(2)), None);
        listeners.end_accept(0);
        assert_eq!(index(listeners.begin_accept(2)), Some(0));
        listeners.end_accept(1);
        listeners.stop();
        assert!(listeners.is_stopping());
        assert_eq!(index(listeners.begin_accept(2)), None);
    }
}
