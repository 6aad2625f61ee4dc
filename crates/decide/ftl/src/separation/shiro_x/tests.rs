//! Tests of shiro-x on a drive.

use super::*;
use crate::separation::none::None as Unseparated;
use crate::{Address, Ftl, NoSink, Space, reclaim};
use cachewright_types::seed::mix;

const PAGES: u32 = 16384;

fn geometry() -> Geometry {
    let space = Space::Fixed { blocks: 150, reserve_blocks: 2, idle_blocks: 2 };
    Geometry { logical_pages: PAGES, block_pages: 128, space }
}

fn drive<S: Registered>(reclaim: &str) -> Ftl<S>
where
    S::Settings: Default,
{
    let scheme = S::new(&geometry(), &S::Settings::default(), Seed(1));
    let reclaim = reclaim::by_name(reclaim, &[], &geometry(), Seed(1)).unwrap();
    Ftl::new(geometry(), scheme, reclaim).unwrap()
}

/// A fill, then a journal over 16 pages (overwritten every 32 writes) between random pages.
fn page_of(write: u32) -> u32 {
    match write.checked_sub(PAGES) {
        None => write,
        Some(n) if n % 2 == 0 => n / 2 % 16,
        Some(n) => 64 + (mix(u64::from(n)) % 16320) as u32,
    }
}

/// Streams and addresses of so many writes; every 97th is followed by a trim.
fn run(ftl: &mut Ftl<ShiroX>, writes: u32, page: impl Fn(u32) -> u32) -> Vec<(Stream, Address)> {
    let mut placed = Vec::new();
    for write in 0..writes {
        let page = page(write);
        ftl.write_request(page, 1, &mut NoSink).unwrap();
        let at = ftl.locate(page).unwrap().unwrap();
        placed.push((ftl.blocks().get(at.block).stream, at));
        if write % 97 == 0 {
            ftl.trim(page, 1).unwrap();
        }
    }
    placed
}

#[test]
fn nothing_looks_ahead() {
    for reclaim in ["cost-benefit", "death-rate"] {
        let cut = 5 * PAGES + 77;
        let other = |write: u32| if write < cut { page_of(write) } else { write * 7 % PAGES };
        let (mut one, mut two) = (drive::<ShiroX>(reclaim), drive::<ShiroX>(reclaim));
        let (a, b) = (run(&mut one, 7 * PAGES, page_of), run(&mut two, 7 * PAGES, other));
        assert_eq!(a[..cut as usize], b[..cut as usize]);
        assert_ne!(a, b, "the futures differ");
        assert_ne!(one.counts(), two.counts());
        assert!(one.separation().windows() > 60);
        assert_eq!(one.audit(), Ok(()));
    }
}

#[test]
fn the_same_writes_are_placed_the_same() {
    let place = || run(&mut drive("death-rate"), 4 * PAGES, page_of);
    assert_eq!(place(), place());
}

#[test]
fn a_journal_is_parted_from_random_pages() {
    let mut ftl = drive::<ShiroX>("cost-benefit");
    let placed = run(&mut ftl, 9 * PAGES, page_of);
    let late = placed.iter().enumerate().skip(6 * PAGES as usize);
    let journal = |n: usize| n.is_multiple_of(2);
    let right = late.clone().filter(|(n, (stream, _))| journal(*n) == (stream.0 == 0)).count();
    assert!(right as f64 > 0.98 * late.count() as f64, "{right}");
    let mut plain = drive::<Unseparated>("cost-benefit");
    for write in 0..9 * PAGES {
        plain.write_request(page_of(write), 1, &mut NoSink).unwrap();
    }
    let (found, without) = (ftl.counts().moved_pages, plain.counts().moved_pages);
    assert!(2 * found < without, "moved {found}, without separation {without}");
    // Beside 6 bytes: 4 drives of 2048 pages and 150 superblocks of 16 pages and about 90 bytes,
    // with 32 KiB of death rates each for `death-rate`; `cost-benefit` has none.
    let trials = 4.0 * (2048.0 + 150.0 * 16.0) * 4.0 / f64::from(PAGES);
    let bytes = ftl.separation().metadata_bytes_per_page() - 6.0 - trials;
    let others = bytes * f64::from(PAGES) / 4.0 / 150.0;
    assert!((60.0..120.0).contains(&others), "{others} bytes per superblock in small");
}

/// Before a window has ended, the host's pages are on the first stream, moved ones on the fourth.
#[test]
fn untaught_it_parts_moved_pages_only() {
    let mut scheme = ShiroX::new(&geometry(), &ShiroXSettings::default(), Seed(1));
    let write = super::super::fixtures::write(9, 1);
    assert_eq!(scheme.place_user(&write), Stream(0));
    let victim = crate::Block::default();
    let moved = |page| super::super::fixtures::moved(page, &victim, 5);
    assert_eq!(scheme.place_moved(&moved(9)), Stream(3));
    assert_eq!(scheme.place_moved(&moved(8)), Stream(3), "it was never written");
}

/// Everything that the compact form holds, counted: at most 4 bytes per page, on drives with trials
/// (superblocks of 2048 pages and more) and without.
#[test]
fn the_compact_form_takes_at_most_four_bytes_per_page() {
    let settings = ShiroXSettings { compact: true, ..ShiroXSettings::default() };
    for (block_pages, trials) in [(128, false), (1024, false), (2048, true)] {
        let pages = 1 << 20;
        let geometry = Geometry::with_over_provisioning(pages, block_pages, 0.28, 4);
        let reclaim = reclaim::by_name("death-rate", &[], &geometry, Seed(1)).unwrap();
        let mut scheme = ShiroX::new(&geometry, &settings, Seed(1));
        scheme.on_reclaim(&reclaim);
        // Enough writes that every list in the small drives is in use.
        for clock in 1..1_500_000_u64 {
            let page = (mix(clock) % u64::from(pages)) as u32;
            scheme.place_user(&super::super::fixtures::write(page, clock));
        }
        let held = scheme.held_bytes() as f64 / f64::from(pages);
        assert!((3.0..=4.0).contains(&held), "{block_pages}: {held}");
        assert_eq!(scheme.trials.held_bytes() > 0, trials);
        assert!(scheme.metadata_bytes_per_page() <= held);
        assert_eq!(scheme.windows(), 14);
    }
}

/// The compact form parts a journal from random pages as the full one does, and moves few more.
#[test]
fn the_compact_form_moves_about_as_much() {
    let moved = |compact: bool| {
        let settings = ShiroXSettings { compact, trials: false, ..ShiroXSettings::default() };
        let scheme = ShiroX::new(&geometry(), &settings, Seed(1));
        let reclaim = reclaim::by_name("death-rate", &[], &geometry(), Seed(1)).unwrap();
        let mut ftl = Ftl::new(geometry(), scheme, reclaim).unwrap();
        run(&mut ftl, 9 * PAGES, page_of);
        assert_eq!(ftl.audit(), Ok(()));
        ftl.counts().moved_pages as f64
    };
    let ratio = moved(true) / moved(false);
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
}
