//! Tests of the live cache through its public parts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod format;
mod io_conformance;
mod log_crashes;
mod log_world;
