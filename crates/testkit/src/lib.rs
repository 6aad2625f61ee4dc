//! What tests, examples and benches of several crates share: workloads, random models, worlds.
//!
//! A crate's integration tests may use this crate although it depends on theirs; unit tests inside
//! a crate may not, as they would see two copies of its types. What one crate's tests alone share
//! lies in their `tests/suite`.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a failed test may panic")]

#[cfg(feature = "system")]
pub mod cached_drives;
#[cfg(feature = "device")]
pub mod drives;
#[cfg(feature = "system")]
pub mod machines;
#[cfg(feature = "model")]
pub mod models;
#[cfg(feature = "ftl")]
pub mod overwrites;
mod reference;
#[cfg(feature = "steps")]
pub mod slots;
pub mod streams;

pub use reference::reference_data;
