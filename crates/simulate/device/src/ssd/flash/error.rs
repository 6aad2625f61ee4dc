//! What a flash back-end refuses, in words.
//!
//! For: one error type. Must never know: how a message is shown, keys of stack files. Units: in the
//! words.

use cachewright_ftl::FtlError;
use thiserror::Error;

/// Why a back-end could not be built.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FlashError {
    /// A number lies outside its range.
    #[error("`{key}`: found {found}, expected {expected}")]
    Range {
        /// The parameter.
        key: &'static str,
        /// Its value.
        found: String,
        /// What is accepted.
        expected: String,
    },
    /// A group of channels names one that is not there, or that another group has.
    #[error("channel group {group}: found channel {channel}, expected {expected}")]
    Group {
        /// The group.
        group: usize,
        /// The channel.
        channel: u32,
        /// What is accepted.
        expected: String,
    },
    /// A separation that must know when a page is written again.
    #[error(
        "separation `{separation}`: needs the future of each page, which a device does not have"
    )]
    Future {
        /// The scheme.
        separation: &'static str,
    },
    /// The translation layer refuses.
    #[error(transparent)]
    Ftl(#[from] FtlError),
}
