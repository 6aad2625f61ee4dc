//! One tenant of a workload, as it is asked for.
//!
//! For: which requests of a trace are taken, and when they come. Must never know: how a trace is
//! read. Units: nanoseconds, bytes.

use crate::{OpenOptions, TraceReader};
use cachewright_types::{Nanos, Op};
use std::path::PathBuf;

/// Where a tenant's requests come from.
pub enum TenantSource {
    /// A file and how to read it.
    Path(PathBuf, OpenOptions),
    /// Something already open.
    Reader(Box<dyn TraceReader>),
}

/// Where a tenant's requests end before its trace does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyEnd {
    /// Before the first request at or after this time on the workload's clock.
    At(Nanos),
    /// After so many requests.
    After(u64),
    /// At the first of both.
    First(Nanos, u64),
}

/// One tenant of a workload before it is opened.
pub struct TenantInput {
    /// The tenant's name.
    pub name: String,
    /// Its requests.
    pub source: TenantSource,
    /// What comes before the trace, with its own clock; all that comes before any tenant's trace
    /// comes before the first request of every trace.
    pub before: Option<Box<TenantInput>>,
    /// Take only this volume of the trace, or these with commas; nothing means all of them.
    pub volume: Option<String>,
    /// Factor on the trace's times: 2.0 makes it last twice as long, 0.5 half as long.
    pub time_scale: f64,
    /// When the trace begins on the workload's clock.
    pub start: Nanos,
    /// Where it ends; nothing takes the whole trace.
    pub stop: Option<EarlyEnd>,
    /// Sort by time in memory (66 B per request meanwhile) instead of moving late records up.
    pub sort: bool,
    /// What every read and write becomes; then nothing else is taken. Nothing leaves all as it is.
    pub operation: Option<Op>,
    /// Share of the volume's chunks whose requests are taken; 1.0 takes all.
    pub sample: f64,
    /// Longest read or write in bytes: longer ones are cut; nothing leaves all as they are.
    pub request_bytes: Option<u64>,
}

impl TenantInput {
    /// All volumes of the trace at `path`, at its own speed, from the start.
    pub fn path(name: &str, path: impl Into<PathBuf>, options: OpenOptions) -> TenantInput {
        TenantInput::new(name, TenantSource::Path(path.into(), options))
    }

    /// The same of a trace already open.
    pub fn reader(name: &str, reader: Box<dyn TraceReader>) -> TenantInput {
        TenantInput::new(name, TenantSource::Reader(reader))
    }

    fn new(name: &str, source: TenantSource) -> TenantInput {
        TenantInput {
            name: name.to_owned(),
            source,
            before: None,
            volume: None,
            time_scale: 1.0,
            start: Nanos(0),
            stop: None,
            sort: false,
            operation: None,
            sample: 1.0,
            request_bytes: None,
        }
    }
}
