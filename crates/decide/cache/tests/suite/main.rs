//! The tests of the cache crate, one module per subject, in one binary.
//!
//! For: one link for all of them. Must never know: what any of them tests.

mod engine_model;
mod engine_pools;
mod live;
mod plans;
