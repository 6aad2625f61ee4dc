//! `on-demand`: isolated buckets of whole channels and one shared pool (Algorithm 1).
//!
//! For: how many whole channels each tenant gets, and how many blocks of a pool that all share,
//! while tenants come and go. Must never know: tenants' blocks, the machine. Units: channels,
//! blocks. Source: Wang et al. (oc-cache), III-B. Differences, where the paper is silent: requests
//! that come when no channel is free any more go on to what is left of the pool instead of being
//! passed over; its last branch never has to enlarge the pool, because line 9 has refused what
//! would not fit (asserted). Those who come later are granted from what is free then, and nobody
//! who is there gives anything up for them. Whoever leaves gives its channels back at once; the
//! pool keeps its channels, which hold blocks of all its tenants, until the last of these has left,
//! so that nothing has to be moved. Who was refused asks again when others leave. The smallest
//! channel counts for all. With `lend`, which is ours, the pool's blocks are spread over channels
//! that nobody has, too: it promises no more for it, and whoever comes gets them.

use crate::dedicated::Free;
use crate::entry::{Entry, Need, Registered};
use crate::{Channels, Layout, Map, Refusal, Share, TenantView};
use cachewright_types::declare;

declare! {
    /// Settings of `on-demand`.
    pub struct OnDemandSettings {
        /// share of a channel (W_u) from which what is left of a need gets a channel of its own
        watermark: f64 = 0.5, "ratio", 0.0 ..= 1.0;
        /// whether the pool also uses channels without a tenant, until a tenant needs them
        lend: bool = false, "";
    }
}

/// What a tenant asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// S_r: blocks that it makes use of.
    pub blocks: u32,
    /// R_e: its miss ratio with them, 0 to 1.
    pub miss_ratio: f64,
}

/// What a tenant gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Channels of its own.
    pub bucket_channels: u32,
    /// Blocks of the shared pool.
    pub shared_blocks: u32,
}

/// What is free and what the pool has promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Blocks of a channel (S_c); at least 1.
    pub channel_blocks: u32,
    /// Channels that nobody has (N_free).
    pub free_channels: u32,
    /// Channels of the pool (N_shared).
    pub shared_channels: u32,
    /// Blocks of the pool that are promised (S_shared).
    pub shared_blocks: u64,
}

/// What came of all demands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// Of each tenant; the error says how many more channels it would have needed.
    pub grants: Vec<Result<Grant, u32>>,
    /// Channels of the pool.
    pub shared_channels: u32,
    /// Channels that nobody has.
    pub free_channels: u32,
}

/// Divides `free_channels` of `channel_blocks` blocks each among tenants that come together.
pub fn allocate(
    demands: &[Demand],
    free_channels: u32,
    channel_blocks: u32,
    watermark: f64,
) -> Allocation {
    let channel_blocks = channel_blocks.max(1);
    let mut standing =
        Standing { channel_blocks, free_channels, shared_channels: 0, shared_blocks: 0 };
    let mut grants = vec![Ok(Grant::default()); demands.len()];
    for tenant in in_order(demands) {
        grants[tenant] = standing.grant(demands[tenant].blocks, watermark);
    }
    let Standing { shared_channels, free_channels, .. } = standing;
    Allocation { grants, shared_channels, free_channels }
}

/// Who gains most per block (R_m) comes first, the earlier of equals.
fn in_order(demands: &[Demand]) -> Vec<usize> {
    let gain = |at: usize| (1.0 - demands[at].miss_ratio) / f64::from(demands[at].blocks.max(1));
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|a, b| gain(*b).total_cmp(&gain(*a)).then(a.cmp(b)));
    order
}

impl Standing {
    /// Grants a need, if there is room for it. What is left over of it after whole channels goes to
    /// the pool if it is below `watermark` of a channel, else it gets one channel more. Errors: the
    /// channels that are missing.
    pub fn grant(&mut self, need_blocks: u32, watermark: f64) -> Result<Grant, u32> {
        let (need, size) = (u64::from(need_blocks), u64::from(self.channel_blocks));
        let free = u64::from(self.free_channels);
        let pool = u64::from(self.shared_channels);
        let room = (pool + free) * size - self.shared_blocks;
        if need > room {
            return Err((need - room).div_ceil(size) as u32);
        }
        let (bucket, left) = if need.div_ceil(size) <= free {
            let left = need % size;
            let pooled = (left as f64) < watermark * size as f64;
            if pooled { (need / size, left) } else { (need / size + 1, 0) }
        } else {
            (free, need - free * size)
        };
        self.shared_blocks += left;
        let grown = self.shared_blocks.div_ceil(size).saturating_sub(pool);
        debug_assert!(bucket + grown <= free, "what line 9 lets pass fits");
        self.free_channels = free.saturating_sub(bucket + grown) as u32;
        self.shared_channels += grown as u32;
        Ok(Grant { bucket_channels: bucket as u32, shared_blocks: left as u32 })
    }
}

/// What a tenant has.
#[derive(Clone, Debug)]
struct Held {
    bucket: Vec<u32>,
    shared_blocks: u32,
}

/// Buckets and a pool, for those who are there.
#[derive(Clone, Debug)]
pub struct OnDemand {
    watermark: f64,
    lend: bool,
    free: Option<Free>,
    /// Channels of the pool, without lent ones.
    pool: Vec<u32>,
    /// By tenant.
    held: Vec<Option<Held>>,
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
    /// Takes back what those had who have left.
    fn take_back(&mut self, tenants: &[TenantView], free: &mut Free) {
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

    /// Grants what those need who have come.
    fn grant(&mut self, tenants: &[TenantView], free: &mut Free, channel_blocks: u32) {
        let new = |at: &usize| !tenants[*at].absent && self.held[*at].is_none();
        let new: Vec<usize> = (0..tenants.len()).filter(new).collect();
        let demand = |at: &usize| {
            let TenantView { need_blocks: blocks, miss_ratio, .. } = tenants[*at];
            Demand { blocks, miss_ratio }
        };
        let demands: Vec<Demand> = new.iter().map(demand).collect();
        let mut standing = Standing {
            channel_blocks,
            free_channels: free.count(),
            shared_channels: self.pool.len() as u32,
            shared_blocks: self.promised(),
        };
        self.refused.clear();
        for at in in_order(&demands) {
            match standing.grant(demands[at].blocks, self.watermark) {
                Ok(Grant { bucket_channels, shared_blocks }) => {
                    let bucket = free.lowest(bucket_channels);
                    self.held[new[at]] = Some(Held { bucket, shared_blocks });
                    let grown = standing.shared_channels - self.pool.len() as u32;
                    self.pool.extend(free.lowest(grown));
                }
                Err(missing) => self.refused.push((new[at], missing)),
            }
        }
        self.refused.sort_unstable();
        debug_assert_eq!(free.count(), standing.free_channels);
    }

    /// The bucket of each tenant, in order, and the pool after them. All have a share of the pool,
    /// of no blocks where they need none, so that it is common and nobody's own.
    fn map(&self, channels: &Channels, free: &Free) -> Map {
        let bucket = |held: &Option<Held>| held.as_ref().map_or(Vec::new(), |h| h.bucket.clone());
        let mut pools: Vec<Vec<u32>> = self.held.iter().map(bucket).collect();
        let shares = |(tenant, held): (usize, &Option<Held>)| {
            let own = Share { pool: tenant, blocks: crate::map::held(&pools[tenant], channels) };
            let blocks = held.as_ref().map_or(0, |held| held.shared_blocks);
            let common = Share { pool: self.held.len(), blocks };
            let own = Some(own).filter(|own| own.blocks > 0);
            own.into_iter().chain([common]).collect()
        };
        let tenants = self.held.iter().enumerate().map(shares).collect();
        let lends = self.lend && !self.pool.is_empty();
        let lent: Vec<u32> = free.all().filter(|_| lends).collect();
        pools.push([self.pool.as_slice(), &lent].concat());
        Map { pools, tenants, lent }
    }
}

impl Layout for OnDemand {
    fn lay_out(&mut self, tenants: &[TenantView], channels: &Channels) -> Result<Map, Refusal> {
        let all = Free(vec![true; channels.blocks.len()]);
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
        let gain = |at: usize| 0.9 - 0.01 * at as f64;
        let demand = |(at, blocks): (usize, &u32)| Demand {
            blocks: *blocks,
            // The gain per block falls from one to the next.
            miss_ratio: 1.0 - gain(at) * f64::from(*blocks) / 10_000.0,
        };
        let demands: Vec<Demand> = needs.iter().enumerate().map(demand).collect();
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
    fn who_comes_when_channels_run_out_takes_all_and_the_rest_from_the_pool() {
        let found = allocated(&[20, 240], 3, 0.5);
        assert_eq!(found.grants, [grant(0, 20), grant(2, 40)]);
        assert_eq!((found.shared_channels, found.free_channels), (1, 0));
    }

    /// Lines 9 and 10: 2 channels and 80 blocks are left; 290 need one channel more.
    #[test]
    fn who_does_not_fit_at_all_is_told_what_is_missing() {
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

    /// Four of six channels are free beside A's two and the pool's one; B takes two of the three
    /// that were lent. Without a pool nothing is lent.
    #[test]
    fn free_channels_are_lent_to_the_pool_until_somebody_comes() {
        let mut layout = OnDemand::new(&OnDemandSettings { lend: true, ..Default::default() });
        assert_eq!(laid_out(&mut layout, &[230, 0]).0, [vec![0, 1], vec![], vec![2, 3, 4, 5]]);
        assert_eq!(laid_out(&mut layout, &[230, 200]).0, [vec![0, 1], vec![3, 4], vec![2, 5]]);
        assert_eq!(laid_out(&mut layout, &[0, 200]).0, [vec![], vec![3, 4], vec![]]);
    }

    fn laid_out(layout: &mut OnDemand, needs: &[u32]) -> (Vec<Vec<u32>>, Vec<u32>) {
        let view = |need: &u32| TenantView {
            need_blocks: *need,
            absent: *need == 0,
            ..TenantView::default()
        };
        let views: Vec<TenantView> = needs.iter().map(view).collect();
        let channels = Channels { blocks: vec![100; 6], total_blocks: 600 };
        let map = layout.lay_out(&views, &channels).unwrap();
        assert_eq!(map.audit(&views, &channels), Ok(()));
        let common = |tenant: usize| {
            let shares = map.tenants[tenant].iter().filter(|share| share.pool == needs.len());
            shares.map(|share| share.blocks).sum()
        };
        let shared = (0..needs.len()).map(common).collect();
        (map.pools, shared)
    }

    /// Six channels: A has two and 30 of the pool, B one; C comes for two, D for what is not there
    /// until A leaves; the pool goes when the last who uses it has left.
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
        let demand = |blocks, miss_ratio| Demand { blocks, miss_ratio };
        let found = allocate(&[demand(100, 0.9), demand(100, 0.1)], 1, 100, 0.5);
        assert_eq!(found.grants, [Err(1), grant(1, 0)], "the second gains more");
        assert_eq!(allocate(&[], 3, 0, 0.5).free_channels, 3);
    }
}
