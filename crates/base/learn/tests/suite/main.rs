//! The tests of the learn crate, one module per subject, in one binary.
//!
//! For: one link for all of them. Must never know: what any of them tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod boosting;
mod gradients;
mod trainings;
