//! Physical pages that will be programmed, and by which transaction.
//!
//! For: where the data of a page is before it is on flash. Must never know: time, turns. Units:
//! pages.

use super::ids::{PhysicalPage, PlaneId, WorkId};
use super::shape::FlashShape;
use hashbrown::HashMap;

/// Programs that are to come.
#[derive(Clone, Debug)]
pub struct PendingPrograms {
    /// By the number of the physical page.
    writers: HashMap<u32, WorkId, foldhash::fast::FixedState>,
    blocks_per_plane: u32,
    pages_per_block: u32,
}

impl PendingPrograms {
    /// No program is to come.
    pub fn new(shape: &FlashShape) -> PendingPrograms {
        PendingPrograms {
            writers: HashMap::default(),
            blocks_per_plane: shape.blocks_per_plane,
            pages_per_block: shape.pages_per_block,
        }
    }

    /// The number of a physical page.
    #[inline]
    fn number(&self, page: PhysicalPage) -> u32 {
        (page.plane.0 * self.blocks_per_plane + page.block) * self.pages_per_block + page.page
    }

    /// A page will be programmed.
    #[inline]
    pub fn insert(&mut self, page: PhysicalPage, writer: WorkId) {
        let number = self.number(page);
        self.writers.insert(number, writer);
    }

    /// The transaction that will program a page, if there is one.
    #[inline]
    pub fn writer(&self, page: PhysicalPage) -> Option<WorkId> {
        self.writers.get(&self.number(page)).copied()
    }

    /// A transaction has programmed a page, which another may be about to program again.
    #[inline]
    pub fn remove(&mut self, page: PhysicalPage, writer: WorkId) {
        let number = self.number(page);
        if self.writers.get(&number) == Some(&writer) {
            self.writers.remove(&number);
        }
    }

    /// The transactions that will program pages of a block.
    pub fn writers_of(&self, plane: PlaneId, block: u32) -> impl Iterator<Item = WorkId> {
        let pages = if self.writers.is_empty() { 0 } else { self.pages_per_block };
        (0..pages).filter_map(move |page| self.writer(PhysicalPage { plane, block, page }))
    }

    /// Pages to program.
    pub fn len(&self) -> usize {
        self.writers.len()
    }

    /// Each page is the target of the transaction that will program it.
    pub fn audit(&self, target: impl Fn(WorkId) -> PhysicalPage) -> Result<(), String> {
        for (number, id) in &self.writers {
            let found = self.number(target(*id));
            if found != *number {
                return Err(format!("physical page {number} is written by work on page {found}"));
            }
        }
        Ok(())
    }
}
