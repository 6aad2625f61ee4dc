//! Separation: which pages share a superblock.
//!
//! For: the seam [`Separation`], its registry and static dispatch by name. Must never know: the
//! mapping, flash. Units: pages; moments and ages on the clock of host page writes, which counts a
//! write before it is placed. Adding a scheme is one file and one line in `separations!` below.
//!
//! Order of calls: `on_reclaim` once. For one host write: reclaim if due, clock + 1,
//! `on_invalidate` for the old copy, `place_user`. `on_seal` follows if the superblock is now full.
//! For one victim: `choose_victim`; `on_collect`; `place_moved` for each valid page in the order of
//! offsets; `on_erase`.

pub mod dac;
pub mod future;
pub mod learning;
pub mod mida;
pub mod midas;
pub mod multi_log;
pub mod none;
pub mod sepbit;
pub mod shiro;
pub mod shiro_x;
pub mod two_region;
pub mod warcip;

pub use crate::layer::{ShortLived, Stream};
use crate::reclaim::Named;
use crate::registry::Entry;
use crate::superblocks::{Block, Superblocks};
use crate::{FtlError, Geometry};
use cachewright_types::declare::Declared;
use cachewright_types::registry::{settings, unknown};
use cachewright_types::{Seed, Value};
use learning::{Classification, Statistics};

/// One request of the host, before its pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// First page.
    pub first_page: u32,
    /// Number of pages.
    pub pages: u32,
    /// Whether it writes; reads reach only this hook.
    pub write: bool,
}

/// One page written by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The page.
    pub page: u32,
    /// The clock, with this write counted.
    pub clock: u64,
    /// Whether the page was mapped before.
    pub rewrite: bool,
    /// Pages in superblocks without the invalid ones in sealed superblocks, this write not counted:
    /// what SepBIT's simulator takes for the number of valid pages.
    pub live_pages: u64,
    /// By how much the clock grows until this page is written again ([`crate::NEVER`] if it is not
    /// or that is unknown). Read only by schemes that declare [`crate::Need::Future`].
    pub lifetime: u32,
}

/// One valid page of a victim.
#[derive(Clone, Copy, Debug)]
pub struct MovedPage<'a> {
    /// The page.
    pub page: u32,
    /// Its offset in the victim.
    pub offset: u32,
    /// The victim as it was when it was chosen.
    pub victim: &'a Block,
    /// The clock.
    pub clock: u64,
}

/// The old copy of a page that was overwritten or trimmed.
#[derive(Clone, Copy, Debug)]
pub struct Invalidated<'a> {
    /// The page.
    pub page: u32,
    /// Offset of the old copy.
    pub offset: u32,
    /// The superblock it lies in, the copy already counted as invalid.
    pub block: &'a Block,
    /// The clock, with the overwriting page counted.
    pub clock: u64,
    /// Whether it was trimmed rather than overwritten.
    pub trimmed: bool,
}

/// What picks the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimSource {
    /// The reclaim policy, among all sealed superblocks.
    Any,
    /// The reclaim policy, among those of a set of streams (bit per stream); among all if it finds
    /// none there.
    Among(u64),
    /// This superblock; if it is not sealed, as [`VictimSource::Any`].
    Block(u32),
}

/// A scheme that gives each page its stream. The streams returned must be below `streams()`; a
/// higher one is taken as the last.
pub trait Separation: Send {
    /// Whether `on_invalidate` is called for overwrites, at the cost of a look at the superblock
    /// for each; it is called for every trim.
    const WATCHES_INVALIDATION: bool = false;
    /// Whether `meta_read` is called after each host write.
    const READS_META: bool = false;
    /// Whether `predicted` is called after each host write.
    const PREDICTS: bool = false;

    /// Streams in use, `1..=64`; constant.
    fn streams(&self) -> u32;

    /// Streams among them to which pages of the host may go; constant.
    fn user_streams(&self) -> u32 {
        self.streams()
    }

    /// Streams among them to which moved pages may go; constant.
    fn moved_streams(&self) -> u32 {
        self.streams()
    }

    /// Pages at the end of each superblock for the scheme's own metadata; constant. They count as
    /// flash writes.
    fn meta_pages(&self) -> u32 {
        0
    }

    /// The share of superblocks that hold one such page more, in `[0, 1)`; constant. So metadata
    /// of less than a page per superblock is charged in its proportion.
    fn meta_part(&self) -> f64 {
        0.0
    }

    /// The reclaim policy of the drive; called once, before anything is written.
    fn on_reclaim(&mut self, _reclaim: &Named) {}

    /// A request of the host begins.
    #[inline(always)]
    fn on_request(&mut self, _request: &HostRequest, _clock: u64) {}

    /// The stream of a page written by the host.
    fn place_user(&mut self, write: &Write) -> Stream;

    /// The stream of a valid page of a victim.
    fn place_moved(&mut self, page: &MovedPage<'_>) -> Stream;

    /// A copy became invalid through the host.
    #[inline(always)]
    fn on_invalidate(&mut self, _gone: &Invalidated<'_>) {}

    /// Whether the last `place_user` had to read metadata from flash (only under `READS_META`).
    fn meta_read(&mut self) -> bool {
        false
    }

    /// What picks the next victim, while `free` superblocks are free.
    fn choose_victim(
        &mut self,
        _blocks: &mut Superblocks,
        _free: u32,
        _clock: u64,
    ) -> VictimSource {
        VictimSource::Any
    }

    /// A victim is about to be emptied.
    fn on_collect(&mut self, _victim: &Block, _clock: u64) {}

    /// A victim was emptied and erased.
    fn on_erase(&mut self, _victim: &Block, _clock: u64) {}

    /// A superblock is full.
    fn on_seal(&mut self, _block: &Block) {}

    /// Whether the last `place_user` took a step of a model (only under `PREDICTS`), and if so
    /// whether the host's write waited for it.
    #[inline(always)]
    fn predicted(&mut self) -> Option<bool> {
        None
    }

    /// What came of the scheme's predictions of lifetimes; nothing if it makes none.
    fn classification(&self) -> Option<Classification> {
        None
    }

    /// What the scheme did to learn; nothing if it does not.
    fn learning(&self) -> Option<Statistics> {
        None
    }

    /// Classes for reclaim policies that ask.
    fn short_lived(&self) -> ShortLived {
        ShortLived::default()
    }

    /// State kept per logical page, in bytes; flash pages of metadata not counted.
    fn metadata_bytes_per_page(&self) -> f64;

    /// The part of [`Separation::metadata_bytes_per_page`] that is held in memory.
    fn memory_bytes_per_page(&self) -> f64 {
        self.metadata_bytes_per_page()
    }

    /// The scheme as one that learns, if it does.
    fn learner(&mut self) -> Option<&mut dyn shiro::Learner> {
        None
    }

    /// Loads a page's state ahead of its use; the value means nothing.
    #[inline(always)]
    fn touch(&self, _page: u32) -> u32 {
        0
    }

    /// Checks every invariant, slowly.
    fn audit(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A separation that stands in the registry.
pub trait Registered: Separation + Sized + 'static {
    /// Its settings, with defaults as in its source.
    type Settings: Declared;
    /// Its facts.
    const ENTRY: Entry;
    /// The scheme for an empty drive.
    fn new(geometry: &Geometry, settings: &Self::Settings, seed: Seed) -> Self;
}

/// Code that runs once the name of a separation has become its type.
pub trait SeparationVisitor {
    /// What the code returns.
    type Output;
    /// Called with the separation's type and checked settings.
    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output;
}

macro_rules! separations {
    ($($scheme:ty),* $(,)?) => {
        cachewright_types::registry!("separation": $($scheme),*);

        /// Runs `visitor` with the type registered as `name` and its checked settings.
        pub fn visit<V: SeparationVisitor>(
            name: &str,
            pairs: &[(String, Value)],
            visitor: V,
        ) -> Result<V::Output, FtlError> {
            $(if <$scheme as Registered>::ENTRY.name == name {
                let settings = settings("separation", <$scheme as Registered>::ENTRY.name, pairs)?;
                return Ok(visitor.visit::<$scheme>(settings));
            })*
            Err(unknown("separation", name, &entries()).into())
        }
    };
}

separations! {
    none::None,
    two_region::TwoRegion,
    dac::Dac,
    multi_log::MultiLog,
    mida::Mida,
    midas::Midas,
    warcip::Warcip,
    sepbit::Sepbit<{ sepbit::WHOLE }>,
    sepbit::Sepbit<{ sepbit::USER_ONLY }>,
    sepbit::Sepbit<{ sepbit::MOVED_ONLY }>,
    shiro::Shiro<{ shiro::PAPER }>,
    shiro::Shiro<{ shiro::RISING }>,
    shiro::Shiro<{ shiro::NO_LEVELS }>,
    shiro::Shiro<{ shiro::KNOWN }>,
    shiro_x::ShiroX,
    future::KnownFuture<false>,
    future::KnownFuture<true>,
}

#[cfg(test)]
pub(crate) mod fixtures {
    use super::{MovedPage, Write};
    use crate::{Block, Geometry, NEVER, Space};

    /// 1024 logical pages, 64 to a superblock.
    pub fn geometry() -> Geometry {
        let space = Space::GarbageShare { share: 0.15 };
        Geometry { logical_pages: 1024, block_pages: 64, space }
    }

    pub fn write(page: u32, clock: u64) -> Write {
        Write { page, clock, rewrite: true, live_pages: 1024, lifetime: NEVER }
    }

    pub fn moved(page: u32, victim: &Block, clock: u64) -> MovedPage<'_> {
        MovedPage { page, offset: 0, victim, clock }
    }
}
