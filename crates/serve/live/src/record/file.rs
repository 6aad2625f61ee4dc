//! A recording in a file of the native format, written by a thread of its own.
//!
//! For: a served cache that is to be replayed. Must never know: the server. Units: requests. The
//! file appears under its name when it is finished. That of its divisions appears before, so that a
//! recording is never without them. What was kept of both outlives a kill.

use super::{RecordPart, RecordSink, RecordStop};
use crate::io::worker::{Items, NotTaken, Worker, WorkerQueue};
use cachewright_trace::{
    DivisionsHead, DivisionsWriter, TraceError, TraceWriter, WriteSummary, create_writer,
    divisions_path,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Batches that may wait for the device: more, and the recording ends.
const WAITING_BATCHES: usize = 256;

/// What was written of a recording.
type Written = Result<WriteSummary, TraceError>;

/// A recording being written.
pub struct RecordFile {
    worker: Worker<RecordPart, Written>,
    path: PathBuf,
}

/// Hands batches over to the thread.
struct Handover(WorkerQueue<RecordPart>);

impl RecordSink for Handover {
    fn take(&mut self, part: RecordPart) -> Result<(), RecordStop> {
        self.0.offer(part).map_err(|reason| match reason {
            NotTaken::Full => RecordStop::Behind,
            NotTaken::Ended => RecordStop::Failed,
        })
    }
}

impl RecordFile {
    /// Begins a file of volumes that are named in the order of tenants, and where the cache is
    /// divided while it serves, a file of `divisions` beside it. Errors: the operating system's.
    pub fn create(
        path: &Path,
        volumes: Vec<String>,
        divisions: Option<&DivisionsHead>,
    ) -> Result<RecordFile, TraceError> {
        let files = RecordingFiles::create(path, divisions)?;
        let work = move |parts| files.write_all(parts, &volumes);
        let worker = Worker::spawn("recording", WAITING_BATCHES, work)
            .map_err(|source| TraceError::Io { path: path.to_owned(), source })?;
        Ok(RecordFile { worker, path: path.to_owned() })
    }

    /// What a [`RequestRecorder`](super::RequestRecorder) hands its requests to.
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

/// The files of a recording. Dropped before the end, they leave nothing.
pub struct RecordingFiles {
    requests: Box<dyn TraceWriter>,
    divisions: Option<DivisionsWriter>,
}

impl RecordingFiles {
    /// Begins a file, and one of `divisions` beside it where the cache is divided while it serves.
    /// Errors: the operating system's.
    pub fn create(
        path: &Path,
        divisions: Option<&DivisionsHead>,
    ) -> Result<RecordingFiles, TraceError> {
        let create = |head| DivisionsWriter::create(&divisions_path(path), head);
        let divisions = divisions.map(create).transpose()?;
        let requests = create_writer("parquet", path, &BTreeMap::new())?;
        Ok(RecordingFiles { requests, divisions })
    }

    /// Has what was written so far outlive a kill: no request without its divisions.
    fn keep(&mut self) -> Result<(), TraceError> {
        self.divisions.as_mut().map_or(Ok(()), DivisionsWriter::keep)?;
        self.requests.keep()
    }

    /// Writes a piece, of volumes that are named in the order of tenants. Errors: the operating
    /// system's.
    pub fn write(&mut self, part: &RecordPart, volumes: &[String]) -> Result<(), TraceError> {
        self.requests.write(&part.requests, volumes)?;
        if let Some(writer) = &mut self.divisions {
            part.divisions.iter().try_for_each(|division| writer.write(division))?;
        }
        if part.is_kept { self.keep() } else { Ok(()) }
    }

    fn write_all(mut self, parts: Items<RecordPart>, volumes: &[String]) -> Written {
        for part in parts {
            self.write(&part, volumes)?;
        }
        self.finish()
    }

    /// Puts the files in place. Errors: the operating system's; then there is none.
    pub fn finish(self) -> Written {
        match self.divisions {
            Some(divisions) => divisions.finish_before(self.requests),
            None => self.requests.finish(),
        }
    }
}
