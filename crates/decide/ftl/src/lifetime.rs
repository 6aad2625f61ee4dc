//! Lifetimes of pages, between two writes.
//!
//! For: the one number that is none. Must never know: separations. Units: page writes of the host.

/// A lifetime when the page is never written again, or when that is not known.
pub const NEVER: u32 = u32::MAX;
