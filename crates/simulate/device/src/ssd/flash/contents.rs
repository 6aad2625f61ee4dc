//! What each physical page holds, for tests.
//!
//! For: the proof that every read finds its page: programs and erases are noted when they end, and
//! each page that is sensed is compared with what its reader expects. Must never know: why a page
//! is read. Memory: an entry per page programmed; kept only where [`Backend::watch_contents`] asked
//! for it. Units: pages.

use super::Backend;
use super::space::Local;
use super::transaction::{Id, Place, Purpose, Work};
use hashbrown::{HashMap, HashSet};

/// Pages programmed and blocks erased since the start.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pages: HashMap<u32, Local, foldhash::fast::FixedState>,
    erased: HashSet<u32, foldhash::fast::FixedState>,
    checked: u64,
    wrong: Option<String>,
}

impl Backend {
    /// From now on, checks that each page sensed holds what its reader wants; [`Backend::audit`]
    /// tells the first that did not. Pages that reads of unwritten ones were given hold nothing, so
    /// this is for devices that answer such reads with zeroes. To be called before any work.
    pub fn watch_contents(&mut self) {
        self.contents = Some(Box::default());
    }

    /// Pages compared so far.
    pub fn contents_checked(&self) -> u64 {
        self.contents.as_ref().map_or(0, |contents| contents.checked)
    }

    /// The logical page that work is about; nothing for metadata and erases.
    fn subject(&self, work: &Work) -> Option<Local> {
        match work.purpose {
            Purpose::HostRead | Purpose::HostWrite => {
                Some(self.space.of_page(work.group, work.page))
            }
            Purpose::MapRead | Purpose::MapWrite => Some(self.space.of_map(work.group, work.page)),
            Purpose::Move => {
                let layer = self.jobs.layer(work.job);
                Some(Local { group: work.group, layer, page: work.page })
            }
            Purpose::Meta | Purpose::Erase => None,
        }
    }

    fn block_key(&self, place: Place) -> u32 {
        place.plane * self.params.shape.blocks_per_plane + place.block
    }

    /// A page is sensed.
    pub(super) fn note_sensed(&mut self, id: Id) {
        let work = self.work[id];
        let Some(wanted) = self.subject(&work) else { return };
        let (key, block) = (self.key(work.source), self.block_key(work.source));
        let Some(contents) = &mut self.contents else { return };
        contents.checked += 1;
        let found = contents.pages.get(&key);
        let right = match found {
            Some(found) => *found == wanted,
            None => !contents.erased.contains(&block),
        };
        if !right {
            let place = work.source;
            let words = format!("{place:?} holds {found:?}, {:?} wants {wanted:?}", work.purpose);
            contents.wrong.get_or_insert(words);
        }
    }

    /// A page has been programmed; programming one twice between erases is wrong too.
    pub(super) fn note_programmed(&mut self, id: Id) {
        let work = self.work[id];
        let Some(subject) = self.subject(&work) else { return };
        let key = self.key(work.target);
        let Some(contents) = &mut self.contents else { return };
        if let Some(held) = contents.pages.insert(key, subject) {
            let words = format!("{:?} held {held:?} and was programmed again", work.target);
            contents.wrong.get_or_insert(words);
        }
    }

    /// A block has been erased.
    pub(super) fn note_erased(&mut self, place: Place) {
        let block = self.block_key(place);
        let first = self.key(Place { page: 0, ..place });
        let Some(contents) = &mut self.contents else { return };
        contents.erased.insert(block);
        for page in 0..self.params.shape.pages_per_block {
            contents.pages.remove(&(first + page));
        }
    }

    /// The first page found wrong.
    pub(super) fn audit_contents(&self) -> Result<(), String> {
        let wrong = self.contents.as_ref().and_then(|contents| contents.wrong.clone());
        wrong.map_or(Ok(()), Err)
    }
}
