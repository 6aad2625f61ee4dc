//! `flashblox`: each tenant has as many whole channels as its blocks need.
//!
//! For: the isolated layout that wastes the rest of a channel. Must never know: what tenants do.
//! Units: channels, blocks. Source: Huang et al., FlashBlox (FAST'17), as Wang et al. (oc-cache),
//! V, compare with it. A tenant gets the channels for its requirement (S_r), rounded up. While
//! these are more than the drive has, the tenant that gained most by rounding gives one back (the
//! later among equals). Its quota is then cut to its channels. Channels beyond all requirements
//! stay free.

use super::{Entry, Need, Registered};
use crate::layout::dedicated::FreeChannels;
use crate::layout::{ChannelLayout, ChannelMap, ChannelSizes, LayoutTenant, Refusal};
use cachewright_types::declare::NoSettings;

/// Whole channels by need.
#[derive(Clone, Debug)]
pub struct FlashBlox;

impl Registered for FlashBlox {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "flashblox",
        doc: "each tenant has whole channels to itself, as many as it needs, rounded up",
        source: "Huang et al. (FlashBlox), FAST'17; Wang et al. (oc-cache), V",
        needs: &[Need::Channels],
    };

    fn new(_: &NoSettings) -> FlashBlox {
        FlashBlox
    }
}

impl ChannelLayout for FlashBlox {
    fn lay_out(
        &mut self,
        tenants: &[LayoutTenant],
        channels: &ChannelSizes,
    ) -> Result<ChannelMap, Refusal> {
        let each = channels.blocks.iter().copied().min().unwrap_or(0).max(1);
        let needs: Vec<u32> = tenants.iter().map(|tenant| tenant.need_blocks).collect();
        let counts = whole_channels(&needs, each, channels.blocks.len() as u32)?;
        let mut free = FreeChannels(vec![true; channels.blocks.len()]);
        let sets: Result<Vec<Vec<u32>>, Refusal> =
            counts.iter().enumerate().map(|(tenant, count)| free.any(tenant, *count)).collect();
        Ok(ChannelMap::exclusive(sets?, channels))
    }

    fn may_cut(&self) -> bool {
        true
    }
}

/// Channels of `each` blocks for every need, `total` at most. Errors: fewer channels than tenants.
fn whole_channels(needs: &[u32], each: u32, total: u32) -> Result<Vec<u32>, Refusal> {
    let tenants = needs.len() as u32;
    if tenants > total {
        let found = format!("{total} channels for {tenants} tenants");
        let expected = format!("{} more channels", tenants - total);
        return Err(Refusal { tenant: None, found, expected });
    }
    let mut counts: Vec<u32> = needs.iter().map(|need| need.div_ceil(each).max(1)).collect();
    let mut sum: u64 = counts.iter().copied().map(u64::from).sum();
    // Blocks of a tenant's channels beyond its need.
    let beyond =
        |index: usize, count: u32| i64::from(count) * i64::from(each) - i64::from(needs[index]);
    while sum > u64::from(total) {
        let shrinks = (0..counts.len()).filter(|index| counts[*index] > 1);
        let Some(widest) = shrinks.max_by_key(|index| beyond(*index, counts[*index])) else {
            break;
        };
        counts[widest] -= 1;
        sum -= 1;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_rounded_up_to_channels() {
        assert_eq!(whole_channels(&[25, 100, 301, 0], 100, 8), Ok(vec![1, 1, 4, 1]));
        assert_eq!(whole_channels(&[150, 250, 210], 100, 8), Ok(vec![2, 3, 3]));
        assert_eq!(whole_channels(&[150, 250, 210], 100, 7), Ok(vec![2, 3, 2]), "210 gives back");
        assert_eq!(whole_channels(&[150, 250, 210], 100, 6), Ok(vec![2, 2, 2]), "then 250");
        assert_eq!(whole_channels(&[1000, 1], 100, 2), Ok(vec![1, 1]), "each has one");
        assert_eq!(whole_channels(&[120, 590], 100, 7), Ok(vec![1, 6]), "80 blocks, against 10");
        let refusal = whole_channels(&[1, 1, 1], 100, 2).unwrap_err().to_string();
        assert_eq!(refusal, "found 2 channels for 3 tenants, expected 1 more channels");
    }
}
