//! Recordings of what a server decides: traces that a simulation replays.
//!
//! A recording is one file, or a folder of files of which each covers a span of time. It is decided
//! by one stack: a reload that changes what decides ends it and begins another. The server never
//! waits for a file. A recording that cannot go on ends, with a sentence, and serving goes on. A
//! file appears under its name when it is finished; what a killed server left is recovered on a
//! thread, because a long recording is read as a whole. `served.parquet` becomes
//! `served-1.parquet`, or has the next number that is free.
//!
//! What decides as a recording of a folder begins is written beside it, unless the stack says not
//! to. The server does not pause for it: a replica of what decides is saved, on a thread of its
//! own. A state appears while its recording is written, and goes with it; one whose recording never
//! appeared is removed at the next start.

use crate::error::LiveError;
use crate::operator::OperatorLine;
use crate::plan::LivePlan;
use cachewright_live::blocks::{BlockServer, LiveDecider};
use cachewright_live::io::Io;
use cachewright_live::io::worker::{Items, NotTaken, Worker, WorkerQueue};
use cachewright_live::record::{RecordFile, RecordPart, RecordSink, RecordStop, RecordingFiles};
use cachewright_trace::{
    DivisionsHead, EncodedState, RecordingName, Recovered, TraceError, divisions_path,
    has_abandoned, recordings_in, recover_abandoned, remove_divisions, remove_state,
    retarget_abandoned, state_path,
};
use cachewright_types::TenantId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

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
    /// Whether what decides is written beside a recording.
    with_state: bool,
    /// Recordings that have no state beside them, and why: not yet said to operators.
    without_state: Arc<Mutex<Vec<(RecordingName, String)>>>,
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
        let last = recordings_in(&folder).into_iter().chain(unfinished(&folder)).max();
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
            with_state: false,
            without_state: Arc::default(),
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
        self.with_state = plan.serve.record_state;
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
        let divisions = plan.divisions_head(blocks.last_decision()).map(Box::new);
        // Names rise, whatever the clock of the machine does.
        let name = RecordingName::at_ms(unix_ms().max(self.last.unix_ms() + 1));
        let sink = self.writer.begin(name, volumes, divisions, self.bounds);
        self.is_open = sink.is_some();
        if self.is_open {
            self.last = name;
        }
        match self.with_state {
            true if self.is_open => self.save_state(name, plan, blocks),
            true => {}
            false => blocks.drop_replica(),
        }
        self.ends_ns = now_ns.saturating_add(if self.is_open { self.span_ns } else { AGAIN_NS });
        self.said_end = false;
        blocks.record(sink.unwrap_or_else(|| Box::new(Behind)));
    }

    /// Has what decides now written beside the recording that begins; operators are told why where
    /// it cannot be. Nothing is decided while a replica begins: at a start, when a reload asks for
    /// states, and when the one before was lost.
    fn save_state(&mut self, name: RecordingName, plan: &LivePlan, blocks: &mut BlockServer) {
        let without = Arc::clone(&self.without_state);
        let tell = move |why: String| {
            without.lock().unwrap_or_else(PoisonError::into_inner).push((name, why));
        };
        let begun = settings_of_state(plan, blocks).and_then(|settings| {
            if !blocks.has_replica() {
                let empty = plan.decider().map_err(|error| error.to_string())?;
                blocks.replicate(empty)?;
            }
            Ok(settings)
        });
        let settings = match begun {
            Ok(settings) => settings,
            Err(why) => return tell(why),
        };
        let begin = blocks.state_begin();
        let (queue, tell_later) = (self.writer.worker.queue(), tell.clone());
        let saves = move |decider: Result<&LiveDecider, String>| {
            // Compressed here, so that the thread that writes is not kept from the recording.
            let encoded = decider.and_then(|decider| EncodedState::of(begin, &settings, decider));
            let taken = encoded.and_then(|state| {
                let item = WriterItem::State(name, state);
                queue.offer(item).map_err(|_| "the thread that writes it is behind".to_owned())
            });
            taken.unwrap_or_else(tell_later);
        };
        if !blocks.save_decider(saves) {
            tell("what follows the decisions beside the server was too far behind".to_owned());
        }
    }

    /// Sentences about recordings that ended early and files that could not be written, once each.
    pub fn news(&mut self, blocks: &BlockServer) -> Vec<String> {
        let mut lines = Vec::new();
        let mut without = self.without_state.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend(without.drain(..).map(|(name, why)| {
            format!("the recording {name} has no state beside it (`serve.record_state`): {why}")
        }));
        drop(without);
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
        // A state that is being saved is written as well.
        blocks.end_replica();
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

/// Counts since the start of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingCounts {
    /// Recordings that were finished.
    pub files: u64,
    /// Requests in them, with the flushes at which they begin and end.
    pub requests: u64,
    /// Requests that are in none.
    pub dropped: u64,
    /// Old recordings that were removed.
    pub removed: u64,
    /// Requests of the recording under way that outlive a kill.
    pub kept: u64,
    /// Unfinished recordings of servers that were killed: what was kept of them is in place.
    pub recovered: u64,
    /// Those of which nothing was kept, which were removed.
    pub abandoned: u64,
    /// Recordings that could not be written, and files that could not be removed.
    pub errors: u64,
    /// The last of these errors.
    pub last_error: Option<String>,
}

/// Batches that may wait for the device: more, and a recording ends.
const WAITING_BATCHES: usize = 256;

/// How much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Recordings at most.
    pub files: usize,
    /// Bytes of them at most; the last one is kept always.
    pub bytes: u64,
}

/// What the thread is handed.
enum WriterItem {
    /// The recording ends, and another one begins, of volumes named in the order of tenants, with
    /// divisions beside it if the cache is divided while it serves.
    Begin(RecordingName, Vec<String>, Option<Box<DivisionsHead>>, Bounds),
    Part(RecordPart),
    /// What decided when a recording began, which may be over by now.
    State(RecordingName, EncodedState),
}

/// The threads, and what they have counted.
struct RecordingWriter {
    worker: Worker<WriterItem, ()>,
    /// Recovers what a killed server left, while the other one writes.
    recovery: Worker<(), ()>,
    counts: Arc<Mutex<RecordingCounts>>,
}

/// Hands batches over to the thread.
struct WriterHandover(WorkerQueue<WriterItem>);

impl RecordSink for WriterHandover {
    fn take(&mut self, part: RecordPart) -> Result<(), RecordStop> {
        self.0.offer(WriterItem::Part(part)).map_err(|reason| match reason {
            NotTaken::Full => RecordStop::Behind,
            NotTaken::Ended => RecordStop::Failed,
        })
    }
}

impl RecordingWriter {
    /// Begins the threads, of which one looks after what a killed server left in `folder`. Errors:
    /// the operating system's.
    pub fn start(folder: &Path) -> std::io::Result<RecordingWriter> {
        let counts = Arc::new(Mutex::new(RecordingCounts::default()));
        let (folder, tally) = (folder.to_owned(), SharedCounts(Arc::clone(&counts)));
        let left = unfinished(&folder);
        let alone = alone_beside(&folder, &left);
        let (place, own) = (folder.clone(), tally.clone());
        let recovery = Worker::spawn("recovery", 1, move |_| {
            recover_in_folder(&place, &left, &own);
            alone.iter().for_each(|name| drop_beside(&place, *name, &own));
        })?;
        let work = RecordingWork { folder, tally, bounds: Bounds::default(), file: None };
        let worker = Worker::spawn("recordings", WAITING_BATCHES, |items| work.run(items))?;
        Ok(RecordingWriter { worker, recovery, counts })
    }

    /// Begins a recording of volumes that are named in the order of tenants, with `divisions`
    /// beside it if the cache is divided while it serves; the one before ends. Returns what takes
    /// its requests, and nothing if the thread is behind.
    pub fn begin(
        &self,
        name: RecordingName,
        volumes: Vec<String>,
        divisions: Option<Box<DivisionsHead>>,
        bounds: Bounds,
    ) -> Option<Box<dyn RecordSink>> {
        let queue = self.worker.queue();
        queue.offer(WriterItem::Begin(name, volumes, divisions, bounds)).ok()?;
        Some(Box::new(WriterHandover(queue)))
    }

    /// What became of recordings so far.
    pub fn counts(&self) -> RecordingCounts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the last recording is finished.
    pub fn finish(self) -> RecordingCounts {
        self.worker.finish();
        self.recovery.finish();
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A recording that is written.
struct OpenRecording {
    name: RecordingName,
    volumes: Vec<String>,
    /// Nothing when it was given up.
    files: Option<RecordingFiles>,
    requests: u64,
}

/// What both threads count.
#[derive(Clone)]
struct SharedCounts(Arc<Mutex<RecordingCounts>>);

impl SharedCounts {
    /// The value, or nothing for an error, which is counted.
    fn counted<T>(&self, result: Result<T, TraceError>) -> Option<T> {
        let note = |error: TraceError| {
            self.count(|counts| {
                counts.errors += 1;
                counts.last_error = Some(error.to_string());
            });
        };
        result.map_err(note).ok()
    }

    fn count(&self, change: impl FnOnce(&mut RecordingCounts)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// What the thread that writes does.
struct RecordingWork {
    folder: PathBuf,
    tally: SharedCounts,
    bounds: Bounds,
    file: Option<OpenRecording>,
}

impl RecordingWork {
    fn run(mut self, items: Items<WriterItem>) {
        for item in items {
            match item {
                WriterItem::Begin(name, volumes, divisions, bounds) => {
                    self.finish();
                    self.bounds = bounds;
                    self.begin(name, volumes, divisions.as_deref());
                }
                WriterItem::Part(part) => self.write(&part),
                WriterItem::State(name, state) => self.write_state(name, &state),
            }
        }
        self.finish();
    }

    fn begin(
        &mut self,
        name: RecordingName,
        volumes: Vec<String>,
        divisions: Option<&DivisionsHead>,
    ) {
        self.tally.count(|counts| counts.kept = 0);
        let path = self.folder.join(name.to_string());
        let files = self.tally.counted(RecordingFiles::create(&path, divisions));
        self.file = Some(OpenRecording { name, volumes, files, requests: 0 });
    }

    /// Writes a state beside its recording, if that is being written or is there. Where it cannot
    /// be written, the recording can still be replayed from an empty cache.
    fn write_state(&mut self, name: RecordingName, state: &EncodedState) {
        let path = self.folder.join(name.to_string());
        let is_open = |file: &OpenRecording| file.name == name && file.files.is_some();
        if self.file.as_ref().is_some_and(is_open) || is_there(&path) {
            self.tally.counted(state.write(&state_path(&path)));
        }
    }

    fn write(&mut self, part: &RecordPart) {
        let Some(mut file) = self.file.take() else { return };
        let requests = part.requests.len() as u64;
        file.requests += requests;
        let written = file.files.as_mut().map(|files| files.write(part, &file.volumes));
        match written {
            Some(Ok(())) if part.is_kept => {
                self.tally.count(|counts| counts.kept = file.requests);
            }
            Some(Ok(())) => {}
            Some(failed) => {
                // What was written of it is dropped with its writer, and leaves no file.
                file.files = None;
                self.tally.count(|counts| counts.dropped += file.requests);
                self.tally.counted(failed);
            }
            None => self.tally.count(|counts| counts.dropped += requests),
        }
        self.file = Some(file);
    }

    fn finish(&mut self) {
        let Some(OpenRecording { name, files, requests, .. }) = self.file.take() else { return };
        let Some(files) = files else { return drop_beside(&self.folder, name, &self.tally) };
        let finished = self.tally.counted(files.finish()).is_some();
        if !finished {
            drop_beside(&self.folder, name, &self.tally);
        }
        // Before it counts as finished, so that old ones are gone by then.
        if finished {
            self.remove_old();
        }
        self.tally.count(|counts| match finished {
            true => {
                counts.files += 1;
                counts.requests += requests;
            }
            false => counts.dropped += requests,
        });
    }

    /// Removes the oldest recordings until what is left is within the bounds.
    fn remove_old(&mut self) {
        let mut names = recordings_in(&self.folder);
        names.sort_unstable();
        let (mut files, mut bytes) = (0, 0_u64);
        let mut old = Vec::new();
        for name in names.into_iter().rev() {
            let path = self.folder.join(name.to_string());
            files += 1;
            let length = |path: &Path| path.metadata().map_or(0, |found| found.len());
            let all = [&path, &state_path(&path), &divisions_path(&path)];
            bytes = all.into_iter().fold(bytes, |sum, path| sum.saturating_add(length(path)));
            if files > 1 && (files > self.bounds.files || bytes > self.bounds.bytes) {
                old.push((name, path));
            }
        }
        for (name, path) in old {
            drop_beside(&self.folder, name, &self.tally);
            let removed = std::fs::remove_file(&path);
            let removed = removed.map_err(|source| TraceError::Io { path, source });
            if self.tally.counted(removed).is_some() {
                self.tally.count(|counts| counts.removed += 1);
            }
        }
    }
}

/// Puts in place what was kept of recordings whose server was killed, and removes the rest.
fn recover_in_folder(folder: &Path, left: &[RecordingName], tally: &SharedCounts) {
    for name in left {
        let recovered = recover_abandoned(&folder.join(name.to_string()));
        if let Some(Recovered { requests, removed }) = tally.counted(recovered) {
            if requests.is_none() {
                drop_beside(folder, *name, tally);
            }
            tally.count(|counts| {
                counts.recovered += u64::from(requests.is_some());
                counts.abandoned += removed;
            });
        }
    }
}

/// Removes the state and the divisions beside a recording that is not there, or not any more.
fn drop_beside(folder: &Path, name: RecordingName, tally: &SharedCounts) {
    let recording = folder.join(name.to_string());
    tally.counted(remove_state(&recording));
    tally.counted(remove_divisions(&recording));
}

/// Recordings whose state or divisions are there, or were being written, and of which nothing else
/// is.
fn alone_beside(folder: &Path, left: &[RecordingName]) -> Vec<RecordingName> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let length = RecordingName::at_ms(0).to_string().len();
    let recording = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_str()?;
        let (name, rest) = name.strip_prefix('.').unwrap_or(name).split_at_checked(length)?;
        is_beside(rest).then(|| RecordingName::parse(name)).flatten()
    };
    let mut alone: Vec<RecordingName> = entries.filter_map(recording).collect();
    let is_there = |name: &RecordingName| folder.join(name.to_string()).exists();
    alone.retain(|name| !is_there(name) && !left.contains(name));
    alone
}

/// Whether what follows the name of a recording in that of a file stands beside it.
fn is_beside(rest: &str) -> bool {
    rest.starts_with(".state") || rest.starts_with(".divisions")
}

/// Recordings of which there are hidden files.
fn unfinished(folder: &Path) -> Vec<RecordingName> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let length = RecordingName::at_ms(0).to_string().len();
    let hidden = entries.filter_map(|entry| {
        let name = entry.file_name();
        let (name, rest) = name.to_str()?.strip_prefix('.')?.split_at_checked(length)?;
        (!is_beside(rest)).then(|| RecordingName::parse(name)).flatten()
    });
    hidden.collect()
}

/// A recording under way.
struct LiveRecording {
    file: RecordFile,
    path: PathBuf,
    /// Why what decided as it began is not beside it, if it is not.
    without_state: Option<String>,
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

    /// Begins a file. What decides is written beside it first, while nothing is decided. Errors:
    /// the operating system's.
    pub fn begin(
        path: &Path,
        plan: &LivePlan,
        blocks: &BlockServer,
    ) -> Result<LiveRecording, LiveError> {
        // One that stands there alone is of a recording that went.
        remove_state(path).map_err(failed)?;
        let without_state = match plan.serve.record_state {
            true => write_state(path, plan, blocks).err(),
            false => Some("`serve.record_state` is `false`".to_owned()),
        };
        let names = plan.volumes.iter().map(|volume| volume.name.clone()).collect();
        let divisions = plan.divisions_head(blocks.last_decision());
        let file = RecordFile::create(path, names, divisions.as_ref()).map_err(failed)?;
        Ok(LiveRecording { file, path: path.to_owned(), without_state, reported: false })
    }

    /// What takes the requests.
    fn sink(&self) -> Box<dyn RecordSink> {
        self.file.sink()
    }

    /// A line for operators, where the cache holds so many blocks at the start.
    pub fn described(&self, blocks: u64) -> String {
        let path = self.path.display();
        match (&self.without_state, blocks) {
            (None, 0) => format!("recording what is decided in {path}"),
            (Some(why), 0) => {
                format!("recording what is decided in {path}, without a state beside it: {why}")
            }
            (None, _) => format!(
                "recording what is decided in {path}; this cache is not empty, and a replay of \
                 `{path}@0s` begins with it as it is"
            ),
            (Some(why), _) => format!(
                "recording what is decided in {path}; a replay begins with an empty cache, and \
                 this one is not empty: {why}"
            ),
        }
    }

    /// A sentence if the recording has ended early, the first time that this is found.
    fn stopped_early(&mut self, blocks: &BlockServer) -> Option<String> {
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

    /// Ends the recording for a reason, such as that another stack decides from now on. What was
    /// recorded gets the next free number, so that the file can begin anew. Returns a line for
    /// operators. Errors: the operating system's, also of earlier writes.
    pub fn set_aside(
        self,
        io: &mut impl Io,
        blocks: &mut BlockServer,
        why: &str,
    ) -> Result<String, LiveError> {
        let (path, requests) = self.end(io, blocks)?;
        let target = free_name(&path);
        for beside in [divisions_path, state_path] {
            if is_there(&beside(&path)) {
                std::fs::rename(beside(&path), beside(&target)).map_err(failed)?;
            }
        }
        std::fs::rename(&path, &target).map_err(failed)?;
        let target = target.display();
        Ok(format!("recorded {requests} requests in {target}: {why}"))
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

/// Writes what decides beside a recording that begins. Errors: in words.
fn write_state(path: &Path, plan: &LivePlan, blocks: &BlockServer) -> Result<(), String> {
    let settings = settings_of_state(plan, blocks)?;
    let state = EncodedState::of(blocks.state_begin(), &settings, &*blocks.decider())?;
    state.write(&state_path(path)).map(drop).map_err(|error| error.to_string())
}

/// The settings that stand beside a state. Errors: a setting is refused; a tenant that was removed
/// has blocks, which leave at times that no recording has.
fn settings_of_state(
    plan: &LivePlan,
    blocks: &BlockServer,
) -> Result<Vec<(String, String)>, String> {
    let mut removed = plan.removed_tenants();
    if let Some(tenant) = removed.find(|tenant| !blocks.has_gone(*tenant)) {
        let name = &plan.volumes[tenant.index()].name;
        return Err(format!("`{name}` is being removed; another begins when it has gone"));
    }
    plan.deciding()
}

/// `served.parquet` with a number is `served-1.parquet`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Whether a recording, or something beside it, has this name.
pub(crate) fn is_taken(path: &Path) -> bool {
    [path, &divisions_path(path), &state_path(path)].into_iter().any(is_there)
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

/// Recordings that are recovered.
struct OrphanedRecordings {
    worker: Worker<(), ()>,
    lines: Receiver<OperatorLine>,
}

impl OrphanedRecordings {
    /// Renames what killed servers left of a recording, so that `path` is free, and begins to
    /// recover it; nothing if nothing was left. Errors: the operating system's.
    pub fn begin(path: &Path) -> Result<Option<OrphanedRecordings>, LiveError> {
        let targets = renamed(path).map_err(failed)?;
        if targets.is_empty() {
            return Ok(None);
        }
        let (sender, lines) = channel();
        let work = move |_| recover_orphans(&targets, &sender);
        let worker = Worker::spawn("recovery", 1, work).map_err(failed)?;
        Ok(Some(OrphanedRecordings { worker, lines }))
    }

    /// What has become of them since the last call.
    pub fn news(&self) -> Vec<OperatorLine> {
        self.lines.try_iter().collect()
    }

    /// Waits until all are recovered; returns what has become of them since the last call.
    pub fn finish(self) -> Vec<String> {
        self.worker.finish();
        self.lines.try_iter().map(|line| line.text).collect()
    }
}

/// Gives what was left of `path` the next free name; returns all names under which something is to
/// be recovered. Errors: the operating system's.
fn renamed(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let mut targets = Vec::new();
    for number in 1_u64.. {
        let target = numbered(path, number);
        if has_abandoned(&target) {
            // A server that was recovering it was killed, too.
            targets.push(target);
        } else if !is_taken(&target) {
            if has_abandoned(path) {
                retarget_abandoned(path, &target)?;
                targets.push(target);
            }
            break;
        }
    }
    Ok(targets)
}

fn recover_orphans(targets: &[PathBuf], lines: &Sender<OperatorLine>) {
    for target in targets {
        let path = target.display();
        let line = match recover_abandoned(target) {
            Ok(Recovered { requests: Some(requests), .. }) => OperatorLine::info(format!(
                "recording: {requests} requests of a server that was killed are in {path}"
            )),
            Ok(_) => {
                // Nothing was kept for it to continue.
                let _ = remove_state(target);
                OperatorLine::info(
                    "recording: a server that was killed had kept nothing of its own",
                )
            }
            Err(error) => OperatorLine::warning(format!("recording: {error}")),
        };
        // The server may have ended.
        let _ = lines.send(line);
    }
}

/// Recordings under way; see the top of the file.
pub(crate) struct DecisionRecorder {
    file: Option<LiveRecording>,
    /// Recordings of servers that were killed.
    orphaned: Option<OrphanedRecordings>,
    folder: Option<Recordings>,
}

impl DecisionRecorder {
    /// Errors: what is decided cannot be recorded as wanted.
    pub(crate) fn check(plan: &LivePlan, record: Option<&Path>) -> Result<(), LiveError> {
        record.map_or(Ok(()), LiveRecording::check)?;
        Recordings::check(plan, record)
    }

    /// Begins to record, in the file `record` if there is one and in a folder if the stack asks for
    /// that, and to recover what killed servers left of the file. Errors: the operating system's.
    pub(crate) fn begin(
        record: Option<&Path>,
        plan: &LivePlan,
        io: &impl Io,
        blocks: &mut BlockServer,
    ) -> Result<DecisionRecorder, LiveError> {
        let orphaned = record.map(OrphanedRecordings::begin).transpose()?.flatten();
        let file = record.map(|path| LiveRecording::begin(path, plan, blocks)).transpose()?;
        file.iter().for_each(|file| blocks.record(file.sink()));
        let folder = Recordings::begin(plan, io, blocks)?;
        Ok(DecisionRecorder { file, orphaned, folder })
    }

    /// Lines for operators, where the cache holds so many blocks at the start.
    pub(crate) fn described(&self, blocks: u64) -> Vec<String> {
        let file = self.file.iter().map(|file| file.described(blocks));
        file.chain(self.folder.iter().map(Recordings::described)).collect()
    }

    /// The recordings in a folder, if there are such.
    pub(crate) fn folder(&self) -> Option<&Recordings> {
        self.folder.as_ref()
    }

    /// Lines about recordings that have ended early, failed or been recovered since the last call.
    pub(crate) fn news(&mut self, blocks: &BlockServer) -> Vec<OperatorLine> {
        let stopped = self.file.as_mut().and_then(|file| file.stopped_early(blocks));
        let rolled = self.folder.as_mut().map(|folder| folder.news(blocks));
        let lines = stopped.into_iter().chain(rolled.into_iter().flatten());
        let recovered = self.orphaned.iter().flat_map(OrphanedRecordings::news);
        lines.map(OperatorLine::warning).chain(recovered).collect()
    }

    /// Recordings end, and what was recorded is kept, when that is due.
    pub(crate) fn tick(
        &mut self,
        plan: &LivePlan,
        io: &mut impl Io,
        blocks: &mut BlockServer,
        now_ns: u64,
    ) {
        if let Some(folder) = &mut self.folder {
            folder.tick(plan, io, blocks);
        } else if self.file.is_some() {
            blocks.keep_recording(now_ns, plan.serve.record_keep.0);
        }
    }

    /// Finishes the recording under way in the folder of recordings, and begins another one.
    pub(crate) fn roll(&mut self, plan: &LivePlan, io: &mut impl Io, blocks: &mut BlockServer) {
        if let Some(folder) = &mut self.folder {
            folder.roll(plan, io, blocks);
        }
    }

    /// Goes by the times of another stack from now on.
    pub(crate) fn follow(&mut self, plan: &LivePlan) {
        self.folder.iter_mut().for_each(|folder| folder.follow(plan));
    }

    /// Ends the recording in a file for a reason. Returns where it is to begin anew, and what
    /// operators are told.
    pub(crate) fn set_aside(
        &mut self,
        io: &mut impl Io,
        blocks: &mut BlockServer,
        why: &str,
    ) -> (Option<PathBuf>, Vec<String>) {
        let Some(recording) = self.file.take() else { return (None, Vec::new()) };
        let path = recording.path().to_owned();
        let line = recording.set_aside(io, blocks, why).unwrap_or_else(|error| error.to_string());
        (Some(path), vec![line])
    }

    /// Begins the recording in a file again; returns what operators are told.
    pub(crate) fn begin_again(
        &mut self,
        path: &Path,
        plan: &LivePlan,
        blocks: &mut BlockServer,
    ) -> String {
        let begun = LiveRecording::check(path);
        let begun = begun.and_then(|()| LiveRecording::begin(path, plan, blocks));
        match begun {
            Ok(recording) => {
                blocks.record(recording.sink());
                let cache = blocks.cache();
                let engine = cache.engine();
                let tenants = (0..plan.volumes.len()).map(|tenant| TenantId(tenant as u16));
                let held = tenants.map(|tenant| u64::from(engine.occupancy(tenant))).sum::<u64>();
                let line = recording.described(held);
                self.file = Some(recording);
                line
            }
            Err(error) => format!("the recording ends: {error}"),
        }
    }

    /// Ends all recordings; returns lines for operators. Errors: those of the file.
    pub(crate) fn finish(
        self,
        io: &mut impl Io,
        blocks: &mut BlockServer,
    ) -> Result<Vec<String>, LiveError> {
        let recorded = self.file.map(|file| file.finish(io, blocks));
        let rolled = self.folder.map(|folder| folder.finish(io, blocks));
        let recovered = self.orphaned.map(OrphanedRecordings::finish);
        let recorded = recorded.transpose()?;
        Ok(recorded.into_iter().chain(rolled.into_iter().chain(recovered).flatten()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_live::record::RequestRecorder;
    use cachewright_trace::{
        Batch, DivisionRow, Divisions, DivisionsWriter, OpenOptions, Record, create_writer, open,
    };
    use cachewright_types::{Bytes, Nanos, Op, Request};
    use std::collections::BTreeMap;

    const BEGIN_MS: u64 = 1_764_105_435_000;
    const BOUNDS: Bounds = Bounds { files: 3, bytes: 1 << 40 };

    fn names(folder: &Path) -> Vec<u64> {
        let mut names: Vec<u64> =
            recordings_in(folder).into_iter().map(RecordingName::unix_ms).collect();
        names.sort_unstable();
        names.into_iter().map(|ms| ms - BEGIN_MS).collect()
    }

    /// Records so many requests in a file that begins then.
    fn record(writer: &RecordingWriter, begin_ms: u64, requests: u64, bounds: Bounds) {
        let name = RecordingName::at_ms(BEGIN_MS + begin_ms);
        let sink = writer.begin(name, vec!["a".to_owned()], None, bounds).unwrap();
        let mut recorder = RequestRecorder::new(sink, Nanos(0), TenantId(0));
        for time in 1..=requests {
            recorder.note(&Request {
                time: Nanos(time),
                offset: Bytes(0),
                length: Bytes(4096),
                op: Op::Read,
                tenant: TenantId(0),
            });
        }
        recorder.finish();
    }

    #[test]
    fn recordings_are_whole_files_and_the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::write(path.join("notes.parquet"), "of another kind").unwrap();
        let old = RecordingName::at_ms(BEGIN_MS - 4001).to_string();
        std::fs::write(path.join(&old), "old").unwrap();
        std::fs::write(path.join(format!(".{old}.4000000000.0.tmp")), "of a killed one").unwrap();
        let writer = RecordingWriter::start(path).unwrap();
        (0..7).for_each(|file| record(&writer, file * 1000, 10 * file, BOUNDS));
        let counts = writer.finish();
        let requests = 7 + 10 * (1..7).sum::<u64>();
        let (files, removed, abandoned) = (7, 5, 1);
        let expected =
            RecordingCounts { files, requests, removed, abandoned, ..RecordingCounts::default() };
        assert_eq!(counts, expected, "each begins with a flush");
        assert_eq!(names(path), [4000, 5000, 6000]);
        assert_eq!(std::fs::read_dir(path).unwrap().count(), 4, "and what is no recording");
    }

    #[test]
    fn what_was_kept_of_a_killed_recording_is_found_under_its_name() {
        let (of_killed, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let name = RecordingName::at_ms(BEGIN_MS);
        let writer = RecordingWriter::start(of_killed.path()).unwrap();
        let mut recorder = RequestRecorder::new(
            writer.begin(name, vec!["a".to_owned()], None, BOUNDS).unwrap(),
            Nanos(0),
            TenantId(0),
        );
        recorder.keep(Nanos(10), 10);
        while writer.counts().kept == 0 {
            std::thread::yield_now();
        }
        let hidden = std::fs::read_dir(of_killed.path()).unwrap().next().unwrap().unwrap().path();
        let copy = folder.path().join(format!(".{name}.4000000000.0.tmp"));
        std::fs::copy(hidden, copy).unwrap();
        let counts = RecordingWriter::start(folder.path()).unwrap().finish();
        assert_eq!(counts, RecordingCounts { recovered: 1, ..RecordingCounts::default() });
        assert_eq!((names(folder.path()), unfinished(folder.path()).len()), (vec![0], 0));
    }

    #[test]
    fn bytes_are_bounded_and_the_last_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let writer = RecordingWriter::start(folder.path()).unwrap();
        let bounds = Bounds { files: 100, bytes: 1 };
        (0..4).for_each(|file| record(&writer, file, 10, bounds));
        assert_eq!(writer.finish().removed, 3);
        assert_eq!(names(folder.path()), [3]);
    }

    #[test]
    fn one_that_cannot_be_written_is_given_up_and_the_next_one_is_tried() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        let writer = RecordingWriter::start(&inner).unwrap();
        record(&writer, 0, 4, BOUNDS);
        while writer.counts().dropped == 0 {
            std::thread::yield_now();
        }
        std::fs::create_dir(&inner).unwrap();
        record(&writer, 1000, 6, BOUNDS);
        let counts = writer.finish();
        assert_eq!((counts.files, counts.requests, counts.dropped), (1, 7, 5));
        assert_eq!(counts.errors, 1);
        assert!(counts.last_error.unwrap().contains("inner"));
        assert_eq!(names(&inner), [1000]);
    }

    fn batch(first: u64, count: u64) -> Batch {
        let mut batch = Batch::default();
        (first..first + count).for_each(|time_ns| {
            let (offset_bytes, length_bytes, op, volume) = (4096 * time_ns, 512, Op::Read, 0);
            batch.push(Record { time_ns, offset_bytes, length_bytes, op, volume });
        });
        batch
    }

    fn hidden(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with('.'))
            .collect()
    }

    /// What a server leaves that is killed when it has kept so many requests, and has decided more.
    fn killed(path: &Path, kept: u64) {
        let other = tempfile::tempdir().unwrap();
        let name = path.file_name().unwrap();
        let at_work = other.path().join(name);
        let tenants = vec!["a".to_owned()];
        let head = DivisionsHead {
            partition: "hull".to_owned(),
            interval_ns: 10,
            origin_ns: 0,
            block_bytes: 4096,
            capacity_blocks: 8,
            tenants: tenants.clone(),
        };
        let mut divisions = DivisionsWriter::create(&divisions_path(&at_work), &head).unwrap();
        let mut trace = create_writer("parquet", &at_work, &BTreeMap::new()).unwrap();
        divisions.write(&DivisionRow { time_ns: 0, quotas: vec![3] }).unwrap();
        if kept > 0 {
            trace.write(&batch(0, kept), &tenants).unwrap();
            divisions.keep().unwrap();
            trace.keep().unwrap();
        }
        trace.write(&batch(kept, 9), &tenants).unwrap();
        for file in hidden(other.path()) {
            std::fs::copy(&file, path.with_file_name(file.file_name().unwrap())).unwrap();
        }
    }

    fn requests(path: &Path) -> u64 {
        let mut reader = open(path, &OpenOptions::default()).unwrap();
        let mut batch = Batch::default();
        while reader.read(&mut batch, 1000).unwrap() > 0 {}
        batch.len() as u64
    }

    fn recovered(path: &Path) -> Vec<String> {
        OrphanedRecordings::begin(path).unwrap().map_or(Vec::new(), OrphanedRecordings::finish)
    }

    #[test]
    fn recordings_of_killed_servers_get_numbers_and_keep_their_divisions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("served.parquet");
        assert_eq!(recovered(&path), [""; 0]);
        for (number, kept) in [(1, 5), (2, 700)] {
            killed(&path, kept);
            let target = folder.path().join(format!("served-{number}.parquet"));
            let line = format!(
                "recording: {kept} requests of a server that was killed are in {}",
                target.display()
            );
            assert_eq!(recovered(&path), [line]);
            assert_eq!(requests(&target), kept);
            let divisions = Divisions::read(&divisions_path(&target)).unwrap();
            assert_eq!(divisions.rows, [DivisionRow { time_ns: 0, quotas: vec![3] }]);
            assert_eq!(hidden(folder.path()), [""; 0].map(PathBuf::from));
        }
        assert!(!path.exists());
    }

    #[test]
    fn what_was_not_recovered_before_another_kill_is_recovered_later() {
        let folder = tempfile::tempdir().unwrap();
        let (path, first) =
            (folder.path().join("served.parquet"), folder.path().join("served-1.parquet"));
        killed(&first, 4);
        killed(&path, 6);
        assert_eq!(recovered(&path).len(), 2);
        assert_eq!((requests(&first), requests(&numbered(&path, 2))), (4, 6));
    }

    #[test]
    fn of_a_server_that_kept_nothing_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("served");
        killed(&path, 0);
        assert_eq!(hidden(folder.path()).len(), 2);
        let line = "recording: a server that was killed had kept nothing of its own";
        assert_eq!(recovered(&path), [line]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
