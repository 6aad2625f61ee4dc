//! Block traces: files of every published format to requests, and back.
//!
//! For: reading, recognising, writing, merging and making traces, and interning their blocks.
//! Must never know: caches, policies, devices. Units at this border: nanoseconds and bytes.

pub mod batch;
mod binary;
mod clock;
mod dates;
pub mod divisions;
pub mod error;
mod fields;
mod file_names;
pub mod formats;
pub mod intern;
mod lines;
pub mod merge;
pub mod native;
pub mod next_use;
mod numbered;
mod options;
mod parts;
pub mod reader;
mod rwbs;
pub mod source;
pub mod synth;
mod text;
mod units;
pub mod write;

pub use batch::{Batch, Call, Record};
pub use divisions::{DivisionRow, Divisions, DivisionsHead, DivisionsWriter, divisions_path};
pub use error::{PassedOver, Skipped, TraceError, UnreadableRecord};
pub use formats::{
    FORMATS, TraceFormat, Unit, files_of, open, open_bytes, recognise, recognise_bytes,
};
pub use intern::{InternError, Interner};
pub use merge::{
    MergeClock, MergedRequests, SharedSpace, TenantInput, TenantSource, WorkloadBatch,
};
pub use next_use::{NEVER, next_uses};
pub use reader::{MAX_REQUEST, OnBadRecord, OpenOptions, TraceReader};
pub use source::{ByteSource, ByteStream, Container, RandomAccess, Spool, Wrapping};
pub use write::recovered::{Recovered, has_abandoned, recover_abandoned, retarget_abandoned};
pub use write::{TraceWriter, WRITE_FORMATS, WriteEntry, WriteSummary, create_writer};
