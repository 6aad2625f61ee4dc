//! The tests of the policy crate, one module per subject, in one binary.
//!
//! For: one link for all of them. Must never know: what any of them tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod common;
mod ghost_models;
mod models;
mod rival_models;

mod agree;
mod agree_baleen;
mod agree_ghosts;
mod agree_oc_smq;
mod agree_reca;
mod agree_rivals;
mod characterizers;
mod foreign;
mod golden;
mod properties;
mod rc_x;
mod scans;
mod snapshots;
mod structures;
mod volumes;
