//! `justitia`: one cache of elastic lists, in which whoever holds most gives first.
//!
//! For: DRAM over-provisioning, a baseline of iCache. Must never know: the cache engine, time, the
//! drive (it is told how many channels work). Units: pages. Source: Liu et al., Justitia, TPDS'22,
//! of which the abstract is what we know: a reserve of memory is kept by evicting as many pages at
//! once as channels of the drive are idle, so that one parallel round writes them, and what is
//! evicted is taken from the tenant that holds most. The rules are those of third-party code
//! (1024cs/air_code, a fork of MQSim), read so that the abstract holds:
//!
//! 1. nobody has a fixed quota: each tenant has a list of its own, which grows while there is room;
//! 2. each write request sets how many pages are given: the smallest multiple of the channels that
//!    exceeds those busy and the request's pages together, less these; before the first write
//!    request it is `reserve_pages` (8 MB of pages of 8 KiB);
//! 3. at the first miss of a full cache these pages leave the victim tenant's end of its list
//!    together, at most what it holds, and make room; once that is used up, each page that comes
//!    in takes the place of one of its own tenant;
//! 4. the victim is the tenant that holds most pages, chosen when the cache is first full and then
//!    every `victim_every` write requests.
//!
//! Read otherwise than coded there: pages of rule 3 leave together (the code evicts page by page as
//! they are needed, so no round is parallel), and lists are apart (with one list for all, a victim
//! tenant means nothing). Left to us: a tenant that holds nothing takes a page of whoever holds
//! most; pages that leave for other reasons (trims, write-back that keeps nothing) make room for
//! all. Not here: the isolation of channels of the original.

use crate::entry::{Entry, Need, Registered};
use crate::share::largest_holder;
use crate::{Division, Partitioner, TenantView, VictimChoice, VictimSelector, WriteRequest};
use cachewright_types::{Seed, declare};

declare! {
    /// Settings of `justitia`.
    pub struct JustitiaSettings {
        /// write requests after which the victim tenant is chosen anew
        victim_every: u32 = 100_000, "requests", 1 ..= 4294967295;
        /// pages given at once before the first write request; 8 MB of 8 KiB pages
        reserve_pages: u32 = 1024, "pages", 0 ..= 4294967295;
    }
}

/// Elastic lists.
#[derive(Clone, Debug)]
pub struct Justitia {
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
    fn divide(&mut self, _: &[TenantView], _: u32) -> Division {
        Division::Elastic
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        0
    }

    fn victim_selector(&self) -> Option<Box<dyn VictimSelector>> {
        Some(Box::new(LargestHolder { settings: self.settings.clone(), victim: None, counted: 0 }))
    }
}

/// Who gives, and how much.
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

/// Pages that fill the channels left idle by those busy and by the request's own pages.
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

    /// 8 channels: 3 busy and 2 pages leave 3; 8 taken in all are a full round, so 8 more.
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
