//! What clients of each export may do per second, all of them together.
//!
//! For: a tenant that must not take the server from others. Must never know: requests, bytes on the
//! wire. Units: requests and bytes per second, nanoseconds. Connections of an export with caps take
//! turns: one request each.

use super::timer::EarliestTimer;
use crate::pace::Pace;
use cachewright_types::TenantId;
use std::collections::VecDeque;

/// Bounds on the clients of an export; nothing: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Requests per second.
    pub requests: Option<u64>,
    /// Bytes of reads and writes per second.
    pub bytes: Option<u64>,
}

/// An export's clients.
#[derive(Clone, Debug, Default)]
struct Clients {
    requests: Option<Pace>,
    bytes: Option<Pace>,
    /// Connections that wait for their turn.
    waiting: VecDeque<usize>,
    /// How often one had to wait.
    waits: u64,
}

impl Clients {
    fn is_capped(&self) -> bool {
        self.requests.is_some() || self.bytes.is_some()
    }

    fn due_ns(&self) -> u64 {
        let due = |pace: &Option<Pace>| pace.as_ref().map_or(0, Pace::due_ns);
        due(&self.requests).max(due(&self.bytes))
    }
}

/// The clients of all exports, by tenant.
#[derive(Clone, Debug, Default)]
pub struct CappedClients {
    tenants: Vec<Clients>,
    /// When connections that wait are looked at again.
    timer: EarliestTimer,
}

impl CappedClients {
    /// Exports of so many tenants, without caps.
    pub fn new(tenants: usize) -> CappedClients {
        CappedClients {
            tenants: vec![Clients::default(); tenants],
            timer: EarliestTimer::default(),
        }
    }

    /// Sets the caps of a tenant's export; rates that stay keep what has passed.
    pub fn set(&mut self, tenant: TenantId, caps: Caps) {
        let index = tenant.index();
        self.tenants.resize_with(self.tenants.len().max(index + 1), Clients::default);
        let change = |pace: &mut Option<Pace>, rate: Option<u64>| match (pace.as_mut(), rate) {
            (Some(pace), Some(rate)) => pace.set_rate(rate),
            (_, rate) => *pace = rate.map(Pace::new),
        };
        change(&mut self.tenants[index].requests, caps.requests);
        change(&mut self.tenants[index].bytes, caps.bytes);
    }

    /// Whether a connection must wait for its turn, which comes by [`CappedClients::next_turn`].
    pub fn waits(&mut self, tenant: TenantId, connection: usize) -> bool {
        let Some(clients) = self.tenants.get_mut(tenant.index()) else { return false };
        let waits = clients.is_capped() || !clients.waiting.is_empty();
        if waits && !clients.waiting.contains(&connection) {
            clients.waiting.push_back(connection);
        }
        waits
    }

    /// A connection whose turn it is, if an export's caps let it do something.
    pub fn next_turn(&mut self, now_ns: u64) -> Option<usize> {
        let due = |clients: &&mut Clients| clients.due_ns() <= now_ns;
        self.tenants.iter_mut().filter(due).find_map(|clients| clients.waiting.pop_front())
    }

    /// When the next turn may come, if a connection waits.
    pub fn next_due_ns(&self) -> Option<u64> {
        let waiting = self.tenants.iter().filter(|clients| !clients.waiting.is_empty());
        waiting.map(Clients::due_ns).min()
    }

    /// Whether a timer for this time is to begin: none is under way that ends as early. It counts
    /// as begun.
    pub fn begin_timer(&mut self, at_ns: u64) -> bool {
        self.timer.begin(at_ns)
    }

    /// A timer is over.
    pub fn end_timer(&mut self, now_ns: u64) {
        self.timer.end(now_ns);
    }

    /// A connection waits no more: it ends, and its number may be another one's from then on.
    pub fn leave(&mut self, connection: usize) {
        for clients in &mut self.tenants {
            clients.waiting.retain(|waiting| *waiting != connection);
        }
    }

    /// A request with so many bytes of reads or writes begins.
    pub fn charge(&mut self, tenant: TenantId, bytes: u64, now_ns: u64) {
        let Some(clients) = self.tenants.get_mut(tenant.index()) else { return };
        clients.requests.iter_mut().for_each(|pace| pace.charge(1, now_ns));
        clients.bytes.iter_mut().for_each(|pace| pace.charge(bytes, now_ns));
        // Others that wait, or the same client's next request, have to.
        clients.waits += u64::from(clients.is_capped() && clients.due_ns() > now_ns);
    }

    /// How often what a client may do was exhausted.
    pub fn exhausted(&self, tenant: TenantId) -> u64 {
        self.tenants.get(tenant.index()).map_or(0, |clients| clients.waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_a_capped_export_take_turns() {
        let mut capped = CappedClients::new(2);
        assert!(!capped.waits(TenantId(0), 5), "no caps");
        capped.set(TenantId(1), Caps { requests: Some(10), bytes: None });
        for connection in [7, 3, 7] {
            assert!(capped.waits(TenantId(1), connection));
        }
        let now_ns = 1_000_000_000;
        assert_eq!((capped.next_due_ns(), capped.next_turn(now_ns)), (Some(0), Some(7)));
        capped.charge(TenantId(1), 4096, now_ns);
        assert!(capped.waits(TenantId(1), 7));
        assert_eq!(capped.next_turn(now_ns), Some(3), "one request is a burst of 100 ms");
        capped.charge(TenantId(1), 4096, now_ns);
        assert_eq!((capped.next_turn(now_ns), capped.next_due_ns()), (None, Some(1_100_000_000)));
        assert_eq!((capped.exhausted(TenantId(0)), capped.exhausted(TenantId(1))), (0, 1));
        assert_eq!(
            [1_100_000_000, 1_200_000_000].map(|at_ns| capped.begin_timer(at_ns)),
            [true, false]
        );
        capped.end_timer(1_100_000_000);
        assert!(capped.begin_timer(1_200_000_000));
        assert_eq!(capped.next_turn(1_100_000_000), Some(7));
        capped.set(TenantId(1), Caps::default());
        assert!(!capped.waits(TenantId(1), 7));
    }

    #[test]
    fn a_connection_that_ends_leaves_no_turn_to_another_of_its_number() {
        let mut capped = CappedClients::new(2);
        capped.set(TenantId(1), Caps { requests: Some(10), bytes: None });
        for connection in [4, 7, 3] {
            assert!(capped.waits(TenantId(1), connection));
        }
        capped.leave(7);
        let now_ns = 1_000_000_000;
        let turns = [(); 3].map(|()| capped.next_turn(now_ns));
        assert_eq!(turns, [Some(4), Some(3), None]);
    }
}
