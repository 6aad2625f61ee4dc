//! Whose command the drive fetches next.
//!
//! For: arrival order, round robin and weighted round robin over the tenants' queues. Must never
//! know: what a command is. Unit: commands. Source: NVMe base specification 1.4, 4.13, with one
//! class of weighted queues, each with a weight of its own. O(tenants) per decision.

use crate::ssd::params::Arbitration;

/// What the arbiter may know of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCandidate {
    /// Place in the order of arrival of its first command; nothing when none can be taken.
    pub arrival: Option<u64>,
    /// Bursts in one round of weighted arbitration.
    pub weight: u32,
}

/// The choice and its state between choices.
#[derive(Clone, Debug)]
pub struct Arbiter {
    kind: Arbitration,
    burst: u32,
    /// The queue whose turn it is, and the commands left of its turn.
    turn: usize,
    left: u32,
}

impl Arbiter {
    /// An arbiter that fetches `burst` commands (at least 1) before the turn passes on.
    pub fn new(kind: Arbitration, burst: u32) -> Arbiter {
        Arbiter { kind, burst: burst.max(1), turn: usize::MAX, left: 0 }
    }

    /// The queue to take from, among `count` queues that `candidate` describes; nothing when none
    /// can be taken from.
    #[inline]
    pub fn pick(
        &mut self,
        count: usize,
        candidate: impl Fn(usize) -> QueueCandidate,
    ) -> Option<usize> {
        if self.kind == Arbitration::Arrival {
            let arrivals = (0..count).filter_map(|queue| Some((candidate(queue).arrival?, queue)));
            return arrivals.min().map(|(_, queue)| queue);
        }
        if self.left > 0 && self.turn < count && candidate(self.turn).arrival.is_some() {
            self.left -= 1;
            return Some(self.turn);
        }
        let first = if self.turn.wrapping_add(1) < count { self.turn.wrapping_add(1) } else { 0 };
        let order = (first..count).chain(0..first);
        let next = order.into_iter().find(|queue| candidate(*queue).arrival.is_some())?;
        self.turn = next;
        self.left = self.share(candidate(next).weight) - 1;
        Some(next)
    }

    /// Commands of one turn.
    fn share(&self, weight: u32) -> u32 {
        match self.kind {
            Arbitration::Weighted => self.burst.saturating_mul(weight.max(1)),
            Arbitration::Arrival | Arbitration::RoundRobin => self.burst,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is picked from queues of so many commands each, with weights 1, 2 and 4.
    fn order(kind: Arbitration, burst: u32, mut lengths: [u64; 3]) -> String {
        let mut arbiter = Arbiter::new(kind, burst);
        let mut picked = String::new();
        loop {
            let candidate = |queue: usize| QueueCandidate {
                arrival: (lengths[queue] > 0).then(|| 100 * queue as u64 + 10 - lengths[queue]),
                weight: 1 << queue,
            };
            let Some(queue) = arbiter.pick(3, candidate) else { return picked };
            lengths[queue] -= 1;
            picked.push_str(&queue.to_string());
        }
    }

    #[test]
    fn queues_take_turns_as_the_kind_says() {
        assert_eq!(order(Arbitration::Arrival, 1, [2, 3, 2]), "0011122");
        assert_eq!(order(Arbitration::RoundRobin, 1, [2, 3, 2]), "0120121");
        assert_eq!(order(Arbitration::RoundRobin, 2, [3, 3, 3]), "001122012");
        assert_eq!(order(Arbitration::Weighted, 1, [3, 4, 8]), "011222201122220");
    }
}
