//! Millions of random writes, trims and idle moments, audited on the way.
//!
//! For: what short property tests do not reach: thousands of cleanings, worn superblocks, drives
//! with hardly any room. Must never know: how schemes decide. Units: pages.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_ftl::reclaim::{self, by_name};
use cachewright_ftl::separation::{self, Registered, SeparationVisitor, visit};
use cachewright_ftl::{Ftl, FtlError, Geometry, NEVER, NoSink, Space};
use cachewright_types::Seed;

const PAGES: u32 = 8192;
const RESERVE: u32 = 2;

struct Run {
    reclaim: &'static str,
    rounds: u32,
}

impl SeparationVisitor for Run {
    type Output = Result<(), FtlError>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let probe = Geometry::with_over_provisioning(PAGES, 32, 0.5, RESERVE);
        let scheme = S::new(&probe, &settings, Seed(3));
        let (streams, least) = (scheme.streams(), scheme.meta_pages());
        // A fraction of a page is a whole one in some superblocks.
        let meta = least + u32::from(scheme.meta_part() > 0.0);
        // The least that is accepted.
        let blocks = PAGES.div_ceil(32 - meta) + RESERVE + streams;
        let space = Space::Fixed { blocks, reserve_blocks: RESERVE, idle_blocks: RESERVE + 1 };
        let geometry = Geometry { space, ..probe };
        let reclaim = by_name(self.reclaim, &[], &geometry, Seed(4))?;
        let mut ftl = Ftl::new(geometry, S::new(&geometry, &settings, Seed(3)), reclaim)?;
        let mut rng = Seed(9).derive(S::ENTRY.name).rng();
        let mut mapped = vec![false; PAGES as usize];
        ftl.write_request(0, PAGES, &mut NoSink)?;
        mapped.fill(true);
        for _ in 0..self.rounds {
            for _ in 0..20_000 {
                let skewed = rng.below(u64::from(PAGES)) * rng.below(u64::from(PAGES));
                let page = (skewed / u64::from(PAGES)) as u32;
                ftl.write(page, NEVER, &mut NoSink)?;
                ftl.end(&mut NoSink);
                mapped[page as usize] = true;
                // One host page was placed since the reserve was brought about.
                assert!(ftl.free_blocks() + 1 >= RESERVE);
            }
            let first = rng.below(u64::from(PAGES) - 64) as u32;
            ftl.trim(first, 64)?;
            mapped[first as usize..first as usize + 64].fill(false);
            ftl.clean_idle(1, &mut NoSink);
            ftl.audit().unwrap();
            for page in 0..PAGES {
                let found = ftl.locate(page)?.is_some();
                assert_eq!(found, mapped[page as usize], "{}: page {page}", S::ENTRY.name);
            }
        }
        let counts = ftl.counts();
        let erases: u64 = ftl.blocks().iter().map(|block| u64::from(block.erases)).sum();
        assert_eq!(erases, counts.collections);
        let erased = counts.moved_pages + counts.reclaimed_pages;
        let room = |meta: u32| erases * u64::from(32 - meta);
        assert!((room(meta)..=room(least)).contains(&erased), "{erased} of {erases} erases");
        Ok(())
    }
}

#[test]
fn nothing_is_lost_over_millions_of_writes_with_the_least_room() {
    for separation in separation::entries() {
        for reclaim in ["greedy", "cost-benefit"] {
            visit(separation.name, &[], Run { reclaim, rounds: 5 }).unwrap().unwrap();
        }
    }
    for reclaim in reclaim::entries() {
        visit("2r", &[], Run { reclaim: reclaim.name, rounds: 10 }).unwrap().unwrap();
    }
}
