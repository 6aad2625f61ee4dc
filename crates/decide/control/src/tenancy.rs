//! Tenants that come and go, and the channels that a layout gives to those that are active.
//!
//! When a tenant has left, its quota is 0: its blocks leave the cache, dirty ones by way of its
//! backing device, and their slots are given out again as they come free. A tenant that finds no
//! free channels has no cache, and is considered again whenever a tenant comes or goes. Nothing is
//! known of the future: the partitioner estimates a tenant's need when it comes. Units: nanoseconds
//! on the decision clock, blocks, channels.

use crate::control::Control;
use crate::decider::standings;
use cachewright_cache::{Engine, Left};
use cachewright_partition::Requirement;
use cachewright_partition::layout::{ChannelLayout, ChannelMap, ChannelSizes, LayoutTenant};
use cachewright_policy::{Policy, RegionSizes};
use cachewright_types::TenantId;

/// What happened to a tenant.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It has these channels to itself and so many blocks of the pool.
    Granted {
        /// Channels (or groups of them) of its own.
        channels: Vec<u32>,
        /// Blocks that they hold.
        bucket_blocks: u32,
        /// Blocks of the pool.
        shared_blocks: u32,
    },
    /// It has no channels; so many are missing.
    Refused(u32),
    /// It has left.
    Left,
}

/// A change, when it came, and what holds from then on.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When it came.
    pub time_ns: u64,
    /// The tenant.
    pub tenant: usize,
    /// What it makes use of.
    pub required: Requirement,
    /// What happened.
    pub change: Change,
    /// Blocks that all tenants with channels make use of.
    pub requested_blocks: u64,
    /// Blocks of all channels that have an owner, the pool's included.
    pub allocated_blocks: u64,
}

/// What a tenant has of the channels.
#[derive(Clone, Copy, Debug, Default)]
struct ChannelGrant {
    granted: bool,
    refused: bool,
    required: Requirement,
}

/// Which tenants are there, and the map they follow.
pub struct ChannelTenancy {
    layout: Box<dyn ChannelLayout>,
    channels: ChannelSizes,
    spare_blocks: u32,
    presence: Presence,
    grants: Vec<ChannelGrant>,
    map: ChannelMap,
    events: Vec<Event>,
}

impl ChannelTenancy {
    /// A layout that follows tenants, each with its start and whether it leaves when it is done.
    /// For those that start at 0 it has decided by `map` and what they make use of.
    pub fn new(
        layout: Box<dyn ChannelLayout>,
        map: ChannelMap,
        channels: ChannelSizes,
        spare_blocks: u32,
        tenants: &[(u64, bool)],
        required: &[Requirement],
    ) -> ChannelTenancy {
        let mut tenancy = ChannelTenancy {
            layout,
            channels,
            spare_blocks,
            presence: Presence::new(tenants),
            grants: vec![ChannelGrant::default(); tenants.len()],
            map,
            events: Vec::new(),
        };
        tenancy.note(required, 0);
        tenancy
    }

    /// Which tenants are not there.
    pub fn absent(&self) -> Vec<bool> {
        self.presence.absent()
    }

    /// The tenants that are present, to be kept up to date.
    pub fn presence_mut(&mut self) -> &mut Presence {
        &mut self.presence
    }

    /// Divides the cache among the tenants that are present: a tenant that left loses its blocks,
    /// one that came gets what is free. Blocks that leave are reported to `left`.
    pub fn redivide<P: Policy>(
        &mut self,
        now_ns: u64,
        control: &mut Control,
        engine: &mut Engine<P>,
        left: Left<'_>,
    ) {
        let absent = self.absent();
        control.set_absent(absent.clone());
        let Some(quotas) = control.redivide(&standings(engine, control.tenants())) else { return };
        let required = control.required().to_vec();
        let view = |(need, absent): (&Requirement, bool)| LayoutTenant {
            weight: 1.0,
            quota_blocks: need.blocks,
            need_blocks: need.blocks.saturating_add(self.spare_blocks),
            miss_ratio: need.miss_ratio,
            absent,
            wish: None,
        };
        let views: Vec<LayoutTenant> = required.iter().zip(absent).map(view).collect();
        let Ok(map) = self.layout.lay_out(&views, &self.channels) else { return };
        debug_assert_eq!(map.audit(&views, &self.channels), Ok(()));
        self.map = map;
        self.note(&required, now_ns);
        let quotas = control.rebound(self.limits(), quotas);
        let kept = engine.set_quotas(&quotas, left);
        debug_assert!(kept, "a layout of tenants has a pool for each");
        self.divide_regions(engine, left);
    }

    /// Divides each tenant's quota between its own region and the shared one, in proportion to its
    /// channels.
    pub fn divide_regions<P: Policy>(&self, engine: &mut Engine<P>, left: Left<'_>) {
        for tenant in 0..self.grants.len() {
            let quota = engine.quota(TenantId(tenant as u16));
            let (own, common) = self.blocks(tenant);
            let all = u64::from(own) + u64::from(common);
            let share = u64::from(quota) * u64::from(own);
            let private_blocks = share.checked_div(all).unwrap_or(0) as u32;
            let sizes = RegionSizes { private_blocks, shared_blocks: quota - private_blocks };
            engine.divide_regions(tenant, sizes, left);
        }
    }

    /// Blocks of a tenant's own channels and of its share of the pool.
    fn blocks(&self, tenant: usize) -> (u32, u32) {
        let shares = self.map.tenants.get(tenant).map_or(&[][..], Vec::as_slice);
        let sum = |own: bool| {
            let here = shares.iter().filter(|share| self.map.is_exclusive(share.pool) == own);
            here.map(|share| share.blocks).sum()
        };
        (sum(true), sum(false))
    }

    /// The largest quota of each tenant, beside the spare blocks.
    fn limits(&self) -> Vec<u32> {
        let limit = |tenant| self.map.limit_blocks(tenant).saturating_sub(self.spare_blocks);
        (0..self.grants.len()).map(limit).collect()
    }

    /// Notes what has changed.
    fn note(&mut self, required: &[Requirement], time_ns: u64) {
        let refused = self.layout.refused();
        let mut changes = Vec::new();
        for tenant in 0..self.grants.len() {
            let (bucket_blocks, shared_blocks) = self.blocks(tenant);
            let (state, grant) = (self.presence.state(tenant), &mut self.grants[tenant]);
            let missing = refused.iter().find(|pair| pair.0 == tenant).map(|pair| pair.1);
            if state == PresenceState::Here && !grant.granted {
                grant.required = required.get(tenant).copied().unwrap_or_default();
            }
            let change = match (state, missing) {
                (PresenceState::Here, Some(missing)) if !grant.refused => Change::Refused(missing),
                (PresenceState::Here, None) if !grant.granted => {
                    let shares = self.map.tenants[tenant].iter();
                    let own = shares.filter(|share| self.map.is_exclusive(share.pool));
                    let channels =
                        own.flat_map(|share| self.map.pools[share.pool].clone()).collect();
                    Change::Granted { channels, bucket_blocks, shared_blocks }
                }
                (PresenceState::Gone, _) if grant.granted || grant.refused => Change::Left,
                _ => continue,
            };
            grant.granted = matches!(change, Change::Granted { .. });
            grant.refused = matches!(change, Change::Refused(_));
            changes.push((tenant, change));
        }
        let (requested_blocks, allocated_blocks) = self.totals();
        self.events.extend(changes.into_iter().map(|(tenant, change)| Event {
            time_ns,
            tenant,
            required: self.grants[tenant].required,
            change,
            requested_blocks,
            allocated_blocks,
        }));
    }

    /// Blocks requested by tenants with channels, and blocks of these channels; lent ones have no
    /// owner.
    fn totals(&self) -> (u64, u64) {
        let granted = self.grants.iter().filter(|grant| grant.granted);
        let requested = granted.map(|grant| u64::from(grant.required.blocks)).sum();
        let held = |channel: &u32| self.channels.blocks.get(*channel as usize).copied();
        let had =
            self.map.pools.iter().flatten().filter(|channel| !self.map.lent.contains(channel));
        let channels = had.filter_map(held);
        (requested, channels.map(u64::from).sum())
    }

    /// The map that holds now.
    pub fn map(&self) -> &ChannelMap {
        &self.map
    }

    /// What has happened so far, the earliest first.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

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
struct TenantPresence {
    start_ns: u64,
    /// Whether it leaves when it is done.
    leaves: bool,
    state: PresenceState,
    /// Requests sent and not answered.
    under_way: u64,
    /// Requests still to be sent, where that is known.
    unsent: Option<u64>,
}

/// Which tenants are active. A tenant comes at its start; one that has an end leaves when it sends
/// nothing more and all its requests are answered.
#[derive(Clone, Debug)]
pub struct Presence(Vec<TenantPresence>);

impl Presence {
    /// Tenants by when they begin and whether they leave when they are done.
    pub fn new(tenants: &[(u64, bool)]) -> Presence {
        let presence = |&(start_ns, leaves): &(u64, bool)| {
            let state = if start_ns == 0 { PresenceState::Here } else { PresenceState::Coming };
            TenantPresence { start_ns, leaves, state, under_way: 0, unsent: None }
        };
        Presence(tenants.iter().map(presence).collect())
    }

    /// How many requests each tenant will send, where that is known beforehand.
    pub fn expect_requests(&mut self, requests: impl IntoIterator<Item = u64>) {
        for (presence, requests) in self.0.iter_mut().zip(requests) {
            presence.unsent = Some(requests);
        }
    }

    /// A tenant sends a request.
    pub fn sent(&mut self, tenant: TenantId) {
        let presence = &mut self.0[tenant.index()];
        presence.under_way += 1;
        presence.unsent = presence.unsent.map(|unsent| unsent.saturating_sub(1));
    }

    /// A tenant's request is answered.
    pub fn answered(&mut self, tenant: TenantId) {
        self.0[tenant.index()].under_way -= 1;
    }

    /// Admits the tenants whose start is at or before `now_ns`; returns whether there is one.
    pub fn admit(&mut self, now_ns: u64) -> bool {
        let coming = |presence: &&mut TenantPresence| {
            presence.state == PresenceState::Coming && presence.start_ns <= now_ns
        };
        let mut any = false;
        for presence in self.0.iter_mut().filter(coming) {
            presence.state = PresenceState::Here;
            any = true;
        }
        any
    }

    /// Retires the tenants that are done; `done` reports which send nothing more. Returns whether
    /// there is one.
    pub fn retire(&mut self, done: impl Fn(usize) -> bool) -> bool {
        let mut any = false;
        for (tenant, presence) in self.0.iter_mut().enumerate() {
            let idle = presence.under_way == 0 && presence.unsent.unwrap_or(0) == 0;
            if presence.leaves && presence.state == PresenceState::Here && idle && done(tenant) {
                presence.state = PresenceState::Gone;
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
        self.0.iter().map(|presence| presence.state != PresenceState::Here).collect()
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
