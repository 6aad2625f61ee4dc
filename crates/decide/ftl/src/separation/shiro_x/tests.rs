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
    let bytes = 6.0 + 4.0 * 14.0 / 8.0;
    assert_eq!(ftl.separation().metadata_bytes_per_page(), bytes);
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
