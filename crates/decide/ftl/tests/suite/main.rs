//! The tests of the ftl crate, one module per subject, in one binary.
//!
//! For: one link for all of them. Must never know: what any of them tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod by_hand;
mod closed_forms;
mod dropped_pages;
mod endurance;
mod filled;
mod invariants;
mod midas;
mod precision;
mod reference;
mod segments;
