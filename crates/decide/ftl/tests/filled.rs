//! Drives that begin filled: every scheme starts from the rule and keeps its invariants, and the
//! write amplification stands at the mean field's from the first write.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use cachewright_ftl::reclaim::by_name;
use cachewright_ftl::separation::{self, Registered, SeparationVisitor, visit};
use cachewright_ftl::{Address, Counts, Fill, Ftl, FtlError, Geometry, Lazy, NoSink, Sink, Space};
use cachewright_types::Seed;
use std::sync::Arc;

struct Run {
    geometry: Geometry,
    /// Superblocks and pages.
    fill: (u32, u32),
    writes: u32,
}

impl SeparationVisitor for Run {
    type Output = Result<Counts, FtlError>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let scheme = S::new(&self.geometry, &settings, Seed(1));
        let reclaim = by_name("greedy", &[], &self.geometry, Seed(1))?;
        let (blocks, pages) = self.fill;
        let data_pages = self.geometry.block_pages - scheme.meta_pages();
        let fill = Arc::new(Fill::steady(data_pages, blocks, pages));
        let mut ftl: Ftl<S, Lazy> = Ftl::filled(self.geometry, scheme, reclaim, &fill, 7)?;
        ftl.audit().unwrap();
        let mut rng = Seed(5).rng();
        for _ in 0..self.writes {
            let page = rng.below(u64::from(pages)) as u32;
            ftl.write_request(page, 1, &mut NoSink)?;
        }
        ftl.audit().unwrap_or_else(|error| panic!("{}: {error}", S::ENTRY.name));
        Ok(ftl.counts())
    }
}

fn geometry(blocks: u32, reserve_blocks: u32, block_pages: u32, share: f64) -> Geometry {
    let logical_pages = (f64::from(blocks * block_pages) * share) as u32;
    let space = Space::Fixed { blocks, reserve_blocks, idle_blocks: reserve_blocks };
    Geometry { logical_pages, block_pages, space }
}

#[test]
fn every_scheme_starts_filled() {
    let geometry = geometry(200, 4, 32, 0.6);
    for entry in separation::entries() {
        let run = Run { geometry, fill: (120, 3600), writes: 20_000 };
        let counts = visit(entry.name, &[], run).unwrap();
        let counts = counts.unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        assert_eq!(counts.user_pages, 20_000);
        assert!(counts.collections > 0, "{}", entry.name);
    }
}

/// A plane of MQSim's B4: 512 blocks of 256 pages, 80 % of 93 % filled, 25 kept free.
#[test]
fn write_amplification_is_steady_from_the_start() {
    let geometry = geometry(512, 25, 256, 0.93);
    let pages = (0.8 * f64::from(geometry.logical_pages)) as u32;
    let valid = f64::from(pages) / (256.0 * (512.0 - 27.0));
    let theory = cachewright_ftl::theory::greedy(1.0 / valid, 256);
    for writes in [62_500, 400_000] {
        let run = Run { geometry, fill: (512 - 27, pages), writes };
        let found = visit("2r", &[], run).unwrap().unwrap().write_amplification();
        assert!((found / theory - 1.0).abs() < 0.03, "{writes}: {found}, theory {theory}");
    }
}

#[test]
fn more_than_the_drive_holds_is_refused() {
    let geometry = geometry(100, 4, 32, 0.9);
    for fill in [(99, 100), (95, 2890)] {
        let run = Run { geometry, fill, writes: 0 };
        let error = visit("none", &[], run).unwrap().unwrap_err().to_string();
        assert!(error.contains("filled"), "{error}");
    }
}

/// A superblock chosen from outside is emptied like any victim.
#[test]
fn a_superblock_can_be_cleaned_by_choice() {
    struct Moves(u32, Vec<u32>);
    impl Sink for Moves {
        fn relocate(&mut self, _: u32, from: Address, _: Address) {
            self.0 += u32::from(from.block == 3);
        }
        fn erase(&mut self, block: u32) {
            self.1.push(block);
        }
    }
    let geometry = geometry(100, 4, 32, 0.8);
    let fill = Arc::new(Fill::steady(32, 90, 2000));
    let reclaim = by_name("greedy", &[], &geometry, Seed(1)).unwrap();
    let none = cachewright_ftl::separation::none::None;
    let mut ftl: Ftl<_, Lazy> = Ftl::filled(geometry, none, reclaim, &fill, 0).unwrap();
    let mut moves = Moves(0, Vec::new());
    assert!(ftl.clean(3, &mut moves));
    assert_eq!((moves.0, moves.1), (fill.valid(3), vec![3]));
    assert!(!ftl.clean(3, &mut Moves(0, Vec::new())), "it is free now");
    assert!(ftl.audit().is_ok());
}
