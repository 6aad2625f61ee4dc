//! The tests of the cache crate, one module per subject, in one binary.
//!
//! For: one link for all of them. Must never know: what any of them tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod blame;
mod bounded_ids;
mod engine_model;
mod engine_pools;
mod hooks;
mod live;
mod memory;
mod plans;
mod replaced;
mod sequential;
mod upkeep;
mod upkeep_by_hand;
