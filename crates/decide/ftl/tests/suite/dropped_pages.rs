//! Cleaning that drops pages instead of moving them: a cache whose clean pages may go.
//!
//! For: what is dropped is forgotten, what is kept is moved, counts add up, under every scheme.
//! Must never know: how schemes decide. Units: pages, superblocks.

use cachewright_ftl::reclaim::{self, by_name};
use cachewright_ftl::separation::none;
use cachewright_ftl::separation::{self, Registered, SeparationVisitor, visit};
use cachewright_ftl::{Address, Ftl, Geometry, HostRequest, Sink, Space};
use cachewright_types::declare::NoSettings;
use cachewright_types::{Rng, Seed};
use std::collections::{BTreeSet, HashMap};

const PAGES: u32 = 400;

/// A cache's view of its drive: where its pages lie, and which of them may go.
struct Clean {
    at: HashMap<u32, Address>,
    /// Pages that must stay.
    dirty: BTreeSet<u32>,
    dropped: u64,
    moved: u64,
}

impl Sink for Clean {
    const MAY_DROP: bool = true;

    fn keep(&mut self, page: u32, at: Address) -> bool {
        assert_eq!(self.at[&page], at, "only the valid copy is asked about");
        let keep = self.dirty.contains(&page);
        if !keep {
            self.at.remove(&page);
            self.dropped += 1;
        }
        keep
    }

    fn program(&mut self, page: u32, to: Address) {
        self.at.insert(page, to);
    }

    fn relocate(&mut self, page: u32, from: Address, to: Address) {
        assert!(self.dirty.contains(&page), "a dropped page was moved");
        assert_eq!(self.at.insert(page, to), Some(from));
        self.moved += 1;
    }

    fn erase(&mut self, block: u32) {
        assert!(self.at.values().all(|at| at.block != block), "a page is lost");
    }
}

fn run<S: Registered>(ftl: &mut Ftl<S>, dirty_share: f64, rng: &mut Rng) -> Clean {
    let mut cache = Clean { at: HashMap::new(), dirty: BTreeSet::new(), dropped: 0, moved: 0 };
    for step in 0..2000 {
        let page = (rng.below(u64::from(PAGES)) * rng.below(u64::from(PAGES))) as u32 / PAGES;
        if rng.unit() < dirty_share {
            cache.dirty.insert(page);
        } else {
            cache.dirty.remove(&page);
        }
        ftl.begin(&HostRequest { first_page: page, pages: 1, write: true });
        ftl.write(page, cachewright_ftl::NEVER, &mut cache).unwrap();
        ftl.end(&mut cache);
        if step % 500 == 0 {
            assert_eq!(ftl.audit(), Ok(()), "{}", S::ENTRY.name);
        }
    }
    assert_eq!(ftl.audit(), Ok(()), "{}", S::ENTRY.name);
    for page in 0..PAGES {
        assert_eq!(ftl.locate(page).unwrap(), cache.at.get(&page).copied(), "page {page}");
    }
    let counts = ftl.counts();
    assert_eq!((counts.dropped_pages, counts.moved_pages), (cache.dropped, cache.moved));
    assert_eq!((counts.trimmed_pages, ftl.mapped_pages() as usize), (0, cache.at.len()));
    cache
}

struct Both {
    geometry: Geometry,
    reclaim: &'static str,
}

impl SeparationVisitor for Both {
    type Output = ();

    fn visit<S: Registered>(self, settings: S::Settings) {
        let separation = S::new(&self.geometry, &settings, Seed(1));
        let reclaim = by_name(self.reclaim, &[], &self.geometry, Seed(2)).unwrap();
        let mut ftl = Ftl::new(self.geometry, separation, reclaim).unwrap();
        let cache = run(&mut ftl, 0.5, &mut Seed(3).rng());
        assert!(cache.dropped > 0, "{} {}", S::ENTRY.name, self.reclaim);
    }
}

#[test]
fn what_is_dropped_is_forgotten_and_what_is_kept_is_moved_under_every_scheme() {
    let fixed = Space::Fixed { blocks: 62, reserve_blocks: 3, idle_blocks: 5 };
    let share = Space::GarbageShare { share: 0.15 };
    for space in [fixed, share] {
        let geometry = Geometry { logical_pages: PAGES, block_pages: 10, space };
        for entry in separation::entries() {
            for policy in reclaim::entries() {
                visit(entry.name, &[], Both { geometry, reclaim: policy.name }).unwrap();
            }
        }
    }
}

#[test]
fn a_cache_without_dirty_pages_is_never_amplified() {
    let space = Space::Fixed { blocks: 44, reserve_blocks: 2, idle_blocks: 2 };
    let geometry = Geometry { logical_pages: PAGES, block_pages: 10, space };
    let make = || {
        let separation = none::None::new(&geometry, &NoSettings::default(), Seed(1));
        let reclaim = by_name("greedy", &[], &geometry, Seed(2)).unwrap();
        Ftl::new(geometry, separation, reclaim).unwrap()
    };
    let (mut clean, mut dirty) = (make(), make());
    let dropped = run(&mut clean, 0.0, &mut Seed(3).rng()).dropped;
    assert_eq!((clean.counts().write_amplification(), dropped > 0), (1.0, true));
    assert_eq!(run(&mut dirty, 1.0, &mut Seed(3).rng()).dropped, 0);
    assert!(dirty.counts().write_amplification() > 1.2);
}
