//! Tests of the live cache through its public parts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod ahead;
mod answers;
mod block_setup;
mod block_world;
mod blocks_agree;
mod blocks_crashes;
mod blocks_divided;
mod blocks_exhaustive;
mod blocks_failures;
mod blocks_faults;
mod blocks_model;
mod bypass;
mod cleaning;
mod damaged_headers;
mod device_faults;
mod device_page;
mod division_world;
mod doubtful_reads;
mod exports;
mod fair_exports;
mod flush_errors;
mod format;
mod found_bugs;
mod guests;
mod hostile_log;
mod io_conformance;
mod known_bugs;
mod layouts;
mod log_crashes;
mod log_world;
mod lost_groups;
mod many_clients;
mod members;
mod revived;
mod secure_exports;
mod shapes;
mod slow_clients;
mod small_segments;
mod stalled_clients;
mod stranded;
mod superblocks;
mod thin;
mod unreadable_pages;
mod unreadable_starts;
