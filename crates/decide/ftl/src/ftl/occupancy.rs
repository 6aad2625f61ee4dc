//! How many pages a drive holds, and how many of them are of no use.
//!
//! For: counts of a drive's pages as it is written, trimmed and cleaned. Must never know: which
//! page or superblock. Units: pages. Invariants (audited by `ftl`): stored pages are those in
//! superblocks, valid or not; garbage is what is invalid in sealed superblocks.

/// Counts of pages, and what becomes of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Occupancy {
    mapped: u32,
    stored: u64,
    garbage: u64,
}

impl Occupancy {
    /// The host wrote a page; `rewrite` where it held data before.
    #[inline(always)]
    pub(super) fn write(&mut self, rewrite: bool) {
        self.mapped += u32::from(!rewrite);
        self.stored += 1;
    }

    /// A logical page no longer holds data.
    pub(super) fn unmap(&mut self) {
        self.mapped -= 1;
    }

    /// A page became invalid; `sealed` where its superblock is.
    #[inline(always)]
    pub(super) fn invalidate(&mut self, sealed: bool) {
        self.garbage += u64::from(sealed);
    }

    /// An open superblock takes pages without data of the host.
    pub(super) fn store(&mut self, pages: u32) {
        self.stored += u64::from(pages);
    }

    /// A superblock is sealed: its invalid pages are garbage from now on.
    pub(super) fn seal(&mut self, invalid: u32) {
        self.garbage += u64::from(invalid);
    }

    /// A superblock is erased; its valid pages have moved.
    pub(super) fn erase(&mut self, invalid: u32) {
        self.garbage -= u64::from(invalid);
        self.stored -= u64::from(invalid);
    }

    /// So many logical pages hold data from the start.
    pub(super) fn fill(&mut self, mapped: u32) {
        self.mapped = mapped;
    }

    pub(super) fn mapped(&self) -> u32 {
        self.mapped
    }

    pub(super) fn stored(&self) -> u64 {
        self.stored
    }

    pub(super) fn garbage(&self) -> u64 {
        self.garbage
    }

    /// Stored pages that are not garbage.
    #[inline(always)]
    pub(super) fn live(&self) -> u64 {
        self.stored - self.garbage
    }

    /// Garbage among the stored pages.
    #[inline(always)]
    pub(super) fn garbage_share(&self) -> f64 {
        self.garbage as f64 / self.stored as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_a_superblock_from_its_first_page_to_its_erase() {
        let mut pages = Occupancy::default();
        pages.write(false);
        pages.write(true);
        pages.invalidate(false);
        assert_eq!((pages.mapped(), pages.stored(), pages.garbage()), (1, 2, 0));
        // One of four pages holds metadata.
        pages.store(2);
        pages.seal(2);
        pages.invalidate(true);
        pages.unmap();
        assert_eq!((pages.mapped(), pages.live(), pages.garbage_share()), (0, 1, 0.75));
        pages.erase(3);
        assert_eq!((pages.stored(), pages.garbage()), (1, 0));
    }
}
