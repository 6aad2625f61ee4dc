//! `justitia`: one cache of elastic lists; the tenant that holds most blocks is evicted from first.
//!
//! For: DRAM over-provisioning, a baseline of iCache. Must never know: the cache engine, time, the
//! drive (a request carries the number of busy channels). Units: pages. Source: Liu et al.,
//! Justitia, TPDS'22, of which only the abstract is known: a reserve of memory is kept by batch
//! evictions. Each batch has as many pages as the drive has idle channels, so that one parallel
//! round writes it. The victim is the tenant that holds most pages. The rules follow third-party
//! code (1024cs/air_code, a fork of MQSim), read so that the abstract holds:
//!
//! 1. No tenant has a fixed quota. Each tenant has its own list, which grows while the cache has
//!    free slots.
//! 2. Each write request sets the batch size: the smallest multiple of the channels that exceeds
//!    the busy channels and the request's pages together, less these. Before the first write
//!    request it is `reserve_pages` (8 MB of pages of 8 KiB).
//! 3. At the first miss of a full cache the batch leaves the end of the victim's list together, at
//!    most what the victim holds. Once these slots are used, each new page evicts a page of its own
//!    tenant.
//! 4. The victim is the tenant that holds most pages. It is chosen when the cache is first full,
//!    and then every `victim_every` write requests.
//!
//! Read otherwise than coded there: the pages of rule 3 leave together. The code evicts page by
//! page as slots are needed, so that no round is parallel. Lists are per tenant, because a victim
//! tenant means nothing in one list for all. Our choices: a tenant without pages evicts from the
//! tenant that holds most; pages that leave for other reasons (trims, write-back that keeps
//! nothing) free slots for all tenants. Not here: the channel isolation of the original.

use crate::registry::{Entry, Need, Registered};
use crate::share::largest_holder;
use crate::{CacheDivision, Partitioner, TenantView, VictimChoice, VictimSelector, WriteRequest};
use cachewright_snapshot::Snapshot;
use cachewright_types::{Seed, declare};

declare! {
    /// Settings of `justitia`.
    pub struct JustitiaSettings {
        /// write requests after which a new victim tenant is chosen
        victim_every: u32 = 100_000, "requests", 1 ..= 4294967295;
        /// pages given at once before the first write request; 8 MB of 8 KiB pages
        reserve_pages: u32 = 1024, "pages", 0 ..= 4294967295;
    }
}

/// Elastic lists.
#[derive(Clone, Debug, Snapshot)]
pub struct Justitia {
    #[snapshot(settings)]
    settings: JustitiaSettings,
}

impl Registered for Justitia {
    type Settings = JustitiaSettings;
    const ENTRY: Entry = Entry {
        name: "justitia",
        doc: "elastic lists; the largest holder gives up as many pages as channels are idle",
        source: "Liu et al., Justitia, TPDS'22 (abstract), as coded in 1024cs/air_code",
        needs: &[Need::Channels],
    };

    fn new(settings: &JustitiaSettings, _: usize, _: Seed) -> Self {
        Justitia { settings: settings.clone() }
    }
}

impl Partitioner for Justitia {
    fn divide(&mut self, _: &[TenantView], _: u32) -> CacheDivision {
        CacheDivision::Elastic
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        0
    }

    fn victim_selector(&self) -> Option<Box<dyn VictimSelector>> {
        Some(Box::new(LargestHolder { settings: self.settings.clone(), victim: None, counted: 0 }))
    }
}

/// Chooses the tenant that holds most blocks.
#[derive(Clone, Debug)]
struct LargestHolder {
    settings: JustitiaSettings,
    victim: Option<usize>,
    /// Write requests since the victim was chosen.
    counted: u32,
}

impl VictimSelector for LargestHolder {
    fn initial(&self) -> VictimChoice {
        VictimChoice { victim: None, blocks: self.settings.reserve_pages }
    }

    fn on_write(&mut self, request: &WriteRequest<'_>) -> VictimChoice {
        let due = self.victim.is_none() || self.counted >= self.settings.victim_every;
        if due && request.full {
            self.victim = largest_holder(request.held);
            self.counted = 0;
        }
        self.counted += 1;
        VictimChoice { victim: self.victim, blocks: idle_channels(request) }
    }
}

/// Pages that fill the channels which busy channels and the request's own pages leave idle.
fn idle_channels(request: &WriteRequest<'_>) -> u32 {
    let channels = request.channels.max(1);
    let taken = u64::from(request.busy_channels) + u64::from(request.blocks);
    channels - (taken % u64::from(channels)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(
        selector: &mut dyn VictimSelector,
        busy_channels: u32,
        blocks: u32,
        held: &[u32],
        full: bool,
    ) -> VictimChoice {
        selector.on_write(&WriteRequest {
            tenant: 0,
            blocks,
            busy_channels,
            channels: 8,
            held,
            full,
        })
    }

    fn selector(victim_every: u32) -> Box<dyn VictimSelector> {
        let settings = JustitiaSettings { victim_every, ..JustitiaSettings::default() };
        Justitia { settings }.victim_selector().unwrap()
    }

    /// 8 channels: 3 busy channels and 2 pages leave 3. If all 8 are taken, a full round of 8
    /// follows.
    #[test]
    fn what_is_given_fills_the_idle_channels() {
        let mut selector = selector(100_000);
        assert_eq!(
            selector.initial(),
            VictimChoice { victim: None, blocks: 1024 },
            "8 MB of 8 KiB"
        );
        let cases = [((3, 2), 3), ((0, 1), 7), ((0, 8), 8), ((8, 8), 8), ((5, 10), 1), ((0, 0), 8)];
        for ((busy, blocks), given) in cases {
            let choice = choose(&mut *selector, busy, blocks, &[5, 9, 9], false);
            assert_eq!(choice, VictimChoice { victim: None, blocks: given }, "{busy} and {blocks}");
        }
        assert_eq!(choose(&mut *selector, 3, 2, &[5, 9, 9], true).victim, Some(1));
    }

    #[test]
    fn the_victim_is_chosen_at_the_first_full_cache_and_then_every_so_many_writes() {
        let mut selector = selector(3);
        let mut victim = |held: &[u32], full| choose(&mut *selector, 0, 1, held, full).victim;
        assert_eq!(victim(&[4, 1], false), None);
        assert_eq!(victim(&[4, 6], true), Some(1));
        assert_eq!([victim(&[9, 1], true), victim(&[9, 1], true)], [Some(1); 2]);
        assert_eq!(victim(&[9, 1], true), Some(0), "the fourth chooses anew");
        assert_eq!(victim(&[1, 9], true), Some(0));
    }
}
