//! The log: blocks of volumes, appended to segments of one or more devices.
//!
//! For: content that survives a loss of power, in the order in which it was written. Must never
//! know: policies, clients, backing devices. Units: bytes, blocks, pages.

pub mod format;
