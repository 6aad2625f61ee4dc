//! The tests of the partition crate, one module per subject, in one binary.
//!
//! For: one link for all of them. Must never know: what any of them tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod dp_follows_cliffs;
mod every_layout_keeps_the_rules;
mod every_partitioner_keeps_the_rules;
mod hull_follows_the_curves;
mod icache_follows_its_models;
mod icache_x_balances_slowdowns;
mod mlcache_follows_its_model;
