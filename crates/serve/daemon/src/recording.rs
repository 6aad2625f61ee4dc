//! The recording of what a server decides, in a file of its own.
//!
//! For: a served stack that is to be replayed. Must never know: how a recording is written. Units:
//! requests. A file that exists is refused before anything is written, and so is one of divisions
//! beside it. A recording that cannot go on ends, with a sentence, and serving goes on. A recording
//! is decided by one stack: a reload that changes what decides ends it. It becomes
//! `served-1.parquet`, or has the next number that is free, and `served.parquet` begins anew.

use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_live::blocks::BlockServer;
use cachewright_live::io::Io;
use cachewright_live::record::{RecordFile, RecordSink, RecordStop};
use cachewright_trace::{divisions_path, has_abandoned};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A recording under way.
pub struct LiveRecording {
    file: RecordFile,
    path: PathBuf,
    /// Its early end was reported.
    reported: bool,
}

impl LiveRecording {
    /// Errors: something is there already, or there is no folder for it.
    pub fn check(path: &Path) -> Result<(), LiveError> {
        let refuse_at = |path: &Path, found: &str| {
            let path = path.display();
            Err(LiveError::Refused(format!("{path}: found {found}, expected a new file to record")))
        };
        let (refuse, beside) = (|found: &str| refuse_at(path, found), divisions_path(path));
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if path.symlink_metadata().is_ok() {
            return refuse("an existing file");
        }
        if beside.symlink_metadata().is_ok() {
            return refuse_at(&beside, "an existing file");
        }
        match path.file_name().is_some() && parent.is_none_or(Path::is_dir) {
            true => Ok(()),
            false => refuse("no such folder"),
        }
    }

    /// Begins a file. Errors: the operating system's.
    pub fn begin(path: &Path, plan: &LivePlan) -> Result<LiveRecording, LiveError> {
        let names = plan.volumes.iter().map(|volume| volume.name.clone()).collect();
        let divisions = plan.divisions_head();
        let file = RecordFile::create(path, names, divisions.as_ref()).map_err(failed)?;
        Ok(LiveRecording { file, path: path.to_owned(), reported: false })
    }

    /// What takes the requests.
    pub fn sink(&self) -> Box<dyn RecordSink> {
        self.file.sink()
    }

    /// A line for operators, where the cache holds so many blocks at the start.
    pub fn described(&self, blocks: u64) -> String {
        let path = self.path.display();
        match blocks {
            0 => format!("recording what is decided in {path}"),
            _ => format!(
                "recording what is decided in {path}; a replay begins with an empty cache, and \
                 this one is not empty"
            ),
        }
    }

    /// A sentence if the recording has ended early, the first time that this is found.
    pub fn stopped_early(&mut self, blocks: &BlockServer) -> Option<String> {
        let recorded = blocks.recorded().filter(|_| !self.reported)?;
        let reason = match recorded.stopped? {
            RecordStop::Behind => "its file could not be written fast enough",
            RecordStop::Failed => "its file cannot be written",
        };
        self.reported = true;
        let requests = recorded.requests;
        Some(format!("the recording ends after {requests} requests: {reason}"))
    }

    /// Ends the recording of a server; returns a line for operators. Errors: the operating
    /// system's, also of earlier writes.
    pub fn finish(self, io: &mut impl Io, blocks: &mut BlockServer) -> Result<String, LiveError> {
        let (path, requests) = self.end(io, blocks)?;
        Ok(format!("recorded {requests} requests in {}", path.display()))
    }

    /// Ends the recording because another stack decides from now on. What was recorded gets the
    /// next free number, so that the file can begin anew. Returns a line for operators. Errors: the
    /// operating system's, also of earlier writes.
    pub fn set_aside(
        self,
        io: &mut impl Io,
        blocks: &mut BlockServer,
    ) -> Result<String, LiveError> {
        let (path, requests) = self.end(io, blocks)?;
        let target = free_name(&path);
        let beside = divisions_path(&path);
        if is_there(&beside) {
            std::fs::rename(&beside, divisions_path(&target)).map_err(failed)?;
        }
        std::fs::rename(&path, &target).map_err(failed)?;
        let target = target.display();
        Ok(format!("recorded {requests} requests in {target}: the stack changes what decides"))
    }

    /// Where it is, or will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn end(self, io: &mut impl Io, blocks: &mut BlockServer) -> Result<(PathBuf, u64), LiveError> {
        blocks.end_recording(io);
        let written = self.file.finish().map_err(failed)?;
        Ok((self.path, written.requests))
    }
}

/// `served.parquet` with a number is `served-1.parquet`.
pub(crate) fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Whether a recording, or divisions beside it, have this name.
pub(crate) fn is_taken(path: &Path) -> bool {
    is_there(path) || is_there(&divisions_path(path))
}

/// The first name with a number that nothing has, also not what is still being recovered.
fn free_name(path: &Path) -> PathBuf {
    let mut number = 1;
    loop {
        let target = numbered(path, number);
        if !has_abandoned(&target) && !is_taken(&target) {
            return target;
        }
        number += 1;
    }
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn failed(error: impl std::fmt::Display) -> LiveError {
    LiveError::Failed(format!("recording: {error}"))
}
