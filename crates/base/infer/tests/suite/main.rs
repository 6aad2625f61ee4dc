//! The tests of the infer crate, one module per subject, in one binary.
//!
//! For: one link for all of them. Must never know: what any of them tests.

#[path = "../common/mod.rs"]
mod common;

mod files;
mod forest;
mod same_bits;
mod vectors;
