//! What a live server tells over HTTP: metrics, its status, and a page that draws it.
//!
//! For: operators and their tools, on an address of this machine only. Must never know: caches,
//! volumes, how a status is found. The server makes a status when one is asked for, between two
//! requests, and hands it over; a thread of its own answers. Nothing waits for that thread.

mod address;
mod http;
pub mod metrics;
mod monitor;

pub use address::local_address;
pub use monitor::{ConnectionBounds, Monitor, MonitorError};
