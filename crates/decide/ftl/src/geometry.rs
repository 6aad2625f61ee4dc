//! The size of a drive and the rule that starts reclaim.
//!
//! Units are pages and superblocks; shares are ratios.

use cachewright_types::RegistryError;
use thiserror::Error;

/// The most streams a separation may use: sets of streams are 64-bit masks.
pub const STREAM_LIMIT: u32 = 64;

/// Physical space, and when it is reclaimed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Space {
    /// A drive of fixed size: before a host write, superblocks are cleaned while fewer than
    /// `reserve_blocks` are free.
    Fixed {
        /// Superblocks of the drive.
        blocks: u32,
        /// Superblocks kept free for host writes (the foreground watermark), at least 2.
        reserve_blocks: u32,
        /// Superblocks that idle time brings free (the background watermark).
        idle_blocks: u32,
    },
    /// Space without end. After a request, one superblock is cleaned if invalid pages in sealed
    /// superblocks exceed this share of all stored pages. Only superblocks that hold at least this
    /// share of invalid pages are cleaned. The rule of SepBIT's simulator (FAST'22, 4.1).
    GarbageShare {
        /// The share, in `(0, 1)`.
        share: f64,
    },
}

/// The size of a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometry {
    /// Pages the host sees, `0..logical_pages`.
    pub logical_pages: u32,
    /// Pages of one superblock (the unit of erasure, across all dies).
    pub block_pages: u32,
    /// Physical space.
    pub space: Space,
}

impl Geometry {
    /// A drive whose physical pages exceed the logical ones by `over_provisioning` (0.07 is 7 %),
    /// rounded down to whole superblocks. `reserve_blocks` are kept free; there is no background
    /// work.
    pub fn with_over_provisioning(
        logical_pages: u32,
        block_pages: u32,
        over_provisioning: f64,
        reserve_blocks: u32,
    ) -> Geometry {
        let pages = f64::from(logical_pages) * (1.0 + over_provisioning);
        let blocks = (pages / f64::from(block_pages.max(1))) as u32;
        let space = Space::Fixed { blocks, reserve_blocks, idle_blocks: reserve_blocks };
        Geometry { logical_pages, block_pages, space }
    }

    /// Physical pages beyond the logical ones, as a share of the logical ones. In space without end
    /// it is what the garbage adds when it stands at its limit.
    pub fn over_provisioning(&self) -> f64 {
        match self.space {
            Space::Fixed { blocks, .. } => {
                let pages = f64::from(blocks) * f64::from(self.block_pages);
                pages / f64::from(self.logical_pages.max(1)) - 1.0
            }
            Space::GarbageShare { share } => share / (1.0 - share),
        }
    }

    /// Checks the limits for a scheme with so many streams that takes `meta_pages` of each
    /// superblock for itself.
    pub(crate) fn check(&self, streams: u32, meta_pages: u32) -> Result<(), FtlError> {
        let range = |what, found: u64, low: u64, high: u64| {
            let expected = format!("{low}..={high}");
            let within = (low..=high).contains(&found);
            if within { Ok(()) } else { Err(FtlError::Geometry { what, found, expected }) }
        };
        range("logical pages", u64::from(self.logical_pages), 1, 1 << 31)?;
        range("pages in a superblock", u64::from(self.block_pages), 2, 1 << 24)?;
        let max = u64::from(self.block_pages) / 2;
        range("pages of metadata in a superblock", u64::from(meta_pages), 0, max)?;
        let block_limit = ((1_u64 << 32) >> self.address_bits()) - 1;
        let data_pages = self.block_pages - meta_pages;
        let data = u64::from(self.logical_pages.div_ceil(data_pages));
        match self.space {
            Space::Fixed { blocks, reserve_blocks, idle_blocks } => {
                range("superblocks", u64::from(blocks), 1, block_limit)?;
                range("superblocks kept free", u64::from(reserve_blocks), 2, u64::from(blocks))?;
                let (low, high) = (u64::from(reserve_blocks), u64::from(blocks));
                range("superblocks freed in idle time", u64::from(idle_blocks), low, high)?;
                let needed = data + u64::from(reserve_blocks) + u64::from(streams);
                if u64::from(blocks) >= needed {
                    return Ok(());
                }
                Err(FtlError::OverProvisioning {
                    found: blocks,
                    block_pages: data_pages,
                    logical_pages: self.logical_pages,
                    over_provisioning: 100.0 * self.over_provisioning(),
                    needed,
                    data,
                    reserve: reserve_blocks,
                    open: streams,
                })
            }
            Space::GarbageShare { share } => {
                let percent = (share * 100.0).clamp(0.0, 1e6) as u64;
                let within = share > 0.0 && share <= 0.9;
                range("per cent of garbage", if within { percent.max(1) } else { 1000 }, 1, 90)?;
                let worst = self.max_blocks(share, streams, meta_pages);
                range("superblocks of data and garbage", worst, 1, block_limit)
            }
        }
    }

    /// Superblocks beyond which space without end is reclaimed before the request has ended: twice
    /// what the data and the share of garbage fill. Only requests as large as the drive get there.
    pub(crate) fn max_blocks(&self, share: f64, streams: u32, meta_pages: u32) -> u64 {
        let data = self.logical_pages.div_ceil(self.block_pages - meta_pages);
        (2.0 * f64::from(data) / (1.0 - share)) as u64 + 2 * u64::from(streams)
    }

    /// Bits of an address that count pages within a superblock.
    pub(crate) fn address_bits(&self) -> u32 {
        self.block_pages.next_power_of_two().trailing_zeros()
    }
}

/// Why a drive could not be built or a page not be written.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FtlError {
    /// A number of the geometry lies outside its range.
    #[error("found {found} {what}, expected {expected}")]
    Geometry {
        /// What was counted.
        what: &'static str,
        /// The number found.
        found: u64,
        /// The range in words.
        expected: String,
    },
    /// No room beside the data: reclaim could never free a superblock.
    #[error(
        "found {found} superblocks of {block_pages} pages for {logical_pages} logical pages \
         (over-provisioning {over_provisioning:.1} %), expected at least {needed}: {data} for the \
         data, {reserve} kept free and {open} open for writing"
    )]
    OverProvisioning {
        /// Superblocks found.
        found: u32,
        /// Data pages of a superblock.
        block_pages: u32,
        /// Logical pages.
        logical_pages: u32,
        /// Physical pages beyond the logical ones, in per cent of the logical ones.
        over_provisioning: f64,
        /// Superblocks needed.
        needed: u64,
        /// Superblocks that the logical pages fill.
        data: u64,
        /// Superblocks kept free.
        reserve: u32,
        /// Streams, each with an open superblock.
        open: u32,
    },
    /// A page beyond the end of the drive.
    #[error("found page {page}, expected a page below {pages}: the drive ends there")]
    BeyondEnd {
        /// The page asked for.
        page: u64,
        /// Logical pages of the drive.
        pages: u32,
    },
    /// Reclaim found nothing to clean.
    #[error(
        "the drive is full: {free} superblocks are free, expected {reserve}, and `{reclaim}` freed \
         none in {rounds} rounds"
    )]
    Full {
        /// Free superblocks.
        free: u32,
        /// Superblocks to be kept free.
        reserve: u32,
        /// The reclaim policy.
        reclaim: &'static str,
        /// Superblocks it cleaned in vain.
        rounds: u32,
    },
    /// A scheme wants no stream, or more than there can be.
    #[error("`{separation}` needs {found} streams, expected 1..={limit}")]
    Streams {
        /// The scheme.
        separation: &'static str,
        /// Streams it announced.
        found: u32,
        /// The most there can be.
        limit: u32,
    },
    /// A scheme wants what a log does not have.
    #[error(
        "found `{separation}`, which needs {what}, expected a separation that a log can follow"
    )]
    InLog {
        /// The scheme.
        separation: String,
        /// What it needs.
        what: &'static str,
    },
    /// No such scheme, or a setting that it refuses.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_over_provisioning_is_refused_in_words() {
        let drive = Geometry::with_over_provisioning(1000, 10, 0.0, 2);
        let error = drive.check(1, 0).unwrap_err().to_string();
        let words = "found 100 superblocks of 10 pages for 1000 logical pages (over-provisioning \
                     0.0 %), expected at least 103";
        assert!(error.starts_with(words), "{error}");
        assert_eq!(Geometry::with_over_provisioning(1000, 10, 0.03, 2).check(1, 0), Ok(()));
    }

    #[test]
    fn a_drive_beyond_32_bits_of_addresses_is_refused() {
        let drive = Geometry::with_over_provisioning(1 << 31, 1 << 20, 1.5, 2);
        let error = drive.check(1, 0).unwrap_err().to_string();
        assert!(error.contains("found 5120 superblocks, expected 1..=4095"), "{error}");
    }

    #[test]
    fn a_share_of_garbage_is_a_ratio() {
        let space = Space::GarbageShare { share: 0.15 };
        let drive = Geometry { logical_pages: 1000, block_pages: 10, space };
        assert!((drive.over_provisioning() - 0.1765).abs() < 1e-4);
        for share in [0.0, 1.0, f64::NAN] {
            let drive = Geometry { space: Space::GarbageShare { share }, ..drive };
            assert!(drive.check(1, 0).is_err(), "{share}");
        }
    }
}
