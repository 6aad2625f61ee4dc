//! Flash translation: where a page lives, which pages share a superblock, which is cleaned next.
//!
//! For: page mapping over superblocks, and the two decisions on it: [`Separation`] (the stream of a
//! page) and [`Reclaim`] (the victim). Must never know: time, dies, channels, files, threads. What
//! flash has to do is told to a [`Sink`], which an SSD model prices and a live store performs.
//! Units: pages; the clock counts pages written by the host and nothing else. Source: the common
//! frame of SepBIT (FAST'22), MiDAS (FAST'24) and Shiro (section II).

pub mod counts;
pub mod ftl;
pub mod geometry;
pub mod layer;
pub mod mapping;
pub mod reclaim;
pub mod registry;
pub mod segments;
pub mod separation;
pub mod superblocks;
pub mod theory;
pub mod workload;

pub use counts::EraseCounts;
pub use counts::FtlCounts;
pub use ftl::Ftl;
pub use geometry::FtlError;
pub use geometry::{Geometry, Space};
pub use layer::{Address, NoSink, Sink};
pub use layer::{Layer, LayerStep, LayerSteps};
pub use mapping::{FillRule, Lazy};
pub use reclaim::{Reclaim, Round};
pub use registry::{Entry, Need};
pub use segments::{CleaningSchemes, LogSchemes, PageWrite, SegmentFacts, StreamCounts};
pub use separation::learning::NEVER;
pub use separation::learning::{Classification, Confusion, PredictionPart, Statistics};
pub use separation::{
    HostRequest, Invalidated, MovedPage, Separation, Stream, VictimSource, Write,
};
pub use superblocks::{Block, CleaningOrder, Superblocks};
