//! The tenants' queues at the host interface, and whose command the drive fetches next.
//!
//! Invariants (audited): the bounds on commands under way hold, per tenant and for the drive;
//! nothing waits beside a free place. Arbitration is by arrival, round robin or weighted round
//! robin, O(tenants) per decision. Source: NVMe base specification 1.4, 4.13, with one class of
//! weighted queues, each with a weight of its own.

use super::{Port, SATA_SLOTS, Slot};
use crate::ssd::params::{Arbitration, Interface, SsdParams};
use std::collections::VecDeque;

/// One tenant's commands.
#[derive(Clone, Debug)]
struct TenantQueue {
    port: Port,
    /// In the host, because as many as may be are under way.
    held: VecDeque<Slot>,
    /// Announced and not yet fetched, with their places in the order of arrival.
    posted: VecDeque<(u64, Slot)>,
    /// Announced and not yet completed.
    under_way: u32,
    /// Fetched and not yet done inside the drive.
    inside: u32,
}

impl TenantQueue {
    fn new(port: Port) -> TenantQueue {
        let (held, posted) = (VecDeque::new(), VecDeque::new());
        TenantQueue { port, held, posted, under_way: 0, inside: 0 }
    }
}

/// What follows from a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A command held back may now be announced.
    Enters(Slot),
    /// None is held back.
    Nothing,
}

/// All tenants' queues.
#[derive(Clone, Debug)]
pub struct Queues {
    queues: Vec<TenantQueue>,
    /// Queue depth of a tenant without a port.
    depth: u32,
    arbiter: Arbiter,
    fetch_size: u32,
    slots: u32,
    inside: u32,
    posted: u64,
    arrivals: u64,
}

impl Queues {
    /// Empty queues, one per port.
    pub fn new(params: &SsdParams, ports: &[Port]) -> Queues {
        let depth = params.queue_depth;
        let queue = |port: &Port| {
            TenantQueue::new(Port { queue_depth: port.queue_depth.clamp(1, depth), ..*port })
        };
        let slots = match params.interface {
            Interface::Nvme => params.command_slots,
            Interface::Sata => params.command_slots.min(SATA_SLOTS),
        };
        Queues {
            queues: ports.iter().map(queue).collect(),
            depth,
            arbiter: Arbiter::new(params.arbitration, params.arbitration_burst),
            fetch_size: params.fetch_size,
            slots,
            inside: 0,
            posted: 0,
            arrivals: 0,
        }
    }

    /// Takes in a command; whether it may be announced at once. Otherwise it is held back. A tenant
    /// without a port gets one of the drive's queue depth.
    #[inline]
    pub fn enter(&mut self, tenant: usize, slot: Slot) -> bool {
        if tenant >= self.queues.len() {
            let port = Port { queue_depth: self.depth, weight: 1 };
            self.queues.resize_with(tenant + 1, || TenantQueue::new(port));
        }
        let queue = &mut self.queues[tenant];
        let may = queue.under_way < queue.port.queue_depth;
        if may {
            queue.under_way += 1;
        } else {
            queue.held.push_back(slot);
        }
        may
    }

    /// An announced command waits to be fetched.
    pub fn post(&mut self, tenant: usize, slot: Slot) {
        self.queues[tenant].posted.push_back((self.arrivals, slot));
        self.arrivals += 1;
        self.posted += 1;
    }

    /// Whether a command waits to be fetched.
    #[inline]
    pub fn posted(&self) -> bool {
        self.posted > 0
    }

    /// Whether a command of the tenant that is announced now would be taken up at once.
    #[inline]
    pub fn passes(&self, tenant: usize) -> bool {
        let is_free = self.posted == 0 && self.inside < self.slots;
        is_free && self.queues[tenant].inside < self.fetch_size
    }

    /// Takes up such a command.
    #[inline]
    pub fn pass(&mut self, tenant: usize, slot: Slot) {
        if let [queue] = self.queues.as_mut_slice() {
            queue.inside += 1;
            self.inside += 1;
            return;
        }
        self.post(tenant, slot);
        let taken = self.take();
        debug_assert_eq!(taken, Some(slot));
    }

    /// The command that the drive takes up next, if it has room for one.
    pub fn take(&mut self) -> Option<Slot> {
        if self.posted == 0 || self.inside >= self.slots {
            return None;
        }
        if let [queue] = self.queues.as_mut_slice() {
            if queue.inside >= self.fetch_size {
                return None;
            }
            let (_, slot) = queue.posted.pop_front()?;
            queue.inside += 1;
            self.inside += 1;
            self.posted -= 1;
            return Some(slot);
        }
        self.take_of_many()
    }

    /// The same, when there are several queues.
    fn take_of_many(&mut self) -> Option<Slot> {
        let (queues, fetch_size) = (&self.queues, self.fetch_size);
        let candidate = |index: usize| {
            let queue: &TenantQueue = &queues[index];
            let arrival = queue.posted.front().filter(|_| queue.inside < fetch_size);
            QueueCandidate { arrival: arrival.map(|(place, _)| *place), weight: queue.port.weight }
        };
        let index = self.arbiter.pick(queues.len(), candidate)?;
        let queue = &mut self.queues[index];
        let (_, slot) = queue.posted.pop_front()?;
        queue.inside += 1;
        self.inside += 1;
        self.posted -= 1;
        Some(slot)
    }

    /// A command of the tenant is done inside the drive.
    #[inline]
    pub fn leave(&mut self, tenant: usize) {
        self.queues[tenant].inside -= 1;
        self.inside -= 1;
    }

    /// The host has seen a command of the tenant complete.
    #[inline]
    pub fn completed(&mut self, tenant: usize) -> Next {
        let queue = &mut self.queues[tenant];
        match queue.held.pop_front() {
            Some(slot) => Next::Enters(slot),
            None => {
                queue.under_way -= 1;
                Next::Nothing
            }
        }
    }

    /// All commands that wait, held back or posted.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let posted =
            |queue: &TenantQueue| queue.posted.iter().map(|(_, slot)| *slot).collect::<Vec<_>>();
        self.queues.iter().flat_map(move |queue| {
            queue.held.iter().copied().chain(posted(queue)).collect::<Vec<_>>()
        })
    }

    /// Checks the bounds and counts, of `outstanding` commands in all.
    pub fn audit(&self, outstanding: usize) -> Result<(), String> {
        let (mut inside, mut posted, mut all) = (0, 0, 0);
        for (tenant, queue) in self.queues.iter().enumerate() {
            let TenantQueue { port, under_way, .. } = queue;
            if *under_way > port.queue_depth || queue.inside > self.fetch_size {
                return Err(format!("tenant {tenant}: {under_way} commands under way, too many"));
            }
            if !queue.held.is_empty() && *under_way < port.queue_depth {
                return Err(format!("tenant {tenant}: commands are held back without need"));
            }
            let known = queue.posted.len() as u32 + queue.inside;
            if known > *under_way {
                return Err(format!("tenant {tenant}: {known} commands of {under_way} under way"));
            }
            inside += queue.inside;
            posted += queue.posted.len() as u64;
            all += queue.held.len() + *under_way as usize;
        }
        if inside != self.inside || inside > self.slots || posted != self.posted {
            return Err(format!("{inside} commands inside and {posted} posted, counted otherwise"));
        }
        if all != outstanding {
            return Err(format!("{all} commands in the queues, {outstanding} outstanding"));
        }
        Ok(())
    }
}

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
