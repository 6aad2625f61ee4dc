//! Future knowledge: classes by the true remaining lifetime of a page.
//!
//! For: bounds. Must never know: how the lifetimes were found (a pre-pass; [`Need::Future`]).
//! Sources: `fk` is FK of SepBIT (FAST'22, section 4.1): classes as wide as one superblock, which
//! separate only pages that die within the next few. The classes of `future-knowledge` each span
//! four times the lifetimes of the one before, from 1/64 of the drive up. Its write amplification
//! is the lower of the two on every workload measured. Units: pages. Memory: 8 bytes per page.

use super::{MovedPage, Registered, Separation, Stream, Write};
use crate::{Entry, Geometry, NEVER, Need};
use cachewright_types::Seed;

cachewright_types::declare! {
    /// The classes of the schemes that know the future.
    pub struct FutureSettings {
        /// classes, the shortest lifetimes first
        classes: u32 = 6, "classes", 2 ..= 64;
        /// lifetimes below this share of the drive form the first class (`future-knowledge` only)
        first: f64 = 0.015625, "ratio", 0.000001 ..= 1.0;
        /// ratio of neighbouring thresholds (`future-knowledge` only)
        ratio: f64 = 4.0, "ratio", 1.0 ..= 1024.0;
    }
}

/// Classes of equal width, or of widths that grow.
#[derive(Clone, Debug)]
pub struct KnownFuture<const GEOMETRIC: bool> {
    /// The clock at each page's next write; the highest value if there is none.
    death: Vec<u64>,
    /// Remaining lifetimes from which a page is in the next class.
    bounds: Vec<u64>,
}

impl<const GEOMETRIC: bool> Registered for KnownFuture<GEOMETRIC> {
    type Settings = FutureSettings;
    const ENTRY: Entry = if GEOMETRIC {
        Entry {
            name: "future-knowledge",
            doc: "by the true remaining lifetime, in classes of growing width (a bound)",
            source: "classes of Cachewright; the idea of FK, FAST'22, section 4.1",
            needs: &[Need::Future],
        }
    } else {
        Entry {
            name: "fk",
            doc: "by the true remaining lifetime, in classes one superblock wide",
            source: "FK of SepBIT, FAST'22, section 4.1",
            needs: &[Need::Future],
        }
    };

    fn new(geometry: &Geometry, settings: &FutureSettings, _: Seed) -> Self {
        let drive = f64::from(geometry.logical_pages);
        let bound = |step: u32| {
            if GEOMETRIC {
                (drive * settings.first * settings.ratio.powi(step as i32 - 1)) as u64
            } else {
                u64::from(step) * u64::from(geometry.block_pages)
            }
        };
        KnownFuture {
            death: vec![u64::MAX; geometry.logical_pages as usize],
            bounds: (1..settings.classes).map(bound).collect(),
        }
    }
}

impl<const GEOMETRIC: bool> KnownFuture<GEOMETRIC> {
    #[inline(always)]
    fn class(&self, page: u32, clock: u64) -> Stream {
        let remaining = self.death[page as usize].saturating_sub(clock);
        Stream(self.bounds.iter().filter(|bound| remaining >= **bound).count() as u8)
    }
}

impl<const GEOMETRIC: bool> Separation for KnownFuture<GEOMETRIC> {
    fn streams(&self) -> u32 {
        self.bounds.len() as u32 + 1
    }

    #[inline(always)]
    fn place_user(&mut self, write: &Write) -> Stream {
        self.death[write.page as usize] = match write.lifetime {
            NEVER => u64::MAX,
            lifetime => write.clock + u64::from(lifetime),
        };
        self.class(write.page, write.clock)
    }

    #[inline(always)]
    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        self.class(moved.page, moved.clock)
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        8.0
    }
}

/// The lifetime of each write of a trace in which every page is a request of its own. It is the
/// distance to the next write of the same page, [`NEVER`] after the last. `logical_pages` bounds
/// the pages; pages beyond are given [`NEVER`].
pub fn lifetimes(pages: &[u32], logical_pages: u32) -> Vec<u32> {
    let mut next = vec![usize::MAX; logical_pages as usize];
    let mut lifetimes = vec![NEVER; pages.len()];
    for (position, page) in pages.iter().enumerate().rev() {
        if let Some(next) = next.get_mut(*page as usize) {
            let distance = u32::try_from(*next - position).unwrap_or(NEVER);
            lifetimes[position] = if *next == usize::MAX { NEVER } else { distance };
            *next = position;
        }
    }
    lifetimes
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{geometry, write};
    use super::*;

    #[test]
    fn lifetimes_are_distances() {
        assert_eq!(lifetimes(&[0, 1, 1, 0, 9], 2), [3, 1, NEVER, NEVER, NEVER]);
    }

    /// 64 pages per superblock: remaining 63 is class 0, 64 class 1, 320 and more class 5.
    #[test]
    fn classes_of_fk_are_one_superblock_wide() {
        let mut fk = KnownFuture::<false>::new(&geometry(), &FutureSettings::default(), Seed(0));
        let mut class = |lifetime| fk.place_user(&Write { lifetime, ..write(0, 9) }).0;
        assert_eq!([1, 63, 64, 319, 320, NEVER].map(&mut class), [0, 0, 1, 4, 5, 5]);
    }

    /// 1024 logical pages: thresholds 16, 64, 256, 1024, 4096.
    #[test]
    fn classes_of_the_bound_grow() {
        let mut future = KnownFuture::<true>::new(&geometry(), &FutureSettings::default(), Seed(0));
        let mut class = |lifetime| future.place_user(&Write { lifetime, ..write(0, 9) }).0;
        assert_eq!([15, 16, 64, 255, 256, 4096].map(&mut class), [0, 1, 2, 2, 3, 5]);
    }
}
