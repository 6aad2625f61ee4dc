//! Which tenants are there.
//!
//! For: dividing a cache among the tenants of the moment. Must never know: what is divided, when
//! requests are sent. Units: nanoseconds on the decision clock. A tenant comes at its start; one
//! that has an end leaves when it sends nothing more and all its requests are answered.

use cachewright_types::TenantId;

/// Where a tenant stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresenceState {
    /// It has not begun.
    Coming,
    /// It is there.
    Here,
    /// It has left.
    Gone,
}

#[derive(Clone, Copy, Debug)]
struct TenantStay {
    start_ns: u64,
    /// Whether it leaves when it is done.
    leaves: bool,
    state: PresenceState,
    /// Requests sent and not answered.
    under_way: u64,
    /// Requests still to be sent, where that is known.
    unsent: Option<u64>,
}

/// The stay of each tenant.
#[derive(Clone, Debug)]
pub struct Presence(Vec<TenantStay>);

impl Presence {
    /// Tenants by when they begin and whether they leave when they are done.
    pub fn new(tenants: &[(u64, bool)]) -> Presence {
        let stay = |&(start_ns, leaves): &(u64, bool)| {
            let state = if start_ns == 0 { PresenceState::Here } else { PresenceState::Coming };
            TenantStay { start_ns, leaves, state, under_way: 0, unsent: None }
        };
        Presence(tenants.iter().map(stay).collect())
    }

    /// How many requests each tenant will send, where that is known beforehand.
    pub fn expect_requests(&mut self, requests: impl IntoIterator<Item = u64>) {
        for (stay, requests) in self.0.iter_mut().zip(requests) {
            stay.unsent = Some(requests);
        }
    }

    /// A tenant sends a request.
    pub fn sent(&mut self, tenant: TenantId) {
        let stay = &mut self.0[tenant.index()];
        stay.under_way += 1;
        stay.unsent = stay.unsent.map(|unsent| unsent.saturating_sub(1));
    }

    /// A tenant's request is answered.
    pub fn answered(&mut self, tenant: TenantId) {
        self.0[tenant.index()].under_way -= 1;
    }

    /// Admits the tenants whose start is at or before `now_ns`; returns whether there is one.
    pub fn admit(&mut self, now_ns: u64) -> bool {
        let coming =
            |stay: &&mut TenantStay| stay.state == PresenceState::Coming && stay.start_ns <= now_ns;
        let mut any = false;
        for stay in self.0.iter_mut().filter(coming) {
            stay.state = PresenceState::Here;
            any = true;
        }
        any
    }

    /// Retires the tenants that are done; `done` reports which send nothing more. Returns whether
    /// there is one.
    pub fn retire(&mut self, done: impl Fn(usize) -> bool) -> bool {
        let mut any = false;
        for (tenant, stay) in self.0.iter_mut().enumerate() {
            let idle = stay.under_way == 0 && stay.unsent.unwrap_or(0) == 0;
            if stay.leaves && stay.state == PresenceState::Here && idle && done(tenant) {
                stay.state = PresenceState::Gone;
                any = true;
            }
        }
        any
    }

    /// Where a tenant stands.
    pub fn state(&self, tenant: usize) -> PresenceState {
        self.0[tenant].state
    }

    /// Which tenants are not there.
    pub fn absent(&self) -> Vec<bool> {
        self.0.iter().map(|stay| stay.state != PresenceState::Here).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_leaves_when_it_is_done_and_has_all_its_answers() {
        let mut presence = Presence::new(&[(0, false), (5, true)]);
        assert_eq!(presence.absent(), [false, true]);
        assert!(!presence.admit(4) && presence.admit(5) && !presence.admit(6));
        presence.expect_requests([9, 1]);
        assert!(!presence.retire(|_| true), "a request is still to be sent");
        presence.sent(TenantId(1));
        assert!(!presence.retire(|_| true), "a request is under way");
        presence.answered(TenantId(1));
        assert!(!presence.retire(|tenant| tenant == 0) && presence.retire(|_| true));
        assert_eq!(
            [0, 1].map(|tenant| presence.state(tenant)),
            [PresenceState::Here, PresenceState::Gone]
        );
        assert_eq!(presence.absent(), [false, true]);
    }
}
