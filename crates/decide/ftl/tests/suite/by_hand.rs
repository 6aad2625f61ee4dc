//! Cases small enough to be worked by hand, and what a drive refuses.
//!
//! For: the order of events. Must never know: schemes beyond the simplest. Units: pages.

use cachewright_ftl::reclaim::by_name;
use cachewright_ftl::separation::none::None;
use cachewright_ftl::separation::two_region::TwoRegion;
use cachewright_ftl::{
    Address, Ftl, FtlError, Geometry, MovedPage, NoSink, Separation, Sink, Space, Stream,
    Superblocks, VictimSource, Write,
};
use cachewright_types::Seed;

/// What flash was told, in words.
#[derive(Default)]
struct Log(Vec<String>);

impl Sink for Log {
    fn program(&mut self, page: u32, to: Address) {
        self.0.push(format!("program {page} at {}:{}", to.block, to.offset));
    }
    fn relocate(&mut self, page: u32, from: Address, to: Address) {
        let (from, to) = ((from.block, from.offset), (to.block, to.offset));
        self.0.push(format!("move {page} from {from:?} to {to:?}"));
    }
    fn erase(&mut self, block: u32) {
        self.0.push(format!("erase {block}"));
    }
}

fn drive<S: Separation>(
    separation: S,
    blocks: u32,
    logical_pages: u32,
) -> Result<Ftl<S>, FtlError> {
    let space = Space::Fixed { blocks, reserve_blocks: 2, idle_blocks: 3 };
    let geometry = Geometry { logical_pages, block_pages: 2, space };
    let greedy = by_name("greedy", &[], &geometry, Seed(0))?;
    Ftl::with_name(geometry, separation, "tried", greedy)
}

/// Superblocks of 2 pages, 6 of them, 6 logical pages, 2 kept free. Writing 0 1 2 3 4 5 0 2 fills
/// superblocks 0 to 3, and the first two lose a page each. The ninth write finds 2 free, which is
/// enough, and opens 4; it overwrites 1, so superblock 0 is all invalid. The tenth finds 1 free: 0
/// is erased without a move, then the write fills 4. The next opens 5, the one free for longest.
#[test]
fn the_emptiest_superblock_is_erased_when_free_ones_run_short() {
    let mut ftl = drive(None, 6, 6).unwrap();
    let mut log = Log::default();
    ftl.write_each(&[0, 1, 2, 3, 4, 5, 0, 2, 1], &[], &mut log).unwrap();
    assert_eq!((ftl.free_blocks(), log.0.len()), (1, 9));
    log.0.clear();
    ftl.write_each(&[4, 3], &[], &mut log).unwrap();
    assert_eq!(log.0, ["erase 0", "program 4 at 4:1", "program 3 at 5:0"]);
    let counts = ftl.counts();
    assert_eq!((counts.user_pages, counts.moved_pages, counts.collections), (11, 0, 1));
    ftl.audit().unwrap();
}

/// Two regions, 7 superblocks of 2 pages, as above up to the ninth write, 4 being overwritten last:
/// superblocks 0 to 2 hold one valid page each (1, 3, 5). The eleventh finds 1 free. Among equals
/// the one that lost its page first is cleaned: page 1 opens superblock 6 for the second region, so
/// that 1 is free again; then page 3 joins it from superblock 1, and 2 are free.
#[test]
fn moved_pages_have_a_superblock_of_their_own() {
    let mut ftl = drive(TwoRegion, 7, 6).unwrap();
    let mut log = Log::default();
    ftl.write_each(&[0, 1, 2, 3, 4, 5, 0, 2, 4, 4, 0], &[], &mut log).unwrap();
    assert_eq!(ftl.free_blocks(), 1);
    log.0.clear();
    ftl.write_each(&[2], &[], &mut log).unwrap();
    let moves = ["move 1 from (0, 1) to (6, 0)", "erase 0", "move 3 from (1, 1) to (6, 1)"];
    assert_eq!(log.0[..3], moves);
    assert_eq!(log.0[3..], ["erase 1", "program 2 at 5:1"]);
    assert_eq!(ftl.counts().moved_pages, 2);
    ftl.audit().unwrap();
}

/// 8 superblocks: after 0 1 2 3 4 5 0 2 4 three are free, as many as idle time wants. After 4 and 5
/// two are, and superblock 2 holds nothing valid.
#[test]
fn idle_time_cleans_up_to_the_upper_watermark() {
    let mut ftl = drive(TwoRegion, 8, 6).unwrap();
    let mut log = Log::default();
    ftl.write_each(&[0, 1, 2, 3, 4, 5, 0, 2, 4], &[], &mut log).unwrap();
    assert_eq!((ftl.free_blocks(), ftl.clean_idle(9, &mut log)), (3, 0));
    ftl.write_each(&[4, 5], &[], &mut log).unwrap();
    log.0.clear();
    assert_eq!((ftl.free_blocks(), ftl.clean_idle(9, &mut log)), (2, 1));
    assert_eq!(log.0, ["erase 2"]);
    ftl.audit().unwrap();
}

#[test]
fn trimmed_pages_hold_nothing_and_are_not_moved() {
    let mut ftl = drive(None, 6, 6).unwrap();
    ftl.write_request(0, 6, &mut NoSink).unwrap();
    ftl.trim(0, 4).unwrap();
    ftl.trim(3, 1).unwrap();
    assert_eq!((ftl.counts().trimmed_pages, ftl.mapped_pages()), (4, 2));
    assert_eq!(ftl.locate(0).unwrap(), Option::None);
    ftl.write_request(0, 6, &mut NoSink).unwrap();
    assert_eq!(ftl.counts().moved_pages, 0);
    ftl.audit().unwrap();
}

/// Requests as large as the drive, in space without end: 10 superblocks of data, each request adds
/// 10 and may clean one when it ends; beyond twice the usual size room is made before.
#[test]
fn space_without_end_stays_within_bounds() {
    let space = Space::GarbageShare { share: 0.15 };
    let geometry = Geometry { logical_pages: 20, block_pages: 2, space };
    let greedy = by_name("greedy", &[], &geometry, Seed(0)).unwrap();
    let mut ftl = Ftl::new(geometry, None, greedy).unwrap();
    for _ in 0..100 {
        ftl.write_request(0, 20, &mut NoSink).unwrap();
    }
    ftl.audit().unwrap();
    assert_eq!(ftl.blocks().len(), 2 * 10 * 100 / 85 + 2 + 1);
}

#[test]
fn a_page_beyond_the_end_is_refused() {
    let mut ftl = drive(None, 6, 6).unwrap();
    let words = "found page 6, expected a page below 6: the drive ends there";
    assert_eq!(ftl.write_each(&[6], &[], &mut NoSink).unwrap_err().to_string(), words);
    assert_eq!(ftl.write_request(5, 2, &mut NoSink).unwrap_err().to_string(), words);
    assert_eq!(ftl.trim(0, 7).unwrap_err().to_string(), words);
    assert!(ftl.write_request(u32::MAX, u32::MAX, &mut NoSink).is_err());
    assert_eq!(ftl.counts().user_pages, 0, "nothing was written");
}

#[test]
fn a_drive_without_room_is_refused() {
    for blocks in [0, 3, 5] {
        assert!(drive(None, blocks, 6).is_err(), "{blocks} superblocks");
    }
    let error = drive(TwoRegion, 6, 6).err().unwrap().to_string();
    let words = "expected at least 7: 3 for the data, 2 kept free and 2 open for writing";
    assert!(error.ends_with(words), "{error}");
}

/// A reclaim policy that finds nothing: the drive says that it is full instead of waiting.
#[test]
fn a_drive_that_cannot_be_cleaned_says_so() {
    struct Nothing;
    impl cachewright_ftl::Reclaim for Nothing {
        fn score(&self, _: &cachewright_ftl::Block, _: &cachewright_ftl::Round<'_>) -> f64 {
            0.0
        }
    }
    let space = Space::Fixed { blocks: 6, reserve_blocks: 2, idle_blocks: 2 };
    let geometry = Geometry { logical_pages: 6, block_pages: 2, space };
    let (pairs, policy) = (Vec::new(), Box::new(Nothing));
    let named = cachewright_ftl::reclaim::Named { name: "nothing", pairs, policy };
    let mut ftl = Ftl::new(geometry, None, named).unwrap();
    let error = ftl.write_each(&[0; 20], &[], &mut NoSink).unwrap_err().to_string();
    let words = "the drive is full: 1 superblocks are free, expected 2, and `nothing` freed none";
    assert!(error.starts_with(words), "{error}");
    ftl.audit().unwrap();
}

/// A separation that has the same valid pages moved over and over: the drive gives up after eight
/// rounds per superblock and 64 more, and nothing it held is lost.
#[test]
fn a_drive_that_is_cleaned_in_vain_says_so() {
    struct InVain;
    impl Separation for InVain {
        fn streams(&self) -> u32 {
            1
        }
        fn place_user(&mut self, _: &Write) -> Stream {
            Stream(0)
        }
        fn place_moved(&mut self, _: &MovedPage<'_>) -> Stream {
            Stream(0)
        }
        fn choose_victim(&mut self, blocks: &mut Superblocks, _: u32, _: u64) -> VictimSource {
            let valid = blocks.sealed().find(|block| block.invalid == 0);
            valid.map_or(VictimSource::Any, |block| VictimSource::Block(block.id))
        }
        fn metadata_bytes_per_page(&self) -> f64 {
            0.0
        }
    }
    let mut ftl = drive(InVain, 6, 6).unwrap();
    let error = ftl.write_each(&[0, 1, 2, 3, 4, 5, 0, 2, 1, 4], &[], &mut NoSink).unwrap_err();
    let words = "the drive is full: 1 superblocks are free, expected 2, and `greedy` freed none in \
                 112 rounds";
    assert_eq!(error.to_string(), words);
    ftl.audit().unwrap();
    assert!((0..6).all(|page| ftl.locate(page).unwrap().is_some()));
    assert_eq!(ftl.counts().user_pages, 9);
}
