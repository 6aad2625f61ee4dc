//! MiDAS against its own simulator: the model alone, whole runs, behaviour on small drives.
//!
//! For: the numbers of the reference runs. Must never know: how the search goes. The reference
//! simulator finds its configurations in a thread, at a moment that differs from run to run; what
//! that explains is named at the rows. Whole rows take minutes without optimisation and are run by
//! `cargo test --release -p cachewright-ftl --test suite midas:: -- --ignored --nocapture`.

#![allow(clippy::unwrap_used)] // tests may panic

use cachewright_ftl::reclaim::by_name;
use cachewright_ftl::separation::midas::Distribution;
use cachewright_ftl::separation::midas::Intervals;
use cachewright_ftl::separation::midas::{Chain, Hot};
use cachewright_ftl::separation::midas::{Midas, MidasSettings};
use cachewright_ftl::separation::{Registered, SeparationVisitor, visit};
use cachewright_ftl::{Ftl, FtlCounts, FtlError, Geometry, NoSink, Space, workload};
use cachewright_testkit::reference_data;
use cachewright_types::Seed;

fn fixed(logical_pages: u32, blocks: u32, block_pages: u32) -> Geometry {
    let space = Space::Fixed { blocks, reserve_blocks: 4, idle_blocks: 4 };
    Geometry { logical_pages, block_pages, space }
}

/// Runs cost-benefit under any separation; all writes, and those after `warm` drive writes.
struct Run<'a> {
    geometry: Geometry,
    pages: &'a [u32],
    warm: usize,
}

impl SeparationVisitor for Run<'_> {
    type Output = Result<(FtlCounts, FtlCounts), FtlError>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let separation = S::new(&self.geometry, &settings, Seed(1));
        let reclaim = by_name("cost-benefit", &[], &self.geometry, Seed(1))?;
        let mut ftl = Ftl::new(self.geometry, separation, reclaim)?;
        let (before, after) = self.pages.split_at(self.warm * self.geometry.logical_pages as usize);
        ftl.write_each(before, &[], &mut NoSink)?;
        let middle = ftl.counts();
        ftl.write_each(after, &[], &mut NoSink)?;
        assert_eq!(ftl.audit(), Ok(()));
        Ok((ftl.counts(), ftl.counts() - middle))
    }
}

fn run(separation: &str, geometry: Geometry, pages: &[u32], warm: usize) -> (f64, f64) {
    let run = Run { geometry, pages, warm };
    let (all, steady) = visit(separation, &[], run).unwrap().unwrap();
    (all.write_amplification(), steady.write_amplification())
}

/// The first configuration that the reference chooses on `zipf1`: its valid shares are 0.6882,
/// 0.7825, 0.8319, 0.8950 and its write amplification 3.896; a second implementation of the model
/// gives 0.8957 and 3.908 for the last (it does not add up the two classes over calls).
#[test]
fn the_model_gives_the_numbers_of_the_reference() {
    const PAGES: u32 = 976_562;
    let mut intervals = Intervals::new(PAGES, 256, 100, 2 * u64::from(PAGES), 16_384);
    let writes = 2 * PAGES as usize + 16_384 * 256;
    for page in workload::generate("zipf1", PAGES, writes - PAGES as usize).unwrap() {
        intervals.written(page);
    }
    assert!(intervals.finished());
    let chain = Chain {
        distribution: Distribution::new(&intervals.counts(), 0.25),
        live_pages: f64::from(PAGES),
        block_pages: 1024.0,
    };
    let Some(Hot::Ideal { units, blocks: 6, .. }) = Hot::of_size(&chain.distribution, 6) else {
        panic!("the hot group takes {:?}", Hot::of_size(&chain.distribution, 6));
    };
    let hot = Hot::Ideal { units, blocks: 6, held: true };
    let found = chain.predict(hot, &[39, 53, 59, 863]).unwrap();
    println!("{found:?}");
    for (found, expected) in found.valid.iter().zip([0.6882, 0.7825, 0.8319, 0.8957]) {
        assert!((found - expected).abs() < 1e-4, "{found} for {expected}");
    }
    assert!((found.write_amplification - 3.908).abs() < 1e-3, "{found:?}");
}

/// Total write amplification of the reference simulator on a drive of 1024 superblocks of 1024
/// pages. On `mix3` it predicts 4.0, gets 6.3 to 7.0 and rolls back; when that happens depends on
/// its thread, and here the trial is not doubled with the window: 6 % are allowed.
#[test]
#[ignore = "minutes without optimisation"]
fn whole_runs_agree_with_the_reference() {
    let rows = [
        ("zipf1", 3.8595, 0.01),
        ("hc8020", 6.7905, 0.01),
        ("mix3", 5.153, 0.06),
        ("zipfshift", 4.0835, 0.01),
        ("uniform", 7.728, 0.01),
    ];
    for (kind, expected, slack) in rows {
        let pages = workload::generate(kind, 976_562, 20 * 976_562).unwrap();
        let (found, steady) = run("midas", fixed(976_562, 1024, 1024), &pages, 11);
        println!("{kind}: {found:.4} (steady {steady:.4}), reference {expected}");
        assert!((found / expected - 1.0).abs() < slack, "{kind}: {found} for {expected}");
    }
}

/// The same with 28 % of over-provisioning, against an independent simulator; `mix3` ends 1.3 %
/// lower than there.
#[test]
#[ignore = "minutes without optimisation"]
fn whole_runs_with_more_room_agree_as_well() {
    let rows = [("zipf1", 1.674, 0.01), ("hc8020", 2.170, 0.01), ("mix3", 1.953, 0.02)];
    for (kind, expected, slack) in rows {
        let pages = workload::generate(kind, 976_562, 20 * 976_562).unwrap();
        let (found, _) = run("midas", fixed(976_562, 1225, 1024), &pages, 11);
        println!("{kind}: {found:.4}, reference {expected}");
        assert!((found / expected - 1.0).abs() < slack, "{kind}: {found} for {expected}");
    }
}

/// The 4 KiB blocks that the CloudPhysics sample writes, numbered in their order on the disk:
/// 32-byte records of sequence, bytes, elements, command (42 writes), version, sector, time.
fn cloudphysics() -> Option<(Vec<u32>, u32)> {
    let sample = "traces/public/cloudphysics-libcachesim/cloudPhysicsIO.vscsi.zst";
    let file = std::fs::File::open(reference_data(sample)?).unwrap();
    let raw = zstd::decode_all(file).unwrap();
    let mut blocks = Vec::new();
    for record in raw.chunks_exact(32).filter(|record| record[12] == 42) {
        let bytes = u32::from_le_bytes(record[4..8].try_into().unwrap());
        let first = u64::from_le_bytes(record[16..24].try_into().unwrap()) * 512;
        blocks.extend(first / 4096..=(first + u64::from(bytes) - 1) / 4096);
    }
    let mut numbers = blocks.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let dense = |block: &u64| numbers.binary_search(block).unwrap() as u32;
    Some((blocks.iter().map(dense).collect(), numbers.len() as u32))
}

/// The sample after a fill, looped to 41 drive writes; steady from drive write 21 on.
#[test]
#[ignore = "minutes without optimisation"]
fn a_looped_real_trace_agrees_with_the_reference() {
    let Some((blocks, count)) = cloudphysics() else { return };
    assert_eq!((blocks.len(), count), (656_169, 208_696));
    let overwrites = blocks.iter().copied().cycle().take(40 * count as usize);
    let pages: Vec<u32> = (0..count).chain(overwrites).collect();
    let geometry = fixed(count, 876, 256);
    for (separation, expected) in [("mida", 1.959), ("midas", 1.946)] {
        let (_, steady) = run(separation, geometry, &pages, 21);
        println!("{separation}: {steady:.4}, reference {expected}");
        assert!((steady / expected - 1.0).abs() < 0.01, "{separation}: {steady}");
    }
}

/// With room to use, groups form and write less than counting moves does.
#[test]
fn groups_form_and_pay() {
    let pages = workload::generate("zipf1", 60_000, 12 * 60_000).unwrap();
    let geometry = fixed(60_000, 300, 256);
    let (_, midas) = run("midas", geometry, &pages, 8);
    let (_, mida) = run("mida", geometry, &pages, 8);
    println!("midas {midas:.4}, mida {mida:.4}");
    assert!(midas < 0.97 * mida, "{midas} for {mida}");

    let settings = MidasSettings::default();
    let reclaim = by_name("cost-benefit", &[], &geometry, Seed(1)).unwrap();
    let mut ftl = Ftl::new(geometry, Midas::new(&geometry, &settings, Seed(1)), reclaim).unwrap();
    ftl.write_each(&pages, &[], &mut NoSink).unwrap();
    let midas = ftl.separation();
    let found = midas.last_configuration().unwrap();
    assert_eq!(found.sizes.iter().sum::<u32>(), 296, "all but the reserve: {found:?}");
    assert_eq!(midas.last_group(), (found.sizes.len() as u8 - 1, false));
}
