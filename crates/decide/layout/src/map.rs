//! What a layout decides: pools of channels, and each tenant's shares of them.
//!
//! For: the value that a machine carries out. Must never know: how it was decided. Units: channels,
//! blocks. A tenant's blocks go to the first of its shares that has room.

use crate::{Channels, TenantView};

/// A tenant's part of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The pool.
    pub pool: usize,
    /// The most blocks of the tenant in it.
    pub blocks: u32,
}

/// Pools of channels, and who has which share of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// The channels of each pool.
    pub pools: Vec<Vec<u32>>,
    /// Of each tenant its shares, the one to be filled first before the others.
    pub tenants: Vec<Vec<Share>>,
    /// Channels of pools of which nobody is promised anything: another map may take them away.
    pub lent: Vec<u32>,
}

impl Map {
    /// Each tenant has these channels to itself, and all of what they hold.
    pub fn exclusive(sets: Vec<Vec<u32>>, channels: &Channels) -> Map {
        let share =
            |(pool, set): (usize, &Vec<u32>)| vec![Share { pool, blocks: held(set, channels) }];
        let tenants = sets.iter().enumerate().map(share).collect();
        Map { tenants, pools: sets, lent: Vec::new() }
    }

    /// The most blocks a tenant may have anywhere.
    pub fn limit_blocks(&self, tenant: usize) -> u32 {
        let shares = self.tenants.get(tenant).map_or(&[][..], Vec::as_slice);
        shares.iter().fold(0, |sum, share| sum.saturating_add(share.blocks))
    }

    /// Whether a pool is one tenant's alone.
    pub fn is_exclusive(&self, pool: usize) -> bool {
        let shares = self.tenants.iter().flatten();
        shares.filter(|share| share.pool == pool).count() <= 1
    }

    /// Checks that no channel is in two pools or unknown, that lent ones are in one, that shares
    /// are of pools there are, and that no pool promises more than it holds without lent channels.
    /// Errors: the rule broken, in words.
    pub fn audit(&self, tenants: &[TenantView], channels: &Channels) -> Result<(), String> {
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
            let most = promised.min(u64::from(channels.total_blocks));
            if most > u64::from(holds) {
                return Err(format!("pool {pool} holds {holds} blocks, promised are {most}"));
            }
        }
        Ok(())
    }
}

/// Blocks that some channels hold together.
pub(crate) fn held<'a>(set: impl IntoIterator<Item = &'a u32>, channels: &Channels) -> u32 {
    let blocks = set.into_iter().filter_map(|channel| channels.blocks.get(*channel as usize));
    blocks.fold(0, |sum: u32, blocks| sum.saturating_add(*blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_maps_are_told() {
        let channels = Channels { blocks: vec![10, 10], total_blocks: 15 };
        let view = TenantView { weight: 1.0, quota_blocks: 5, ..TenantView::default() };
        let views = [view.clone(), view];
        let share = |pool, blocks| vec![Share { pool, blocks }];
        let map = |pools: &[&[u32]], shares: [(usize, u32); 2]| Map {
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
        let lent = |channel| Map { lent: vec![channel], ..map(&[&[0], &[1]], [(0, 10), (1, 1)]) };
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
