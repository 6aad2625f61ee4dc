//! `striped`: each tenant's blocks on all channels.
//!
//! For: the baseline with full bandwidth and no isolation. Must never know: tenants. Source: Wang
//! et al. (oc-cache), V: "Shared-Cache".

use super::{Entry, Registered};
use crate::layout::{ChannelLayout, ChannelMap, ChannelSizes, LayoutTenant, PoolShare, Refusal};
use cachewright_types::declare::NoSettings;

/// One pool of all channels.
#[derive(Clone, Debug)]
pub struct StripedLayout;

impl Registered for StripedLayout {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "striped",
        doc: "every tenant's blocks are striped over all channels",
        source: "Shared-Cache of Wang et al. (oc-cache), V",
        needs: &[],
    };

    fn new(_: &NoSettings) -> StripedLayout {
        StripedLayout
    }
}

impl ChannelLayout for StripedLayout {
    fn lay_out(
        &mut self,
        tenants: &[LayoutTenant],
        channels: &ChannelSizes,
    ) -> Result<ChannelMap, Refusal> {
        let share = PoolShare { pool: 0, blocks: channels.total_blocks };
        let pools = vec![(0..channels.blocks.len() as u32).collect()];
        Ok(ChannelMap { pools, tenants: vec![vec![share]; tenants.len()], lent: Vec::new() })
    }
}
