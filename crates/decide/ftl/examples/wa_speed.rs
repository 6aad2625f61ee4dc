//! Write amplification and speed of every scheme on the synthetic streams.
//!
//! For: `cargo run --release -p cachewright-ftl --example wa_speed -- KIND PAGES DRIVE_WRITES SPACE
//! SEPARATIONS RECLAIMS`, SPACE being `share:0.15:1024` (garbage share, pages per superblock) or
//! `fixed:1024:4:1024` (superblocks, kept free, pages per superblock); schemes in commas or `all`.
//! Must never know: what a scheme decides. Units: pages written by the host per second of processor
//! time; the whole run counts, the stream is made beforehand.

mod common;

use cachewright_ftl::reclaim::{self, by_name};
use cachewright_ftl::separation::future::lifetimes;
use cachewright_ftl::separation::{self, Registered, SeparationVisitor, visit};
use cachewright_ftl::{Ftl, FtlCounts, FtlError, Geometry, Need, NoSink, Space, workload};
use cachewright_types::Seed;
use common::Clock;

struct Run<'a> {
    geometry: Geometry,
    reclaim: &'a str,
    pages: &'a [u32],
    lifetimes: &'a [u32],
}

impl SeparationVisitor for Run<'_> {
    type Output = Result<(FtlCounts, FtlCounts, f64, f64), FtlError>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let separation = S::new(&self.geometry, &settings, Seed(1));
        let reclaim = by_name(self.reclaim, &[], &self.geometry, Seed(1))?;
        let mut ftl = Ftl::new(self.geometry, separation, reclaim)?;
        let known = S::ENTRY.needs.contains(&Need::Future);
        let lifetimes = if known { self.lifetimes } else { &[] };
        let start = Clock::start();
        let warm = (11 * self.geometry.logical_pages as usize).min(self.pages.len());
        let (before, after) = lifetimes.split_at(warm.min(lifetimes.len()));
        ftl.write_each(&self.pages[..warm], before, &mut NoSink)?;
        let middle = ftl.counts();
        ftl.write_each(&self.pages[warm..], after, &mut NoSink)?;
        let seconds = start.seconds();
        let bytes = ftl.separation().metadata_bytes_per_page();
        Ok((ftl.counts(), ftl.counts() - middle, seconds, bytes))
    }
}

fn space(text: &str) -> Option<(Space, u32)> {
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        ["share", share, pages] => {
            Some((Space::GarbageShare { share: share.parse().ok()? }, pages.parse().ok()?))
        }
        ["fixed", blocks, reserve, pages] => {
            let reserve_blocks = reserve.parse().ok()?;
            let blocks = blocks.parse().ok()?;
            let space = Space::Fixed { blocks, reserve_blocks, idle_blocks: reserve_blocks };
            Some((space, pages.parse().ok()?))
        }
        _ => None,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize, default: &str| -> String {
        words.get(index).cloned().unwrap_or_else(|| default.to_owned())
    };
    let kind = word(0, "zipf1");
    let logical_pages: u32 = word(1, "976562").parse()?;
    let drive_writes: f64 = word(2, "20").parse()?;
    let (space, block_pages) = space(&word(3, "share:0.15:1024")).ok_or("unknown space")?;
    let overwrites = (f64::from(logical_pages) * drive_writes) as usize;
    let pages = workload::generate(&kind, logical_pages, overwrites).ok_or("unknown kind")?;
    let known = lifetimes(&pages, logical_pages);
    let geometry = Geometry { logical_pages, block_pages, space };
    let chosen = |names: String, all: Vec<&'static str>| -> Vec<&'static str> {
        let wanted = |name: &&str| names == "all" || names.split(',').any(|word| word == *name);
        all.into_iter().filter(wanted).collect()
    };
    let separations = separation::entries().iter().map(|entry| entry.name).collect();
    let reclaims = reclaim::entries().iter().map(|entry| entry.name).collect();
    let (separations, reclaims) =
        (chosen(word(4, "all"), separations), chosen(word(5, "cost-benefit"), reclaims));
    println!("{kind}, {logical_pages} pages, {drive_writes} drive writes, {space:?}");
    println!(
        "separation        reclaim             WA   WA steady  collections  Mwrites/s   B/page"
    );
    for separation in &separations {
        for reclaim in &reclaims {
            let run = Run { geometry, reclaim, pages: &pages, lifetimes: &known };
            let (all, steady, seconds, bytes) = visit(separation, &[], run)??;
            println!(
                "{separation:17} {reclaim:15} {:7.4}  {:10.4}  {:11}  {:9.2}  {bytes:7.1}",
                all.write_amplification(),
                steady.write_amplification(),
                all.collections,
                pages.len() as f64 / seconds / 1e6,
            );
        }
    }
    Ok(())
}
