//! A log-structured store on a device: pages are appended to segments, and segments are cleaned.
//!
//! It is what volumes on flash are that the host keeps as a log, as the prototypes of SepBIT
//! (FAST'22, section 5) and stores on zones do. A translation layer of `decide/ftl` decides
//! placement and cleaning, the same as inside a drive and under `wa`. This module carries it out on
//! any [`Device`](crate::Device). Units: bytes at the border, pages and segments inside,
//! nanoseconds. The rules:
//!
//! - a command is cut at page borders; pages side by side in a segment are one command beneath;
//! - a page written in part is read before, unless it is in memory;
//! - pages on their way to the device are read from memory, moved ones at their old place until
//!   they are in memory too;
//! - a segment is reset when its pages have arrived elsewhere and no read of it is left. A write
//!   without a reset segment waits ([`SpentPart::Segment`](crate::SpentPart::Segment));
//! - cleaning steps back behind requests until one waits for it ([`StoreSettings`]);
//! - a trim forgets pages that it covers whole, a flush goes through to the device.

mod log_store;
mod reads;
mod segments;
pub mod stats;
mod writes;

pub use log_store::{Initial, LogStore, StoreError, StoreLayer, StoreSettings};
pub use stats::{StoreReads, StoreStats};
