//! What a drive refuses, in words.
//!
//! For: one error type of the crate. Must never know: how a message is shown. Units: pages,
//! superblocks.

use cachewright_types::RegistryError;
use thiserror::Error;

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
