//! A solid-state drive: host interface, memory timing and flash.
//!
//! For: the parts of a drive as separate values, and the drive without a data cache made of them.
//! Must never know: caches, policies. Units: bytes, nanoseconds of simulated time.

pub mod dram;
pub mod drive;
pub mod host;
pub mod link;
pub mod pages;
pub mod params;
