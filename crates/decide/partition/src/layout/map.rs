//! The decision of a layout: pools of channels, and each tenant's shares of them.
//!
//! For: the value that a machine carries out. Must never know: how it was decided. Units: channels,
//! blocks. A tenant's blocks go to the first of its shares with a free slot.

use crate::layout::{ChannelSizes, LayoutTenant};

/// A tenant's part of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolShare {
    /// The pool.
    pub pool: usize,
    /// Largest number of the tenant's blocks in it.
    pub blocks: u32,
}

/// Pools of channels, and the tenants' shares of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelMap {
    /// The channels of each pool.
    pub pools: Vec<Vec<u32>>,
    /// The shares of each tenant, in the order in which they are filled.
    pub tenants: Vec<Vec<PoolShare>>,
    /// Lent channels of pools: no block is promised in them, and another map may withdraw them.
    pub lent: Vec<u32>,
}

impl ChannelMap {
    /// A map in which each tenant has its own channels and all of their blocks.
    pub fn exclusive(sets: Vec<Vec<u32>>, channels: &ChannelSizes) -> ChannelMap {
        let share =
            |(pool, set): (usize, &Vec<u32>)| vec![PoolShare { pool, blocks: held(set, channels) }];
        let tenants = sets.iter().enumerate().map(share).collect();
        ChannelMap { tenants, pools: sets, lent: Vec::new() }
    }

    /// Largest number of blocks of a tenant in all pools.
    pub fn limit_blocks(&self, tenant: usize) -> u32 {
        let shares = self.tenants.get(tenant).map_or(&[][..], Vec::as_slice);
        shares.iter().fold(0, |sum, share| sum.saturating_add(share.blocks))
    }

    /// Whether a pool belongs to one tenant.
    pub fn is_exclusive(&self, pool: usize) -> bool {
        let shares = self.tenants.iter().flatten();
        shares.filter(|share| share.pool == pool).count() <= 1
    }

    /// Checks that each channel is known and in one pool, lent channels are in a pool, and shares
    /// are of known pools. No pool may promise more than it holds without lent channels. Errors:
    /// the rule that is broken.
    pub fn audit(&self, tenants: &[LayoutTenant], channels: &ChannelSizes) -> Result<(), String> {
        if self.tenants.len() != tenants.len() {
            return Err(format!("{} tenants have shares of {}", self.tenants.len(), tenants.len()));
        }
        let mut seen = vec![false; channels.blocks.len()];
        for channel in self.pools.iter().flatten() {
            match seen.get_mut(*channel as usize) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => return Err(format!("channel {channel} is in two pools")),
                None => return Err(format!("there is no channel {channel}")),
            }
        }
        if let Some(lent) =
            self.lent.iter().find(|lent| !seen.get(**lent as usize).unwrap_or(&false))
        {
            return Err(format!("channel {lent} is lent to no pool"));
        }
        let mut promised = vec![0_u64; self.pools.len()];
        for share in self.tenants.iter().flatten() {
            match promised.get_mut(share.pool) {
                Some(sum) => *sum += u64::from(share.blocks),
                None => return Err(format!("there is no pool {}", share.pool)),
            }
        }
        for (pool, promised) in promised.into_iter().enumerate() {
            let own = self.pools[pool].iter().filter(|channel| !self.lent.contains(channel));
            let holds = held(own, channels);
            let max_promised = promised.min(u64::from(channels.total_blocks));
            if max_promised > u64::from(holds) {
                return Err(format!(
                    "pool {pool} holds {holds} blocks, promised are {max_promised}"
                ));
            }
        }
        Ok(())
    }
}

/// Blocks of these channels.
pub(crate) fn held<'a>(set: impl IntoIterator<Item = &'a u32>, channels: &ChannelSizes) -> u32 {
    let blocks = set.into_iter().filter_map(|channel| channels.blocks.get(*channel as usize));
    blocks.fold(0, |sum: u32, blocks| sum.saturating_add(*blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_maps_are_refused() {
        let channels = ChannelSizes { blocks: vec![10, 10], total_blocks: 15 };
        let view = LayoutTenant { weight: 1.0, quota_blocks: 5, ..LayoutTenant::default() };
        let views = [view.clone(), view];
        let share = |pool, blocks| vec![PoolShare { pool, blocks }];
        let map = |pools: &[&[u32]], shares: [(usize, u32); 2]| ChannelMap {
            pools: pools.iter().map(|pool| pool.to_vec()).collect(),
            tenants: shares.map(|(pool, blocks)| share(pool, blocks)).to_vec(),
            lent: Vec::new(),
        };
        let good = map(&[&[0], &[1]], [(0, 10), (1, 10)]);
        assert_eq!(good.audit(&views, &channels), Ok(()));
        assert!(good.is_exclusive(1) && good.limit_blocks(1) == 10);
        let both = map(&[&[0, 1]], [(0, 15), (0, 15)]);
        assert_eq!(both.audit(&views, &channels), Ok(()), "15 blocks in all");
        assert!(!both.is_exclusive(0));
        let lent =
            |channel| ChannelMap { lent: vec![channel], ..map(&[&[0], &[1]], [(0, 10), (1, 1)]) };
        for (broken, words) in [
            (map(&[&[0], &[0]], [(0, 1), (1, 1)]), "channel 0 is in two pools"),
            (map(&[&[2], &[0]], [(0, 0), (1, 1)]), "there is no channel 2"),
            (map(&[&[0]], [(0, 1), (1, 1)]), "there is no pool 1"),
            (map(&[&[0]], [(0, 8), (0, 7)]), "pool 0 holds 10 blocks, promised are 15"),
            (lent(1), "pool 1 holds 0 blocks, promised are 1"),
            (lent(2), "channel 2 is lent to no pool"),
        ] {
            assert_eq!(broken.audit(&views, &channels), Err(words.to_owned()));
        }
    }
}
