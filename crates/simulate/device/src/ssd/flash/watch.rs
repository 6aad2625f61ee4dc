//! What each physical page holds, for tests.
//!
//! For: the proof that every read finds its page. Programs and erases are noted when they end. Each
//! sensed page is compared with the page that its reader expects. Must never know: why a page is
//! read. Memory: an entry per page programmed. Units: pages.

use super::ids::{LogicalPage, PhysicalPage, PlaneId};
use hashbrown::{HashMap, HashSet};

/// Pages programmed and blocks erased since the start.
#[derive(Clone, Debug, Default)]
pub struct ContentsWatch {
    pages: HashMap<PhysicalPage, LogicalPage, foldhash::fast::FixedState>,
    erased: HashSet<(PlaneId, u32), foldhash::fast::FixedState>,
    pages_per_block: u32,
    checked: u64,
    wrong: Option<String>,
}

impl ContentsWatch {
    /// Nothing is known yet of blocks of so many pages.
    pub fn new(pages_per_block: u32) -> ContentsWatch {
        ContentsWatch { pages_per_block, ..ContentsWatch::default() }
    }

    /// A page was sensed by a reader that wants a logical page.
    pub fn sensed(&mut self, place: PhysicalPage, wanted: LogicalPage) {
        self.checked += 1;
        let held = self.pages.get(&place);
        let right = match held {
            Some(held) => *held == wanted,
            None => !self.erased.contains(&(place.plane, place.block)),
        };
        if !right {
            let words = format!("{place:?} holds {held:?}, its reader wants {wanted:?}");
            self.wrong.get_or_insert(words);
        }
    }

    /// A page has been programmed; programming one twice between erases is wrong too.
    pub fn programmed(&mut self, place: PhysicalPage, page: LogicalPage) {
        if let Some(held) = self.pages.insert(place, page) {
            let words = format!("{place:?} held {held:?} and was programmed again");
            self.wrong.get_or_insert(words);
        }
    }

    /// A block has been erased.
    pub fn erased(&mut self, plane: PlaneId, block: u32) {
        self.erased.insert((plane, block));
        for page in 0..self.pages_per_block {
            self.pages.remove(&PhysicalPage { plane, block, page });
        }
    }

    /// Pages compared so far.
    pub fn checked(&self) -> u64 {
        self.checked
    }

    /// The first page found wrong.
    pub fn audit(&self) -> Result<(), String> {
        self.wrong.clone().map_or(Ok(()), Err)
    }
}
