//! The tests of the curve crate, one module per subject, in one binary.
//!
//! For: one link for all of them. Must never know: what any of them tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

#[path = "../common/mod.rs"]
mod common;

mod cloudphysics_rows;
mod hulls_divide_best;
mod mini_simulation_agrees_or_refuses;
mod shards_stays_within_its_interval;
mod stack_distance_is_exact;
mod windows_keep_tenants_apart;
