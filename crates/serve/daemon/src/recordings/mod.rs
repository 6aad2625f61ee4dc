//! Recordings of what a server decides, one behind the other in a folder.
//!
//! For: the last hour of a server at any time, as traces that a simulation replays. Must never
//! know: how a recording is written, what reads it. Units: nanoseconds, requests. A recording ends
//! and another one begins at each span of time, when that is asked for, and when another stack
//! decides. The server never waits for a file. Divisions are not recorded: a replay divides by
//! itself.

mod counts;
mod name;
mod writer;

pub use counts::RecordingCounts;

use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_live::blocks::BlockServer;
use cachewright_live::io::Io;
use cachewright_live::record::{RecordPart, RecordSink, RecordStop};
use name::RecordingName;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use writer::{Bounds, RecordingWriter};

/// What is said where a file and a folder of recordings are asked for.
const BOTH: &str = "`serve.record`: found a folder beside `--record`, expected one of them";
/// How long a beginning waits that was not possible.
const AGAIN_NS: u64 = 1_000_000_000;

/// Recordings under way.
pub struct Recordings {
    folder: PathBuf,
    writer: RecordingWriter,
    /// The last one that began.
    last: RecordingName,
    /// Whether its requests are taken by a file.
    is_open: bool,
    /// When it ends, on the clock of operations.
    ends_ns: u64,
    span_ns: u64,
    keep_ns: u64,
    bounds: Bounds,
    /// Requests of recordings that ended early.
    dropped: u64,
    /// Errors that were said, and whether the early end of this recording was.
    said_errors: u64,
    said_end: bool,
}

/// Takes nothing: the writer is behind.
struct Behind;

impl RecordSink for Behind {
    fn take(&mut self, _part: RecordPart) -> Result<(), RecordStop> {
        Err(RecordStop::Behind)
    }
}

impl Recordings {
    /// Checks the folder that a stack asks for, if it does; `record` is a file of another kind of
    /// recording. Errors: both are asked for, or there is no folder in which one can be made.
    pub fn check(plan: &LivePlan, record: Option<&Path>) -> Result<(), LiveError> {
        let Some(folder) = &plan.serve.recordings else { return Ok(()) };
        if record.is_some() {
            return Err(plan.refuse(BOTH));
        }
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        if folder.is_dir() || (!folder.exists() && parent.is_none_or(Path::is_dir)) {
            return Ok(());
        }
        let found = if folder.exists() { "no folder" } else { "no folder for it" };
        let folder = folder.display();
        Err(plan.refuse(format!(
            "`serve.record`: found {found} at `{folder}`, expected a folder, or one to make it in"
        )))
    }

    /// Begins the first recording, if the stack asks for some. Errors: the operating system's.
    pub fn begin(
        plan: &LivePlan,
        io: &impl Io,
        blocks: &mut BlockServer,
    ) -> Result<Option<Recordings>, LiveError> {
        let Some(folder) = plan.serve.recordings.clone() else { return Ok(None) };
        let failed = |error: std::io::Error| {
            LiveError::Failed(format!("recordings in {}: {error}", folder.display()))
        };
        if !folder.is_dir() {
            std::fs::create_dir(&folder).map_err(failed)?;
        }
        let last = writer::found(&folder).into_iter().chain(writer::unfinished(&folder)).max();
        let writer = RecordingWriter::start(&folder).map_err(failed)?;
        let mut recordings = Recordings {
            writer,
            last: last.unwrap_or(RecordingName::at_ms(0)),
            folder,
            is_open: false,
            ends_ns: 0,
            span_ns: 0,
            keep_ns: 0,
            bounds: Bounds::default(),
            dropped: 0,
            said_errors: 0,
            said_end: false,
        };
        recordings.follow(plan);
        recordings.open(plan, io.now_ns(), blocks);
        Ok(Some(recordings))
    }

    /// Goes by the times of another stack from now on, by its bounds from the next recording on.
    pub fn follow(&mut self, plan: &LivePlan) {
        self.span_ns = plan.serve.record_span.0;
        self.keep_ns = plan.serve.record_keep.0;
        self.bounds =
            Bounds { files: plan.serve.record_files as usize, bytes: plan.serve.record_bytes.0 };
    }

    /// A line for operators.
    pub fn described(&self) -> String {
        format!("recording what is decided in the folder {}", self.folder.display())
    }

    /// Ends the recording and begins another one, when its span is over; else has it kept when that
    /// is due. To be called some times a second.
    pub fn tick(&mut self, plan: &LivePlan, io: &mut impl Io, blocks: &mut BlockServer) {
        let now_ns = io.now_ns();
        if now_ns >= self.ends_ns {
            self.roll(plan, io, blocks);
        } else if self.is_open {
            blocks.keep_recording(now_ns, self.keep_ns);
        }
    }

    /// Ends the recording and begins another one.
    pub fn roll(&mut self, plan: &LivePlan, io: &mut impl Io, blocks: &mut BlockServer) {
        self.close(io, blocks);
        self.open(plan, io.now_ns(), blocks);
    }

    fn close(&mut self, io: &mut impl Io, blocks: &mut BlockServer) {
        self.dropped += blocks.end_recording(io).map_or(0, |recorded| recorded.dropped);
    }

    fn open(&mut self, plan: &LivePlan, now_ns: u64, blocks: &mut BlockServer) {
        let volumes = plan.volumes.iter().map(|volume| volume.name.clone()).collect();
        // Names rise, whatever the clock of the machine does.
        let name = RecordingName::at_ms(unix_ms().max(self.last.unix_ms() + 1));
        let sink = self.writer.begin(name, volumes, self.bounds);
        self.is_open = sink.is_some();
        if self.is_open {
            self.last = name;
        }
        self.ends_ns = now_ns.saturating_add(if self.is_open { self.span_ns } else { AGAIN_NS });
        self.said_end = false;
        blocks.record(sink.unwrap_or_else(|| Box::new(Behind)));
    }

    /// Sentences about recordings that ended early and files that could not be written, once each.
    pub fn news(&mut self, blocks: &BlockServer) -> Vec<String> {
        let mut lines = Vec::new();
        let stopped = blocks.recorded().and_then(|recorded| recorded.stopped);
        if let Some(stop) = stopped.filter(|_| self.is_open && !self.said_end) {
            self.said_end = true;
            let why = match stop {
                RecordStop::Behind => "its file could not be written fast enough",
                RecordStop::Failed => "its file cannot be written",
            };
            let name = self.last;
            lines.push(format!("the recording {name} ends early, and another begins later: {why}"));
        }
        let counts = self.writer.counts();
        if counts.errors > self.said_errors {
            self.said_errors = counts.errors;
            lines.push(format!("recordings: {}", counts.last_error.unwrap_or_default()));
        }
        lines
    }

    /// What became of recordings so far.
    pub fn counts(&self) -> RecordingCounts {
        let mut counts = self.writer.counts();
        counts.dropped += self.dropped;
        counts
    }

    /// The folder, and the file of the recording under way when it will be finished.
    pub fn places(&self) -> (&Path, Option<String>) {
        (&self.folder, self.is_open.then(|| self.last.to_string()))
    }

    /// Ends the last recording; returns lines for operators.
    pub fn finish(mut self, io: &mut impl Io, blocks: &mut BlockServer) -> Vec<String> {
        self.close(io, blocks);
        let folder = self.folder.display().to_string();
        let mut counts = self.writer.finish();
        counts.dropped += self.dropped;
        let RecordingCounts { files, requests, dropped, errors, last_error, .. } = counts;
        let mut lines = vec![format!("recorded {requests} requests in {files} files in {folder}")];
        if dropped > 0 {
            lines.push(format!("{dropped} requests were not recorded"));
        }
        let unsaid = last_error.filter(|_| errors > self.said_errors);
        lines.extend(unsaid.map(|error| format!("recordings: {error}")));
        lines
    }
}

/// Milliseconds since 1970 UTC.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
