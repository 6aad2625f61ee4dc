//! `on-demand`: isolated buckets of whole channels and one shared pool (Algorithm 1).
//!
//! For: the whole channels of each tenant, and its blocks of a shared pool, while tenants start and
//! leave. Must never know: tenants' blocks, the machine. Units: channels, blocks. Source: Wang et
//! al. (oc-cache), III-B.
//!
//! Choices where the paper is silent: requests without a free channel get blocks of the pool
//! instead of being skipped. The last branch never enlarges the pool, because line 9 has refused
//! requests that do not fit (asserted). Later tenants are granted from the channels then free;
//! present tenants give nothing up for them. A tenant that leaves returns its channels at once. The
//! pool keeps its channels until its last tenant has left, so that no block moves. A refused tenant
//! is considered again when others leave. The smallest channel counts for all.
//!
//! With `lend`, which is ours, the pool's blocks also use free channels. The pool promises no more
//! blocks for them, and a later tenant gets them back.

use super::{Entry, Need, Registered};
use crate::layout::dedicated::FreeChannels;
use crate::layout::{ChannelLayout, ChannelMap, ChannelSizes, LayoutTenant, PoolShare, Refusal};
use cachewright_types::declare;

declare! {
    /// Settings of `on-demand`.
    pub struct OnDemandSettings {
        /// share of a channel (W_u) from which the rest of a need gets its own channel
        watermark: f64 = 0.5, "ratio", 0.0 ..= 1.0;
        /// whether the pool also uses free channels, until a tenant needs them
        lend: bool = false, "";
    }
}

/// The requirement of a tenant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelDemand {
    /// Blocks that it can use (S_r).
    pub blocks: u32,
    /// Miss ratio with these blocks, 0 to 1 (R_e).
    pub miss_ratio: f64,
}

/// The grant of a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Its own channels.
    pub bucket_channels: u32,
    /// Blocks of the shared pool.
    pub shared_blocks: u32,
}

/// Free channels, and the promises of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolState {
    /// Blocks of a channel (S_c); at least 1.
    pub channel_blocks: u32,
    /// Free channels (N_free).
    pub free_channels: u32,
    /// Channels of the pool (N_shared).
    pub shared_channels: u32,
    /// Blocks of the pool that are promised (S_shared).
    pub shared_blocks: u64,
}

/// The grants of all demands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// Of each tenant; the error is the number of channels it lacks.
    pub grants: Vec<Result<Grant, u32>>,
    /// Channels of the pool.
    pub shared_channels: u32,
    /// Free channels.
    pub free_channels: u32,
}

/// Divides `free_channels` of `channel_blocks` blocks each among tenants that start together.
pub fn allocate(
    demands: &[ChannelDemand],
    free_channels: u32,
    channel_blocks: u32,
    watermark: f64,
) -> Allocation {
    let channel_blocks = channel_blocks.max(1);
    let mut standing =
        PoolState { channel_blocks, free_channels, shared_channels: 0, shared_blocks: 0 };
    let mut grants = vec![Ok(Grant::default()); demands.len()];
    for tenant in in_order(demands) {
        grants[tenant] = standing.grant(demands[tenant].blocks, watermark);
    }
    let PoolState { shared_channels, free_channels, .. } = standing;
    Allocation { grants, shared_channels, free_channels }
}

/// Tenants by gain per block (R_m), the largest first, the earlier among equals.
fn in_order(demands: &[ChannelDemand]) -> Vec<usize> {
    let gain = |tenant: usize| {
        (1.0 - demands[tenant].miss_ratio) / f64::from(demands[tenant].blocks.max(1))
    };
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|a, b| gain(*b).total_cmp(&gain(*a)).then(a.cmp(b)));
    order
}

impl PoolState {
    /// Grants a need if the free blocks suffice. The rest after whole channels goes to the pool if
    /// it is below `watermark` of a channel; otherwise it gets one more channel. Errors: the number
    /// of missing channels.
    pub fn grant(&mut self, need_blocks: u32, watermark: f64) -> Result<Grant, u32> {
        let (need, size) = (u64::from(need_blocks), u64::from(self.channel_blocks));
        let free = u64::from(self.free_channels);
        let pool = u64::from(self.shared_channels);
        let free_blocks = (pool + free) * size - self.shared_blocks;
        if need > free_blocks {
            return Err((need - free_blocks).div_ceil(size) as u32);
        }
        let (bucket, remaining) = if need.div_ceil(size) <= free {
            let remaining = need % size;
            let pooled = (remaining as f64) < watermark * size as f64;
            if pooled { (need / size, remaining) } else { (need / size + 1, 0) }
        } else {
            (free, need - free * size)
        };
        self.shared_blocks += remaining;
        let grown = self.shared_blocks.div_ceil(size).saturating_sub(pool);
        debug_assert!(bucket + grown <= free, "line 9 refuses needs that do not fit");
        self.free_channels = free.saturating_sub(bucket + grown) as u32;
        self.shared_channels += grown as u32;
        Ok(Grant { bucket_channels: bucket as u32, shared_blocks: remaining as u32 })
    }
}

/// The channels and pool blocks of a tenant.
#[derive(Clone, Debug)]
struct TenantChannels {
    bucket: Vec<u32>,
    shared_blocks: u32,
}

/// Buckets and a pool for the tenants present.
#[derive(Clone, Debug)]
pub struct OnDemand {
    watermark: f64,
    lend: bool,
    free: Option<FreeChannels>,
    /// Channels of the pool, without lent ones.
    pool: Vec<u32>,
    /// By tenant.
    held: Vec<Option<TenantChannels>>,
    refused: Vec<(usize, u32)>,
}

impl Registered for OnDemand {
    type Settings = OnDemandSettings;
    const ENTRY: Entry = Entry {
        name: "on-demand",
        doc: "whole channels for each tenant, what is left of its need in a pool of all",
        source: "Wang et al. (oc-cache), III-B, Algorithm 1",
        needs: &[Need::Channels],
    };

    fn new(settings: &OnDemandSettings) -> OnDemand {
        let (pool, held, refused) = (Vec::new(), Vec::new(), Vec::new());
        let OnDemandSettings { watermark, lend } = *settings;
        OnDemand { watermark, lend, free: None, pool, held, refused }
    }
}

impl OnDemand {
    /// Frees the channels of tenants that have left.
    fn take_back(&mut self, tenants: &[LayoutTenant], free: &mut FreeChannels) {
        self.held.resize(tenants.len(), None);
        for (held, _) in self.held.iter_mut().zip(tenants).filter(|(_, tenant)| tenant.absent) {
            let bucket = held.take().map_or(Vec::new(), |held| held.bucket);
            bucket.iter().for_each(|channel| free.0[*channel as usize] = true);
        }
        if self.promised() == 0 {
            self.pool.drain(..).for_each(|channel| free.0[channel as usize] = true);
        }
    }

    /// Blocks of the pool that are promised.
    fn promised(&self) -> u64 {
        self.held.iter().flatten().map(|held| u64::from(held.shared_blocks)).sum()
    }

    /// Grants the needs of new tenants.
    fn grant(&mut self, tenants: &[LayoutTenant], free: &mut FreeChannels, channel_blocks: u32) {
        let is_new = |tenant: &usize| !tenants[*tenant].absent && self.held[*tenant].is_none();
        let newcomers: Vec<usize> = (0..tenants.len()).filter(is_new).collect();
        let demand = |tenant: &usize| {
            let LayoutTenant { need_blocks: blocks, miss_ratio, .. } = tenants[*tenant];
            ChannelDemand { blocks, miss_ratio }
        };
        let demands: Vec<ChannelDemand> = newcomers.iter().map(demand).collect();
        let mut standing = PoolState {
            channel_blocks,
            free_channels: free.count(),
            shared_channels: self.pool.len() as u32,
            shared_blocks: self.promised(),
        };
        self.refused.clear();
        for position in in_order(&demands) {
            match standing.grant(demands[position].blocks, self.watermark) {
                Ok(Grant { bucket_channels, shared_blocks }) => {
                    let bucket = free.lowest(bucket_channels);
                    self.held[newcomers[position]] = Some(TenantChannels { bucket, shared_blocks });
                    let grown = standing.shared_channels - self.pool.len() as u32;
                    self.pool.extend(free.lowest(grown));
                }
                Err(missing) => self.refused.push((newcomers[position], missing)),
            }
        }
        self.refused.sort_unstable();
        debug_assert_eq!(free.count(), standing.free_channels);
    }

    /// The bucket of each tenant, in order, and the pool after them. Every tenant has a share of
    /// the pool, of 0 blocks without a need, so that the pool is never exclusive.
    fn map(&self, channels: &ChannelSizes, free: &FreeChannels) -> ChannelMap {
        let bucket =
            |held: &Option<TenantChannels>| held.as_ref().map_or(Vec::new(), |h| h.bucket.clone());
        let mut pools: Vec<Vec<u32>> = self.held.iter().map(bucket).collect();
        let shares = |(tenant, held): (usize, &Option<TenantChannels>)| {
            let own = PoolShare { pool: tenant, blocks: super::held(&pools[tenant], channels) };
            let blocks = held.as_ref().map_or(0, |held| held.shared_blocks);
            let common = PoolShare { pool: self.held.len(), blocks };
            let own = Some(own).filter(|own| own.blocks > 0);
            own.into_iter().chain([common]).collect()
        };
        let tenants = self.held.iter().enumerate().map(shares).collect();
        let lends = self.lend && !self.pool.is_empty();
        let lent: Vec<u32> = free.all().filter(|_| lends).collect();
        pools.push([self.pool.as_slice(), &lent].concat());
        ChannelMap { pools, tenants, lent }
    }
}

impl ChannelLayout for OnDemand {
    fn lay_out(
        &mut self,
        tenants: &[LayoutTenant],
        channels: &ChannelSizes,
    ) -> Result<ChannelMap, Refusal> {
        let all = FreeChannels(vec![true; channels.blocks.len()]);
        let mut free = self.free.take().unwrap_or(all);
        let channel_blocks = channels.blocks.iter().copied().min().unwrap_or(0).max(1);
        self.take_back(tenants, &mut free);
        self.grant(tenants, &mut free, channel_blocks);
        let map = self.map(channels, &free);
        self.free = Some(free);
        Ok(map)
    }

    fn may_cut(&self) -> bool {
        true
    }

    fn follows_tenants(&self) -> bool {
        true
    }

    fn refused(&self) -> Vec<(usize, u32)> {
        self.refused.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs in the order in which they are looked at.
    fn allocated(needs: &[u32], free: u32, watermark: f64) -> Allocation {
        let gain = |tenant: usize| 0.9 - 0.01 * tenant as f64;
        let demand = |(tenant, blocks): (usize, &u32)| ChannelDemand {
            blocks: *blocks,
            // The gain per block falls from one to the next.
            miss_ratio: 1.0 - gain(tenant) * f64::from(*blocks) / 10_000.0,
        };
        let demands: Vec<ChannelDemand> = needs.iter().enumerate().map(demand).collect();
        allocate(&demands, free, 100, watermark)
    }

    fn grant(bucket_channels: u32, shared_blocks: u32) -> Result<Grant, u32> {
        Ok(Grant { bucket_channels, shared_blocks })
    }

    /// Lines 13 to 19: 2 channels and 30 blocks, below half a channel, of the pool.
    #[test]
    fn a_small_rest_goes_to_the_pool() {
        let found = allocated(&[230, 40], 8, 0.5);
        assert_eq!(found.grants, [grant(2, 30), grant(0, 40)]);
        assert_eq!((found.shared_channels, found.free_channels), (1, 5));
    }

    /// Lines 20 to 22: 60 blocks are above the watermark, 50 are not below it.
    #[test]
    fn a_large_rest_gets_a_channel_more() {
        let found = allocated(&[260, 150], 8, 0.5);
        assert_eq!(found.grants, [grant(3, 0), grant(2, 0)]);
        assert_eq!((found.shared_channels, found.free_channels), (0, 3));
    }

    /// Lines 23 to 28: 2 channels are left, and 80 blocks of the pool's one channel.
    #[test]
    fn a_tenant_gets_the_last_channels_and_the_rest_from_the_pool() {
        let found = allocated(&[20, 240], 3, 0.5);
        assert_eq!(found.grants, [grant(0, 20), grant(2, 40)]);
        assert_eq!((found.shared_channels, found.free_channels), (1, 0));
    }

    /// Lines 9 and 10: 2 channels and 80 blocks are left; 290 need one channel more.
    #[test]
    fn a_refusal_names_the_missing_channels() {
        let found = allocated(&[20, 290, 100], 3, 0.5);
        assert_eq!(found.grants, [grant(0, 20), Err(1), grant(1, 0)]);
        assert_eq!((found.shared_channels, found.free_channels), (1, 1));
        assert_eq!(allocated(&[500], 2, 0.5).grants, [Err(3)]);
    }

    /// The paper's loop ends here; the pool still has 60 blocks.
    #[test]
    fn without_free_channels_the_rest_of_the_pool_is_given_out() {
        let found = allocated(&[40, 100, 50, 20], 2, 0.5);
        assert_eq!(found.grants, [grant(0, 40), grant(1, 0), grant(0, 50), Err(1)]);
        assert_eq!((found.shared_channels, found.free_channels), (1, 0));
    }

    /// The second tenant gains more per block and comes first: 40 blocks of a pool of one channel.
    /// The first has two channels and 30 blocks of the pool, whose share comes last.
    #[test]
    fn shares_are_filled_from_the_bucket_to_the_pool_and_no_bucket_is_no_share() {
        let view = |need_blocks| LayoutTenant { need_blocks, ..LayoutTenant::default() };
        let channels = ChannelSizes { blocks: vec![100; 6], total_blocks: 600 };
        let mut layout = OnDemand::new(&OnDemandSettings::default());
        let map = layout.lay_out(&[view(230), view(40)], &channels).unwrap();
        assert_eq!(map.pools, [vec![1, 2], vec![], vec![0]]);
        let share = |pool, blocks| PoolShare { pool, blocks };
        assert_eq!(map.tenants, [vec![share(0, 200), share(2, 30)], vec![share(2, 40)]]);
    }

    /// Four of six channels are free beside A's two and the pool's one; B takes two of the three
    /// that were lent. Without a pool nothing is lent.
    #[test]
    fn free_channels_are_lent_to_the_pool_until_a_tenant_starts() {
        let mut layout = OnDemand::new(&OnDemandSettings { lend: true, ..Default::default() });
        assert_eq!(laid_out(&mut layout, &[230, 0]).0, [vec![0, 1], vec![], vec![2, 3, 4, 5]]);
        assert_eq!(laid_out(&mut layout, &[230, 200]).0, [vec![0, 1], vec![3, 4], vec![2, 5]]);
        assert_eq!(laid_out(&mut layout, &[0, 200]).0, [vec![], vec![3, 4], vec![]]);
    }

    fn laid_out(layout: &mut OnDemand, needs: &[u32]) -> (Vec<Vec<u32>>, Vec<u32>) {
        let view = |need: &u32| LayoutTenant {
            need_blocks: *need,
            absent: *need == 0,
            ..LayoutTenant::default()
        };
        let views: Vec<LayoutTenant> = needs.iter().map(view).collect();
        let channels = ChannelSizes { blocks: vec![100; 6], total_blocks: 600 };
        let map = layout.lay_out(&views, &channels).unwrap();
        assert_eq!(map.audit(&views, &channels), Ok(()));
        let common = |tenant: usize| {
            let shares = map.tenants[tenant].iter().filter(|share| share.pool == needs.len());
            shares.map(|share| share.blocks).sum()
        };
        let shared = (0..needs.len()).map(common).collect();
        (map.pools, shared)
    }

    /// Six channels: A has two and 30 blocks of the pool, B has one. C starts with two; D is
    /// refused until A leaves. The pool ends when its last tenant has left.
    #[test]
    fn tenants_come_and_go() {
        let mut layout = OnDemand::new(&OnDemandSettings::default());
        let (pools, shared) = laid_out(&mut layout, &[230, 100, 0, 0]);
        // B gains more per block and comes first.
        assert_eq!(pools, [vec![1, 2], vec![0], vec![], vec![], vec![3]]);
        assert_eq!(shared, [30, 0, 0, 0]);
        let (pools, shared) = laid_out(&mut layout, &[230, 100, 240, 0]);
        assert_eq!(pools, [vec![1, 2], vec![0], vec![4, 5], vec![], vec![3]]);
        assert_eq!((shared, layout.refused()), (vec![30, 0, 40, 0], vec![]));
        laid_out(&mut layout, &[230, 100, 240, 180]);
        assert_eq!(layout.refused(), [(3, 2)], "30 of the pool are left");
        let (pools, shared) = laid_out(&mut layout, &[0, 100, 240, 180]);
        assert_eq!(pools, [vec![], vec![0], vec![4, 5], vec![1, 2], vec![3]]);
        assert_eq!((shared, layout.refused()), (vec![0, 0, 40, 0], vec![]));
        let (pools, _) = laid_out(&mut layout, &[0, 100, 0, 180]);
        assert_eq!(pools, [vec![], vec![0], vec![], vec![1, 2], vec![]]);
        let (pools, _) = laid_out(&mut layout, &[300, 100, 0, 180]);
        assert_eq!(pools[0], [3, 4, 5], "the pool's channel is free again");
    }

    #[test]
    fn the_watermark_decides_and_gain_per_block_orders() {
        assert_eq!(allocated(&[210], 8, 0.0).grants, [grant(3, 0)], "never the pool");
        assert_eq!(allocated(&[290], 8, 1.0).grants, [grant(2, 90)], "always the pool");
        let demand = |blocks, miss_ratio| ChannelDemand { blocks, miss_ratio };
        let found = allocate(&[demand(100, 0.9), demand(100, 0.1)], 1, 100, 0.5);
        assert_eq!(found.grants, [Err(1), grant(1, 0)], "the second gains more");
        assert_eq!(allocate(&[], 3, 0, 0.5).free_channels, 3);
    }
}
