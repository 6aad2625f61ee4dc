//! Layouts assign the channels of a drive to tenants: deterministic functions of the tenants'
//! requirements and of channel sizes. One file is one layout.
//!
//! Units: channels (or groups of channels that a drive exposes as one), blocks of the cache.
//! Invariants, checked by [`ChannelMap::audit`]: a channel is in one pool; a pool holds all that it
//! promises. A new layout is one file and one line in `layouts!` below.

pub mod dedicated;
pub mod flashblox;
pub mod on_demand;
pub mod striped;

use cachewright_types::declare::Declared;
use cachewright_types::registry::{settings, unknown};
use cachewright_types::{RegistryError, Value};
use thiserror::Error;

/// Channels that a stack file assigns to a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// This number of channels.
    Count(u32),
    /// These channels.
    Channels(Vec<u32>),
}

/// What a layout may know of one tenant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayoutTenant<'a> {
    /// The weight in the stack file; positive.
    pub weight: f64,
    /// Blocks it may hold: its quota, or the whole cache where all share it.
    pub quota_blocks: u32,
    /// Blocks that it can use (S_r), and the spare blocks of the machine.
    pub need_blocks: u32,
    /// Miss ratio with these blocks, 0 to 1 (R_e).
    pub miss_ratio: f64,
    /// Whether the tenant has not started yet or has left.
    pub absent: bool,
    /// The channels in the stack file.
    pub wish: Option<&'a Wish>,
}

/// The channels of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSizes {
    /// Blocks that each channel holds.
    pub blocks: Vec<u32>,
    /// Blocks that all tenants together may hold: the cache.
    pub total_blocks: u32,
}

/// Why a layout is impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {found}, expected {expected}")]
pub struct Refusal {
    /// The tenant whose channels are refused; nothing if the refusal is about all tenants.
    pub tenant: Option<usize>,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

/// Assigns channels to tenants.
pub trait ChannelLayout: Send {
    /// Pools of channels, and each tenant's shares of them. Deterministic. Errors: the channels do
    /// not suffice.
    fn lay_out(
        &mut self,
        tenants: &[LayoutTenant],
        channels: &ChannelSizes,
    ) -> Result<ChannelMap, Refusal>;

    /// Whether a tenant may get channels for less than its quota, which is then cut.
    fn may_cut(&self) -> bool {
        false
    }

    /// Whether the layout is computed again when tenants start or leave; the channels of other
    /// tenants then stay. Other layouts are computed once and ignore absence.
    fn follows_tenants(&self) -> bool {
        false
    }

    /// Tenants that were present and refused at the last call, and the channels that each lacks.
    fn refused(&self) -> Vec<(usize, u32)> {
        Vec::new()
    }
}

/// A tenant's part of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolShare {
    /// The pool.
    pub pool: usize,
    /// Largest number of the tenant's blocks in it.
    pub blocks: u32,
}

/// The decision of a layout: pools of channels, and the tenants' shares of them. A tenant's blocks
/// go to the first of its shares with a free slot.
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

/// What a layout needs beyond weights and wishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A drive that exposes its channels.
    Channels,
}

impl Need {
    /// The word used in tables and errors.
    pub fn word(self) -> &'static str {
        match self {
            Need::Channels => "channels",
        }
    }
}

/// What a user can know of one layout without reading code.
pub type Entry = cachewright_types::registry::Entry<Need>;

/// A layout in the registry.
pub trait Registered: ChannelLayout + Sized + 'static {
    /// Its settings.
    type Settings: Declared;
    /// Its facts.
    const ENTRY: Entry;
    /// The layout under its settings.
    fn new(settings: &Self::Settings) -> Self;
}

macro_rules! layouts {
    ($($layout:ty),* $(,)?) => {
        cachewright_types::registry!("layout": $($layout),*);

        /// The layout registered as `name`, with `pairs` set over its defaults.
        pub fn boxed(
            name: &str,
            pairs: &[(String, Value)],
        ) -> Result<Box<dyn ChannelLayout>, RegistryError> {
            $(if <$layout as Registered>::ENTRY.name == name {
                let settings = settings("layout", <$layout>::ENTRY.name, pairs)?;
                return Ok(Box::new(<$layout>::new(&settings)));
            })*
            Err(unknown("layout", name, &entries()))
        }
    };
}

layouts! {
    crate::layout::striped::StripedLayout,
    crate::layout::dedicated::Dedicated,
    crate::layout::flashblox::FlashBlox,
    crate::layout::on_demand::OnDemand,
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
