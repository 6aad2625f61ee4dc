//! Memory of requests and of answers, of all clients together.
//!
//! For: one bound, whatever clients send, and none that takes it from the others. Must never know:
//! requests, sockets. Units: bytes. A quarter of the bound is shared out evenly: each connection
//! that there may be has its part whatever others hold. The rest goes to those that come first. One
//! that holds some of it gets more only while it would then hold no more than is still free, so
//! that a single one never has more than half. One that holds none, and wants more than is free,
//! waits; those that come behind it do not overtake it.

use std::collections::VecDeque;

/// What all connections hold; see the top of the file.
#[derive(Clone, Debug)]
pub struct ClientMemory {
    /// What each connection may hold whatever others do.
    own: u64,
    /// What connections may hold beyond that, all together.
    shared: u64,
    shared_used: u64,
    used: u64,
    /// By connection.
    held: Vec<u64>,
    /// Connections that wait for shared memory.
    waiting: VecDeque<usize>,
    /// The first that waits may have something to gain since it was last looked at.
    has_changed: bool,
}

impl ClientMemory {
    /// At most `bound` bytes for at most so many connections. A single request may be larger than
    /// what is shared: it is taken when it is the only one there.
    pub fn new(bound: u64, connections: usize) -> ClientMemory {
        let connections = connections.max(1) as u64;
        let own = bound / 4 / connections;
        ClientMemory {
            own,
            shared: bound - own * connections,
            shared_used: 0,
            used: 0,
            held: Vec::new(),
            waiting: VecDeque::new(),
            has_changed: false,
        }
    }

    /// Bytes that all connections hold.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Whether a connection may hold so many bytes more; [`ClientMemory::note`] says when it does.
    pub fn admits(&mut self, connection: usize, bytes: u64) -> bool {
        let held = self.held.get(connection).copied().unwrap_or_default();
        let before = self.beyond_own(held);
        let more = self.beyond_own(held.saturating_add(bytes)) - before;
        if more == 0 {
            self.leave(connection);
            return true;
        }
        let free = self.shared.saturating_sub(self.shared_used);
        if before > 0 {
            let left = free.checked_sub(more);
            return self.waiting.is_empty() && left.is_some_and(|left| before + more <= left);
        }
        let is_first = self.waiting.front().is_none_or(|first| *first == connection);
        if is_first && (more <= free || self.shared_used == 0) {
            self.leave(connection);
            return true;
        }
        if !self.waiting.contains(&connection) {
            self.waiting.push_back(connection);
        }
        false
    }

    /// A connection holds so many bytes now.
    pub fn note(&mut self, connection: usize, bytes: u64) {
        if self.held.len() <= connection {
            self.held.resize(connection + 1, 0);
        }
        let before = std::mem::replace(&mut self.held[connection], bytes);
        let (was, is) = (self.beyond_own(before), self.beyond_own(bytes));
        self.used = self.used - before + bytes;
        self.shared_used = self.shared_used - was + is;
        self.has_changed |= is < was;
    }

    /// A connection waits no more: it has got what it wanted, or it ends.
    pub fn leave(&mut self, connection: usize) {
        let was_first = self.waiting.front() == Some(&connection);
        self.waiting.retain(|waiting| *waiting != connection);
        self.has_changed |= was_first;
    }

    /// The first connection that waits, once after something has changed for it.
    pub fn next_turn(&mut self) -> Option<usize> {
        let has_changed = std::mem::take(&mut self.has_changed);
        self.waiting.front().copied().filter(|_| has_changed)
    }

    fn beyond_own(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

    /// What a connection wants is held at once where it may.
    fn take(memory: &mut ClientMemory, held: &mut [u64], connection: usize, bytes: u64) -> bool {
        let admits = memory.admits(connection, bytes);
        if admits {
            held[connection] += bytes;
            memory.note(connection, held[connection]);
        }
        admits
    }

    #[test]
    fn one_that_takes_all_it_can_leaves_the_others_theirs() {
        let mut memory = ClientMemory::new(4_000, 10);
        let mut held = [0; 10];
        while take(&mut memory, &mut held, 0, 10) {}
        assert!((1_500..=1_600).contains(&held[0]), "{}", held[0]);
        for other in 1..10 {
            assert!(take(&mut memory, &mut held, other, 100), "its own part");
        }
        assert!(take(&mut memory, &mut held, 1, 1_500), "as much as is free");
        assert!(memory.used() <= 4_000);
        assert!(!take(&mut memory, &mut held, 2, 50) && take(&mut memory, &mut held, 1, 0));
        memory.note(0, 0);
        assert_eq!((memory.next_turn(), memory.next_turn()), (Some(2), None));
        assert!(take(&mut memory, &mut held, 2, 50));
    }

    #[test]
    fn those_that_wait_are_not_overtaken() {
        let mut memory = ClientMemory::new(4_000, 10);
        let mut held = [0; 10];
        assert!(take(&mut memory, &mut held, 0, 2_900));
        assert!(!take(&mut memory, &mut held, 1, 3_000), "it waits");
        assert!(take(&mut memory, &mut held, 2, 90), "what is its own needs no turn");
        assert!(!take(&mut memory, &mut held, 2, 200), "it waits behind");
        assert_eq!(memory.next_turn(), None);
        memory.note(0, 1_000);
        assert_eq!(memory.next_turn(), Some(1));
        assert!(!take(&mut memory, &mut held, 1, 3_000));
        memory.note(0, 0);
        assert!(take(&mut memory, &mut held, 1, 3_000));
        assert_eq!(memory.next_turn(), Some(2));
        memory.leave(2);
        assert_eq!(memory.next_turn(), None);
    }

    #[test]
    fn what_is_larger_than_all_that_is_shared_is_taken_alone() {
        let mut memory = ClientMemory::new(400, 2);
        let mut held = [0; 2];
        assert!(take(&mut memory, &mut held, 0, 60));
        assert!(!take(&mut memory, &mut held, 1, 5_000));
        held[0] = 0;
        memory.note(0, 0);
        assert!(take(&mut memory, &mut held, 1, 5_000));
        assert!(take(&mut memory, &mut held, 0, 50) && memory.used() == 5_050);
    }

    /// Whatever comes and goes, the bound holds, and who waits gets a turn.
    #[test]
    fn the_bound_holds_and_all_are_served() {
        let mut rng = Seed(9).rng();
        let mut memory = ClientMemory::new(10_000, 8);
        let (mut held, mut wanted) = ([0_u64; 8], [0_u64; 8]);
        let mut taken = [0; 8];
        for _ in 0..20_000 {
            let connection = rng.below(8) as usize;
            if wanted[connection] == 0 {
                wanted[connection] = 1 + rng.below(7_000);
            }
            let bytes = wanted[connection];
            if take(&mut memory, &mut held, connection, bytes) {
                (wanted[connection], taken[connection]) = (0, taken[connection] + 1);
            }
            let other = rng.below(8) as usize;
            if rng.below(3) == 0 {
                held[other] = 0;
                memory.note(other, 0);
            }
            assert_eq!(memory.used(), held.iter().sum::<u64>());
            assert!(memory.used() <= 10_000, "{held:?}");
            while let Some(first) = memory.next_turn() {
                if take(&mut memory, &mut held, first, wanted[first]) {
                    (wanted[first], taken[first]) = (0, taken[first] + 1);
                }
            }
        }
        assert!(taken.iter().all(|count| *count > 100), "{taken:?}");
    }
}
