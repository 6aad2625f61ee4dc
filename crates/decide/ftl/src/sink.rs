//! What flash has to do, told as it is decided.
//!
//! For: the one way out of the translation layer. Must never know: what performs it. A model of an
//! SSD prices these moves, a live store performs them, studies of write amplification ignore them
//! at no cost. Order matters: a page is programmed before the superblock of its old copy is erased.

/// A physical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// Superblock.
    pub block: u32,
    /// Page within it.
    pub offset: u32,
}

/// The receiver of moves. Every method does nothing unless it is overridden.
pub trait Sink {
    /// Whether [`Sink::keep`] is asked.
    const MAY_DROP: bool = false;

    /// Whether a valid page of a victim is moved; otherwise the drive forgets it, as by a trim. A
    /// cache may drop a clean page whose block it then forgets.
    #[inline(always)]
    fn keep(&mut self, _page: u32, _address: Address) -> bool {
        true
    }

    /// A page from the host is programmed.
    #[inline(always)]
    fn program(&mut self, _page: u32, _to: Address) {}
    /// A valid page of a victim is read and programmed elsewhere.
    #[inline(always)]
    fn relocate(&mut self, _page: u32, _from: Address, _to: Address) {}
    /// A page of the separation's own metadata is programmed.
    #[inline(always)]
    fn program_meta(&mut self, _to: Address) {}
    /// A page of the separation's own metadata is read for a host write. It belongs to the page at
    /// this offset of this superblock, and lies in the same superblock.
    #[inline(always)]
    fn read_meta(&mut self, _of: Address) {}
    /// The separation took a step of its model for a page that the host writes. If `waits`, the
    /// host waits for the step.
    #[inline(always)]
    fn predict(&mut self, _page: u32, _waits: bool) {}
    /// A superblock is erased; nothing valid is left in it.
    #[inline(always)]
    fn erase(&mut self, _block: u32) {}
}

/// Ignores all work.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {}
