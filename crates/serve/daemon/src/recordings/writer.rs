//! The threads that write recordings, remove old ones and recover unfinished ones.
//!
//! For: files that appear under their names when they are finished. Must never know: the server,
//! when a recording is to end. Units: requests, bytes. One that cannot be written is given up; the
//! next one is tried all the same.

use super::counts::RecordingCounts;
use super::name::RecordingName;
use cachewright_live::io::worker::{Items, NotTaken, Worker, WorkerQueue};
use cachewright_live::record::{RecordPart, RecordSink, RecordStop};
use cachewright_trace::{Recovered, TraceError, TraceWriter, create_writer, recover_abandoned};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// The recording ends, and another one begins, of volumes named in the order of tenants.
    Begin(RecordingName, Vec<String>, Bounds),
    Part(RecordPart),
}

/// The threads, and what they have counted.
pub struct RecordingWriter {
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
        let (place, own) = (folder.clone(), tally.clone());
        let recovery = Worker::spawn("recovery", 1, move |_| recover(&place, &left, &own))?;
        let work = RecordingWork { folder, tally, bounds: Bounds::default(), file: None };
        let worker = Worker::spawn("recordings", WAITING_BATCHES, |items| work.run(items))?;
        Ok(RecordingWriter { worker, recovery, counts })
    }

    /// Begins a recording of volumes that are named in the order of tenants; the one before ends.
    /// Returns what takes its requests, and nothing if the thread is behind.
    pub fn begin(
        &self,
        name: RecordingName,
        volumes: Vec<String>,
        bounds: Bounds,
    ) -> Option<Box<dyn RecordSink>> {
        let queue = self.worker.queue();
        queue.offer(WriterItem::Begin(name, volumes, bounds)).ok()?;
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
    volumes: Vec<String>,
    /// Nothing when it was given up.
    writer: Option<Box<dyn TraceWriter>>,
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
                WriterItem::Begin(name, volumes, bounds) => {
                    self.finish();
                    self.bounds = bounds;
                    self.begin(name, volumes);
                }
                WriterItem::Part(part) => self.write(&part),
            }
        }
        self.finish();
    }

    fn begin(&mut self, name: RecordingName, volumes: Vec<String>) {
        self.tally.count(|counts| counts.kept = 0);
        let path = self.folder.join(name.to_string());
        let writer = self.tally.counted(create_writer("parquet", &path, &BTreeMap::new()));
        self.file = Some(OpenRecording { volumes, writer, requests: 0 });
    }

    fn write(&mut self, part: &RecordPart) {
        let Some(mut file) = self.file.take() else { return };
        let requests = part.requests.len() as u64;
        file.requests += requests;
        let written = file.writer.as_mut().map(|writer| {
            writer.write(&part.requests, &file.volumes)?;
            if part.is_kept { writer.keep() } else { Ok(()) }
        });
        match written {
            Some(Ok(())) if part.is_kept => {
                self.tally.count(|counts| counts.kept = file.requests);
            }
            Some(Ok(())) => {}
            Some(failed) => {
                // What was written of it is dropped with its writer, and leaves no file.
                file.writer = None;
                self.tally.count(|counts| counts.dropped += file.requests);
                self.tally.counted(failed);
            }
            None => self.tally.count(|counts| counts.dropped += requests),
        }
        self.file = Some(file);
    }

    fn finish(&mut self) {
        let Some(OpenRecording { writer: Some(writer), requests, .. }) = self.file.take() else {
            return;
        };
        let finished = self.tally.counted(writer.finish()).is_some();
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
        let mut names = found(&self.folder);
        names.sort_unstable();
        let (mut files, mut bytes) = (0, 0_u64);
        let mut old = Vec::new();
        for name in names.into_iter().rev() {
            let path = self.folder.join(name.to_string());
            files += 1;
            bytes = bytes.saturating_add(path.metadata().map_or(0, |found| found.len()));
            if files > 1 && (files > self.bounds.files || bytes > self.bounds.bytes) {
                old.push(path);
            }
        }
        for path in old {
            let removed = std::fs::remove_file(&path);
            let removed = removed.map_err(|source| TraceError::Io { path, source });
            if self.tally.counted(removed).is_some() {
                self.tally.count(|counts| counts.removed += 1);
            }
        }
    }
}

/// Puts in place what was kept of recordings whose server was killed, and removes the rest.
fn recover(folder: &Path, left: &[RecordingName], tally: &SharedCounts) {
    for name in left {
        let recovered = recover_abandoned(&folder.join(name.to_string()));
        if let Some(Recovered { requests, removed }) = tally.counted(recovered) {
            tally.count(|counts| {
                counts.recovered += u64::from(requests.is_some());
                counts.abandoned += removed;
            });
        }
    }
}

/// Recordings of which there are hidden files.
pub fn unfinished(folder: &Path) -> Vec<RecordingName> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let length = RecordingName::at_ms(0).to_string().len();
    let hidden = entries.filter_map(|entry| {
        let name = entry.file_name();
        RecordingName::parse(name.to_str()?.strip_prefix('.')?.get(..length)?)
    });
    hidden.collect()
}

/// The finished recordings in a folder; none if it cannot be read.
pub fn found(folder: &Path) -> Vec<RecordingName> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| RecordingName::parse(entry.file_name().to_str()?)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use cachewright_live::record::RequestRecorder;
    use cachewright_types::{Bytes, Nanos, Op, Request, TenantId};

    const BEGIN_MS: u64 = 1_764_105_435_000;
    const BOUNDS: Bounds = Bounds { files: 3, bytes: 1 << 40 };

    fn names(folder: &Path) -> Vec<u64> {
        let mut names: Vec<u64> = found(folder).into_iter().map(RecordingName::unix_ms).collect();
        names.sort_unstable();
        names.into_iter().map(|ms| ms - BEGIN_MS).collect()
    }

    /// Records so many requests in a file that begins then.
    fn record(writer: &RecordingWriter, begin_ms: u64, requests: u64, bounds: Bounds) {
        let name = RecordingName::at_ms(BEGIN_MS + begin_ms);
        let sink = writer.begin(name, vec!["a".to_owned()], bounds).unwrap();
        let mut recorder = RequestRecorder::new(sink, Nanos(0));
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
            writer.begin(name, vec!["a".to_owned()], BOUNDS).unwrap(),
            Nanos(0),
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
}
