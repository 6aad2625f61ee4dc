//! The tests of the device crate, one module per subject, in one binary.
//!
//! For: one link for all of them. Must never know: what any of them tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod common;
mod store_parts;

mod audit;
mod disk;
mod energy;
mod flash_by_hand;
mod flash_cleaning;
mod flash_decisions;
mod flash_random;
mod flash_theory;
mod map_by_hand;
mod measured;
mod queues;
mod sata_850_pro;
mod ssd_closed_forms;
mod ssd_properties;
mod store_by_hand;
mod store_on_ssd;
mod store_properties;
mod striped;
mod write_buffer;
