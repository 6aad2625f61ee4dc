//! `striped`: every tenant over every channel.
//!
//! For: the baseline, which has all the bandwidth and no isolation. Must never know: tenants.
//! Source: Wang et al. (oc-cache), V: "Shared-Cache".

use crate::entry::{Entry, Registered};
use crate::{Channels, Layout, Map, Refusal, Share, TenantView};
use cachewright_types::declare::NoSettings;

/// One pool of all channels.
#[derive(Clone, Debug)]
pub struct Striped;

impl Registered for Striped {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "striped",
        doc: "every tenant's blocks go round all channels",
        source: "Shared-Cache of Wang et al. (oc-cache), V",
        needs: &[],
    };

    fn new(_: &NoSettings) -> Striped {
        Striped
    }
}

impl Layout for Striped {
    fn lay_out(&mut self, tenants: &[TenantView], channels: &Channels) -> Result<Map, Refusal> {
        let share = Share { pool: 0, blocks: channels.total_blocks };
        let pools = vec![(0..channels.blocks.len() as u32).collect()];
        Ok(Map { pools, tenants: vec![vec![share]; tenants.len()], lent: Vec::new() })
    }
}
