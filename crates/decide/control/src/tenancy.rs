//! Tenants that come and go: which of them has which channels.
//!
//! For: layouts that give channels to the tenants that are present ([`Presence`]). Must never know:
//! how a layout decides, devices, stack files. Units: nanoseconds on the decision clock, blocks,
//! channels. When a tenant has left, its quota is 0: its blocks leave the cache, dirty ones by way
//! of its backing device, and their slots are given out again as they come free. A tenant that
//! finds no free channels has no cache, and is considered again whenever a tenant comes or goes.
//! Nothing is known of the future: the partitioner estimates a tenant's need when it comes.

use crate::control::Control;
use crate::engine_division::standings;
use crate::presence::{Presence, PresenceState};
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
        (layout, map): (Box<dyn ChannelLayout>, ChannelMap),
        channels: ChannelSizes,
        spare_blocks: u32,
        tenants: &[(u64, bool)],
        required: &[Requirement],
    ) -> ChannelTenancy {
        let (presence, grants) =
            (Presence::new(tenants), vec![ChannelGrant::default(); tenants.len()]);
        let events = Vec::new();
        let mut tenancy =
            ChannelTenancy { layout, channels, spare_blocks, presence, grants, map, events };
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
