//! Random writes, trims and idle work against a slow obvious model, under every scheme.
//!
//! For: no page is lost, no superblock is erased while it holds data, counts add up, free space
//! stays at the reserve. Must never know: how schemes decide. Units: pages, superblocks.

use cachewright_ftl::reclaim::{self, by_name};
use cachewright_ftl::separation::{self, Registered, SeparationVisitor, visit};
use cachewright_ftl::{Address, Ftl, FtlError, Geometry, Sink, Space};
use cachewright_types::Seed;
use proptest::prelude::*;
use std::collections::HashMap;

/// What the host did and where the flash holds it: the page and version at each address.
#[derive(Default)]
struct Flash {
    /// Version of each page as the host last wrote it.
    host: HashMap<u32, u64>,
    cells: HashMap<Address, (u32, u64)>,
    erased: u64,
    meta_pages: u64,
}

impl Flash {
    fn put(&mut self, at: Address, cell: (u32, u64)) {
        assert_eq!(self.cells.insert(at, cell), None, "programmed twice without an erase");
    }
}

impl Sink for Flash {
    fn program(&mut self, page: u32, to: Address) {
        let version = self.host[&page];
        self.put(to, (page, version));
    }
    fn relocate(&mut self, page: u32, from: Address, to: Address) {
        let cell = self.cells[&from];
        assert_eq!(cell, (page, self.host[&page]), "a stale copy was moved");
        self.put(to, cell);
    }
    fn program_meta(&mut self, _: Address) {
        self.meta_pages += 1;
    }
    fn erase(&mut self, block: u32) {
        self.cells.retain(|at, _| at.block != block);
        self.erased += 1;
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write { first: u32, pages: u32 },
    Trim { first: u32, pages: u32 },
    Idle,
}

const PAGES: u32 = 300;

fn step() -> impl Strategy<Value = Step> {
    let skewed = (0..PAGES, 0..PAGES).prop_map(|(a, b)| a * b / PAGES);
    prop_oneof![
        30 => (skewed.clone(), 1..9_u32)
            .prop_map(|(first, pages)| Step::Write { first, pages: pages.min(PAGES - first) }),
        2 => (skewed, 1..30_u32)
            .prop_map(|(first, pages)| Step::Trim { first, pages: pages.min(PAGES - first) }),
        1 => Just(Step::Idle),
    ]
}

/// Runs the steps under one separation and one reclaim policy and checks all there is.
struct Run<'a> {
    geometry: Geometry,
    reclaim: &'static str,
    steps: &'a [Step],
}

impl SeparationVisitor for Run<'_> {
    type Output = Result<(), String>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let words = |error: FtlError| error.to_string();
        let separation = S::new(&self.geometry, &settings, Seed(1));
        let reclaim = by_name(self.reclaim, &[], &self.geometry, Seed(2)).map_err(words)?;
        let mut ftl = Ftl::new(self.geometry, separation, reclaim).map_err(words)?;
        let mut flash = Flash::default();
        let mut version = 0;
        for (index, step) in self.steps.iter().enumerate() {
            match *step {
                Step::Write { first, pages } => {
                    version += 1;
                    for page in first..first + pages {
                        let mut probe = Latest { flash: &mut flash, page, version };
                        ftl.write_request(page, 1, &mut probe).map_err(words)?;
                    }
                }
                Step::Trim { first, pages } => {
                    ftl.trim(first, pages).map_err(words)?;
                    flash.host.retain(|page, _| !(first..first + pages).contains(page));
                }
                Step::Idle => {
                    ftl.clean_idle(2, &mut flash);
                }
            }
            if index % 16 == 0 {
                ftl.audit()?;
            }
        }
        ftl.audit()?;
        compare(&ftl, &flash)
    }
}

/// Lets the host's version of one page change at the moment it is programmed.
struct Latest<'a> {
    flash: &'a mut Flash,
    page: u32,
    version: u64,
}

impl Sink for Latest<'_> {
    fn program(&mut self, page: u32, to: Address) {
        assert_eq!(page, self.page);
        self.flash.host.insert(page, self.version);
        self.flash.program(page, to);
    }
    fn relocate(&mut self, page: u32, from: Address, to: Address) {
        self.flash.relocate(page, from, to);
    }
    fn program_meta(&mut self, to: Address) {
        self.flash.program_meta(to);
    }
    fn erase(&mut self, block: u32) {
        self.flash.erase(block);
    }
}

fn compare<S: Registered>(ftl: &Ftl<S>, flash: &Flash) -> Result<(), String> {
    let name = S::ENTRY.name;
    for page in 0..PAGES {
        let at = ftl.locate(page).map_err(|error| error.to_string())?;
        let found = at.map(|at| flash.cells[&at]);
        let expected = flash.host.get(&page).map(|version| (page, *version));
        if found != expected {
            return Err(format!("{name}: page {page} holds {found:?}, expected {expected:?}"));
        }
    }
    let counts = ftl.counts();
    assert_eq!(ftl.mapped_pages() as usize, flash.host.len());
    assert_eq!((counts.collections, counts.meta_pages), (flash.erased, flash.meta_pages));
    let erases: u64 = ftl.blocks().iter().map(|block| u64::from(block.erases)).sum();
    assert_eq!(erases, flash.erased);
    Ok(())
}

fn geometries() -> [Geometry; 2] {
    let fixed = Space::Fixed { blocks: 48, reserve_blocks: 3, idle_blocks: 5 };
    let share = Space::GarbageShare { share: 0.15 };
    [fixed, share].map(|space| Geometry { logical_pages: PAGES, block_pages: 10, space })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn no_page_is_lost_under_any_scheme(steps in prop::collection::vec(step(), 1..400)) {
        for geometry in geometries() {
            for separation in separation::entries() {
                for reclaim in reclaim::entries() {
                    let run = Run { geometry, reclaim: reclaim.name, steps: &steps };
                    let ended = visit(separation.name, &[], run).unwrap();
                    prop_assert_eq!(ended, Ok(()), "{} {}", separation.name, reclaim.name);
                }
            }
        }
    }
}
