//! Block traces: files of every published format to requests, and back.
//!
//! Units at this border: nanoseconds and bytes.

mod binary;
mod clock;
mod dates;
pub mod divisions;
pub mod error;
mod fields;
pub mod formats;
pub mod intern;
mod lines;
pub mod merge;
pub mod native;
pub mod next_use;
mod parts;
pub mod reader;
pub mod recordings;
mod rwbs;
pub mod source;
mod state;
pub mod synth;
mod text;
mod units;
pub mod write;

pub use divisions::{
    DivisionRow, Divisions, DivisionsHead, DivisionsWriter, divisions_path, remove_divisions,
};
pub use error::{PassedOver, Skipped, TraceError, UnreadableRecord};
pub use formats::{
    FORMATS, TraceFormat, Unit, files_of, open, open_bytes, recognise, recognise_bytes,
};

pub use intern::{InternError, Interner};
pub use merge::{
    MergeClock, MergedRequests, SharedSpace, TenantInput, TenantSource, WorkloadBatch,
};

pub use next_use::{NEVER, next_uses};
pub use recordings::{Moment, RecordingName, recording_at, recordings_in};

pub use reader::{Batch, Call, MAX_REQUEST, OnBadRecord, OpenOptions, Record, TraceReader};
pub use state::{EncodedState, RecordedState, StateBegin, remove_state, state_path};

pub use source::{ByteSource, ByteStream, Container, RandomAccess, Spool, Wrapping};
pub use write::recovered::{Recovered, has_abandoned, recover_abandoned, retarget_abandoned};
pub use write::{TraceWriter, WRITE_FORMATS, WriteEntry, WriteSummary, create_writer};
