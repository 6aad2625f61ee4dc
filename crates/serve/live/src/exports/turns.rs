//! The connections that may have something to do, and those that let others go first.
//!
//! For: connections that are looked at in their order, once a turn. Must never know: what a
//! connection does. Units: numbers of connections.

/// Whose turn it is; see the top of the file.
#[derive(Clone, Debug, Default)]
pub struct ConnectionTurns {
    /// Each connection at least once.
    due: Vec<usize>,
    /// Those that go on after others had their turn.
    later: Vec<usize>,
    /// A timer is under way, after which they do.
    waking: bool,
}

impl ConnectionTurns {
    /// A connection may have something to do.
    pub fn add(&mut self, connection: usize) {
        self.due.push(connection);
    }

    /// A connection lets others go first.
    pub fn postpone(&mut self, connection: usize) {
        self.later.push(connection);
    }

    /// A connection has nothing to do any more: its number may be another one's from then on.
    pub fn leave(&mut self, connection: usize) {
        self.later.retain(|other| *other != connection);
    }

    /// Whether a connection lets others go first.
    pub fn is_postponed(&self, connection: usize) -> bool {
        self.later.contains(&connection)
    }

    /// The connections that may have something to do, each once, in the order of their numbers.
    pub fn take(&mut self) -> Vec<usize> {
        let mut due = std::mem::take(&mut self.due);
        due.sort_unstable();
        due.dedup();
        due
    }

    /// Whether a timer is to begin, after which postponed connections go on: it counts as begun.
    pub fn begin_wake(&mut self) -> bool {
        let begins = !self.later.is_empty() && !self.waking;
        self.waking |= begins;
        begins
    }

    /// That timer is over.
    pub fn wake(&mut self) {
        self.waking = false;
        self.due.append(&mut self.later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_postponed_connection_goes_on_behind_one_timer() {
        let mut turns = ConnectionTurns::default();
        assert!(!turns.begin_wake());
        [4, 2, 4].into_iter().for_each(|connection| turns.add(connection));
        turns.postpone(3);
        assert_eq!((turns.take(), turns.take()), (vec![2, 4], vec![]));
        assert_eq!((turns.begin_wake(), turns.begin_wake()), (true, false));
        assert!(turns.is_postponed(3));
        turns.wake();
        assert_eq!((turns.is_postponed(3), turns.take()), (false, vec![3]));
        assert!(!turns.begin_wake());
    }
}
