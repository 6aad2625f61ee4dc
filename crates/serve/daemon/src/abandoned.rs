//! Recordings in files of their own that killed servers left.
//!
//! For: `--record`, which takes the same file again at a start behind a kill. Must never know: how
//! one is recovered. What was left of `served.parquet` becomes `served-1.parquet`, or has the
//! next number that is free. That happens on a thread: a long recording is read as a whole.

use crate::error::LiveError;
use crate::lines::OperatorLine;
use crate::recording::{is_taken, numbered};
use cachewright_live::io::worker::Worker;
use cachewright_trace::{
    Recovered, TraceError, has_abandoned, recover_abandoned, retarget_abandoned,
};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Recordings that are recovered.
pub struct AbandonedRecordings {
    worker: Worker<(), ()>,
    lines: Receiver<OperatorLine>,
}

impl AbandonedRecordings {
    /// Renames what killed servers left of a recording, so that `path` is free, and begins to
    /// recover it; nothing if nothing was left. Errors: the operating system's.
    pub fn begin(path: &Path) -> Result<Option<AbandonedRecordings>, LiveError> {
        let targets = renamed(path).map_err(failed)?;
        if targets.is_empty() {
            return Ok(None);
        }
        let (sender, lines) = channel();
        let work = move |_| recover(&targets, &sender);
        let worker = Worker::spawn("recovery", 1, work).map_err(failed)?;
        Ok(Some(AbandonedRecordings { worker, lines }))
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

fn recover(targets: &[PathBuf], lines: &Sender<OperatorLine>) {
    for target in targets {
        let path = target.display();
        let line = match recover_abandoned(target) {
            Ok(Recovered { requests: Some(requests), .. }) => OperatorLine::info(format!(
                "recording: {requests} requests of a server that was killed are in {path}"
            )),
            Ok(_) => OperatorLine::info(
                "recording: a server that was killed had kept nothing of its own",
            ),
            Err(error) => OperatorLine::warning(format!("recording: {error}")),
        };
        // The server may have ended.
        let _ = lines.send(line);
    }
}

fn failed(error: impl std::fmt::Display) -> LiveError {
    LiveError::Failed(format!("recording: {error}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use cachewright_trace::{
        Batch, DivisionRow, Divisions, DivisionsHead, DivisionsWriter, OpenOptions, Record,
        create_writer, divisions_path, open,
    };
    use cachewright_types::Op;
    use std::collections::BTreeMap;

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
        AbandonedRecordings::begin(path).unwrap().map_or(Vec::new(), AbandonedRecordings::finish)
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
