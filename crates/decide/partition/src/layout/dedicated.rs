//! `dedicated`: each tenant has its own channels, as the stack file says.
//!
//! For: operators who assign channels by hand. Must never know: what tenants do. Units: channels.
//! Tenants that name channels get those. Tenants that name a number get the lowest free channels,
//! in order. The other tenants divide the rest by their weights, at least one channel each
//! (D'Hondt: one channel after the other to the tenant that has the highest weight per channel with
//! it).

use super::{Entry, Need, Registered};
use crate::layout::{ChannelLayout, ChannelMap, ChannelSizes, LayoutTenant, Refusal, Wish};
use cachewright_types::declare::NoSettings;

/// Channels of the stack file.
#[derive(Clone, Debug)]
pub struct Dedicated;

impl Registered for Dedicated {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "dedicated",
        doc: "each tenant has the channels it asks for to itself, the others share the rest",
        source: "static partitioning of channels",
        needs: &[Need::Channels],
    };

    fn new(_: &NoSettings) -> Dedicated {
        Dedicated
    }
}

impl ChannelLayout for Dedicated {
    fn lay_out(
        &mut self,
        tenants: &[LayoutTenant],
        channels: &ChannelSizes,
    ) -> Result<ChannelMap, Refusal> {
        let mut free = FreeChannels(vec![true; channels.blocks.len()]);
        let mut sets = vec![Vec::new(); tenants.len()];
        for (tenant, view) in tenants.iter().enumerate() {
            if let Some(Wish::Channels(requested)) = view.wish {
                sets[tenant] = free.these(tenant, requested)?;
            }
        }
        for (tenant, view) in tenants.iter().enumerate() {
            if let Some(Wish::Count(count)) = view.wish {
                sets[tenant] = free.any(tenant, *count)?;
            }
        }
        let open: Vec<usize> =
            (0..tenants.len()).filter(|index| tenants[*index].wish.is_none()).collect();
        let remaining = free.count();
        if remaining < open.len() as u32 {
            let found = format!("{remaining} channels for {} tenants that name none", open.len());
            let expected = "at least one channel each".to_owned();
            return Err(Refusal { tenant: None, found, expected });
        }
        let weights: Vec<f64> = open.iter().map(|index| tenants[*index].weight).collect();
        for (tenant, count) in open.iter().zip(by_weight(remaining, &weights)) {
            sets[*tenant] = free.any(*tenant, count)?;
        }
        Ok(ChannelMap::exclusive(sets, channels))
    }
}

/// Divides `channels` by weight, at least one each; there must be enough for all.
fn by_weight(channels: u32, weights: &[f64]) -> Vec<u32> {
    let mut counts = vec![1; weights.len()];
    if weights.is_empty() {
        return counts;
    }
    for _ in weights.len() as u32..channels {
        let per = |index: usize| weights[index] / f64::from(counts[index] + 1);
        let first = (1..weights.len())
            .fold(0, |best, index| if per(index) > per(best) { index } else { best });
        counts[first] += 1;
    }
    counts
}

/// Free channels.
#[derive(Clone, Debug)]
pub(crate) struct FreeChannels(pub Vec<bool>);

impl FreeChannels {
    /// The number of free channels.
    pub fn count(&self) -> u32 {
        self.0.iter().filter(|free| **free).count() as u32
    }

    /// The free channels.
    pub fn all(&self) -> impl Iterator<Item = u32> {
        let all = self.0.iter().enumerate();
        all.filter(|(_, free)| **free).map(|(channel, _)| channel as u32)
    }

    /// Takes these channels.
    fn these(&mut self, tenant: usize, requested: &[u32]) -> Result<Vec<u32>, Refusal> {
        let words = || requested.iter().map(u32::to_string).collect::<Vec<String>>().join(", ");
        let refuse = |expected: String| {
            Err(Refusal { tenant: Some(tenant), found: format!("[{}]", words()), expected })
        };
        if requested.is_empty() {
            return refuse("one channel or more".to_owned());
        }
        for channel in requested {
            match self.0.get_mut(*channel as usize) {
                Some(free) if *free => *free = false,
                Some(_) => return refuse(format!("no channel twice, {channel} is taken")),
                None => return refuse(format!("channels from 0 to {}", self.0.len() - 1)),
            }
        }
        Ok(requested.to_vec())
    }

    /// Takes the lowest free channels.
    pub fn any(&mut self, tenant: usize, count: u32) -> Result<Vec<u32>, Refusal> {
        let remaining = self.count();
        if count == 0 || count > remaining {
            let (found, expected) =
                (count.to_string(), format!("from 1 to {remaining} free channels"));
            return Err(Refusal { tenant: Some(tenant), found, expected });
        }
        Ok(self.lowest(count))
    }

    /// Takes the lowest free channels, at most `count`.
    pub fn lowest(&mut self, count: u32) -> Vec<u32> {
        let taken: Vec<u32> = self.all().take(count as usize).collect();
        for channel in &taken {
            self.0[*channel as usize] = false;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(channels: usize, wishes: &[(f64, Option<Wish>)]) -> Result<Vec<Vec<u32>>, String> {
        let views: Vec<LayoutTenant> = wishes
            .iter()
            .map(|(weight, wish)| LayoutTenant {
                weight: *weight,
                quota_blocks: 1,
                wish: wish.as_ref(),
                ..LayoutTenant::default()
            })
            .collect();
        let channels = ChannelSizes { blocks: vec![10; channels], total_blocks: 10 };
        let map = Dedicated.lay_out(&views, &channels);
        map.map(|map| map.pools).map_err(|refusal| format!("{:?} {refusal}", refusal.tenant))
    }

    #[test]
    fn named_channels_come_first_then_numbers_then_weights() {
        let wishes = [
            (3.0, None),
            (1.0, Some(Wish::Count(2))),
            (1.0, None),
            (1.0, Some(Wish::Channels(vec![1, 7]))),
        ];
        assert_eq!(sets(8, &wishes), Ok(vec![vec![3, 4, 5], vec![0, 2], vec![6], vec![1, 7]]));
        assert_eq!(by_weight(7, &[3.0, 2.0, 1.0]), [4, 2, 1]);
        assert_eq!(by_weight(3, &[100.0, 1.0, 1.0]), [1, 1, 1], "each has one");
    }

    /// D'Hondt by hand. Weights 1 and 2: the third channel has 1/2 or 2/2. Weights 3 and 2: the
    /// third has 3/2 or 2/2, the fourth 3/3 or 2/2.
    #[test]
    fn the_next_channel_goes_to_the_highest_weight_per_channel_and_among_equals_to_the_first() {
        assert_eq!(by_weight(3, &[1.0, 2.0]), [1, 2]);
        assert_eq!(by_weight(4, &[3.0, 2.0]), [3, 1], "equal at the fourth");
        assert_eq!(by_weight(9, &[]), [0; 0]);
    }

    #[test]
    fn one_channel_for_each_tenant_is_enough() {
        let any = (1.0, None);
        assert_eq!(sets(2, &[any.clone(), any]), Ok(vec![vec![0], vec![1]]));
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_tenant() {
        let named = |channels: &[u32]| (1.0, Some(Wish::Channels(channels.to_vec())));
        let error = |wishes: &[(f64, Option<Wish>)]| sets(4, wishes).unwrap_err();
        assert_eq!(
            error(&[named(&[0]), named(&[1, 0])]),
            "Some(1) found [1, 0], expected no channel twice, 0 is taken"
        );
        assert_eq!(error(&[named(&[4])]), "Some(0) found [4], expected channels from 0 to 3");
        assert_eq!(error(&[named(&[])]), "Some(0) found [], expected one channel or more");
        assert_eq!(
            error(&[named(&[0, 1]), (1.0, Some(Wish::Count(3)))]),
            "Some(1) found 3, expected from 1 to 2 free channels"
        );
        assert_eq!(
            error(&[named(&[0, 1, 2, 3]), (1.0, None)]),
            "None found 0 channels for 1 tenants that name none, expected at least one channel each"
        );
    }
}
