//! The tests of the trace crate, one module per subject, in one binary.
//!
//! For: one link for all of them. Must never know: what any of them tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod samples;

mod as_written;
mod malformed;
mod parquet_of_others;
mod read_once;
mod reader_table;
mod recordings;
mod reference_data;
mod slow_readers;
mod wrapped;
