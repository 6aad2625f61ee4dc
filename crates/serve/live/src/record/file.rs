//! A recording in a file of the native format, written by a thread of its own.
//!
//! For: a served cache that is to be replayed. Must never know: the server. Units: requests. The
//! file appears under its name when it is finished.

use super::{RecordSink, RecordStop};
use crate::io::worker::{Items, NotTaken, Queue, Worker};
use cachewright_trace::{Batch, TraceError, TraceWriter, WriteSummary, create_writer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Batches that may wait for the device: more, and the recording ends.
const WAITING_BATCHES: usize = 256;

type Written = Result<WriteSummary, TraceError>;

/// A recording being written.
pub struct RecordFile {
    worker: Worker<Batch, Written>,
    path: PathBuf,
}

/// Hands batches over to the thread.
struct Handover(Queue<Batch>);

impl RecordSink for Handover {
    fn take(&mut self, batch: Batch) -> Result<(), RecordStop> {
        self.0.offer(batch).map_err(|reason| match reason {
            NotTaken::Full => RecordStop::Behind,
            NotTaken::Ended => RecordStop::Failed,
        })
    }
}

impl RecordFile {
    /// Begins a file of volumes that are named in the order of tenants. Errors: the operating
    /// system's.
    pub fn create(path: &Path, volumes: Vec<String>) -> Result<RecordFile, TraceError> {
        let writer = create_writer("parquet", path, &BTreeMap::new())?;
        let work = move |batches| write(writer, batches, &volumes);
        let worker = Worker::spawn("recording", WAITING_BATCHES, work)
            .map_err(|source| TraceError::Io { path: path.to_owned(), source })?;
        Ok(RecordFile { worker, path: path.to_owned() })
    }

    /// What a [`Recorder`](super::Recorder) hands its requests to.
    pub fn sink(&self) -> Box<dyn RecordSink> {
        Box::new(Handover(self.worker.queue()))
    }

    /// Waits until all that was taken is written and the file is in place. Errors: the operating
    /// system's, also of earlier writes.
    pub fn finish(self) -> Result<WriteSummary, TraceError> {
        self.worker.finish().unwrap_or_else(|| {
            Err(TraceError::File {
                path: self.path,
                found: "a writer that ended early".to_owned(),
                expected: "a recording".to_owned(),
            })
        })
    }
}

fn write(mut writer: Box<dyn TraceWriter>, batches: Items<Batch>, volumes: &[String]) -> Written {
    for batch in batches {
        writer.write(&batch, volumes)?;
    }
    writer.finish()
}
