//! A native file that a killed process did not finish, cut to what is whole of it.
//!
//! Units: bytes, requests. [`TraceWriter::keep`](super::TraceWriter::keep) ends what was written so
//! far with a directory, behind which the file goes on. So the file up to the end of any of its
//! directories is a file of its own. The last one counts whose row groups all have their checksums:
//! power may be lost between a directory and what it names. Divisions are kept before the trace
//! beside which they stand, so that those of all its requests are found.

use super::atomic::{abandoned, retarget};
use crate::divisions::divisions_path;
use crate::state::state_path;
use crate::{Batch, Divisions, OpenOptions, TraceError, open};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// How a native file, and each of its directories, ends.
const MAGIC: &[u8] = b"PAR1";
/// Bytes of the shortest file: its head, and the length and the end of a directory.
const MIN_FILE_BYTES: u64 = 12;
/// Bytes that are searched at a time, and requests that are read.
const WINDOW_BYTES: u64 = 1 << 16;
const BATCH_REQUESTS: usize = 1 << 16;

/// What was found of a file that killed writers left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Requests of the file, which is in place now; none if nothing of it is whole.
    pub requests: Option<u64>,
    /// Hidden traces that were removed.
    pub removed: u64,
}

/// Whether killed writers of `target` left hidden files.
pub fn has_abandoned(target: &Path) -> bool {
    !abandoned(target).is_empty()
}

/// Makes what killed writers of `from` left that of `to`, another file in the same folder, with the
/// divisions and the state beside it: `from` can then be written anew. Errors: the operating
/// system's.
pub fn retarget_abandoned(from: &Path, to: &Path) -> Result<(), TraceError> {
    if !abandoned(from).is_empty() && state_path(from).exists() {
        let failed = |source| TraceError::Io { path: state_path(from), source };
        fs::rename(state_path(from), state_path(to)).map_err(failed)?;
    }
    let beside = (divisions_path(from), divisions_path(to));
    for (from, to) in [(beside.0.as_path(), beside.1.as_path()), (from, to)] {
        for (hidden, _lock) in abandoned(from) {
            let failed = |source| TraceError::Io { path: hidden.clone(), source };
            retarget(&hidden, from, to).map_err(failed)?;
        }
    }
    Ok(())
}

/// Puts in place what is whole of `target`, a native file that a killed writer left, behind the
/// divisions beside it, and removes other hidden files of both. A file that is there stays. Errors:
/// the operating system's; then hidden files stay for another try.
pub fn recover_abandoned(target: &Path) -> Result<Recovered, TraceError> {
    let failed = |source| TraceError::Io { path: target.to_owned(), source };
    let mut recovered = Recovered::default();
    for (hidden, mut file) in abandoned(target) {
        let is_wanted = recovered.requests.is_none() && !target.exists();
        let whole = if is_wanted { cut(&hidden, &mut file).map_err(failed)? } else { None };
        match whole {
            Some(requests) => {
                recover_divisions(&divisions_path(target))?;
                fs::rename(&hidden, target).map_err(failed)?;
                recovered.requests = Some(requests);
            }
            None => {
                fs::remove_file(&hidden).map_err(failed)?;
                recovered.removed += 1;
            }
        }
    }
    // Those of a trace of which nothing is whole.
    for (hidden, _lock) in abandoned(&divisions_path(target)) {
        fs::remove_file(&hidden).map_err(failed)?;
    }
    Ok(recovered)
}

/// Writes the divisions that are whole of a file that a killed writer left; one that is there
/// stays. Errors: the operating system's.
fn recover_divisions(path: &Path) -> Result<(), TraceError> {
    let failed = |source| TraceError::Io { path: path.to_owned(), source };
    for (hidden, mut file) in abandoned(path) {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let divisions = Divisions::parse_cut(&bytes).filter(|_| !path.exists());
        divisions.map_or(Ok(()), |divisions| divisions.write(path))?;
        fs::remove_file(&hidden).map_err(failed)?;
    }
    Ok(())
}

/// Cuts a file behind its last directory that holds; returns its requests, none without one.
fn cut(path: &Path, file: &mut File) -> io::Result<Option<u64>> {
    let mut end = file.metadata()?.len();
    while let Some(last) = last_end(file, end)? {
        // What lies behind was no whole file, or would have been taken.
        file.set_len(last)?;
        if let Ok(requests) = requests(path) {
            file.sync_all()?;
            return Ok(Some(requests));
        }
        end = last - 1;
    }
    Ok(None)
}

/// Where the last directory that ends at `end` or before may end.
fn last_end(file: &mut File, mut end: u64) -> io::Result<Option<u64>> {
    let mut window = Vec::new();
    while end >= MIN_FILE_BYTES {
        let start = end.saturating_sub(WINDOW_BYTES);
        window.resize((end - start) as usize, 0);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut window)?;
        let found = window.windows(MAGIC.len()).rposition(|bytes| bytes == MAGIC);
        if let Some(found) = found {
            let last = start + (found + MAGIC.len()) as u64;
            return Ok(Some(last).filter(|last| *last >= MIN_FILE_BYTES));
        }
        // The end of one may lie in both windows.
        end = if start == 0 { 0 } else { start + MAGIC.len() as u64 - 1 };
    }
    Ok(None)
}

/// Reads all of a file: each row group is compared with its checksum.
fn requests(path: &Path) -> Result<u64, TraceError> {
    let format = Some("parquet".to_owned());
    let mut reader = open(path, &OpenOptions { format, ..OpenOptions::default() })?;
    let (mut batch, mut requests) = (Batch::default(), 0);
    loop {
        match reader.read(&mut batch, BATCH_REQUESTS)? as u64 {
            0 => return Ok(requests),
            count => requests += count,
        }
        batch.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::testing::directory;
    use crate::write::{ParquetWriter, TraceWriter};
    use crate::{Record, create_writer};
    use cachewright_types::Op;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    const PARTS: [u64; 4] = [3, 700, 1, 5000];

    fn batch(first: u64, count: u64) -> Batch {
        let mut batch = Batch::default();
        for number in first..first + count {
            batch.push(Record {
                time_ns: number,
                // Offsets without a pattern, so that pages are about as large as they are.
                offset_bytes: 4096 * (number.wrapping_mul(0x9e37_79b9) % 1_000_003),
                length_bytes: 4096,
                op: Op::Write,
                volume: 0,
            });
        }
        batch
    }

    /// The bytes of a writer that was killed behind its last part, and where each part ends.
    fn killed(folder: &Path) -> (Vec<u8>, Vec<u64>) {
        let target = folder.join("whole.parquet");
        let mut writer = create_writer("parquet", &target, &BTreeMap::new()).unwrap();
        let hidden = || hidden_of(folder).pop().unwrap();
        let (mut first, mut ends) = (0, Vec::new());
        for count in PARTS {
            writer.write(&batch(first, count), &["a".to_owned()]).unwrap();
            writer.keep().unwrap();
            ends.push(hidden().metadata().unwrap().len());
            first += count;
        }
        writer.write(&batch(first, 50), &["a".to_owned()]).unwrap();
        let bytes = fs::read(hidden()).unwrap();
        writer.finish().unwrap();
        assert_eq!(requests(&target).unwrap(), first + 50, "one that was kept and finished");
        fs::remove_file(target).unwrap();
        (bytes, ends)
    }

    fn hidden_of(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Recovers what is left of a file.
    fn recovered(folder: &Path, left: &[u8]) -> Option<u64> {
        let target = folder.join("t.parquet");
        fs::write(folder.join(".t.parquet.4000000000.0.tmp"), left).unwrap();
        let found = recover_abandoned(&target).unwrap();
        assert_eq!(found.removed, u64::from(found.requests.is_none()));
        assert_eq!(found.requests, target.exists().then(|| requests(&target).unwrap()));
        assert_eq!(hidden_of(folder).len(), usize::from(found.requests.is_some()));
        let _ = fs::remove_file(target);
        found.requests
    }

    /// Requests of the parts that lie before a byte.
    fn kept(ends: &[u64], len: u64) -> Option<u64> {
        let whole = ends.iter().filter(|end| **end <= len).count();
        (whole > 0).then(|| PARTS[..whole].iter().sum())
    }

    #[test]
    fn a_file_cut_anywhere_has_all_parts_that_end_before() {
        let directory = directory();
        let (bytes, ends) = killed(directory.path());
        let near = ends.iter().flat_map(|end| [end - 1, *end, end + 1]);
        let all = (0..bytes.len() as u64).step_by(997).chain(near);
        for len in all.filter(|len| *len <= bytes.len() as u64) {
            let found = recovered(directory.path(), &bytes[..len as usize]);
            assert_eq!(found, kept(&ends, len), "{len} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn a_damaged_part_and_all_behind_it_are_left_out() {
        let directory = directory();
        let (bytes, ends) = killed(directory.path());
        for place in (4..bytes.len()).step_by(1009) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            let found = recovered(directory.path(), &damaged);
            assert!(found >= kept(&ends, place as u64), "byte {place}");
        }
        // Power was lost: the last part was not written, its directory was.
        let mut holed = bytes[..ends[3] as usize].to_vec();
        holed[ends[2] as usize..ends[2] as usize + 4096].fill(0);
        assert_eq!(recovered(directory.path(), &holed), kept(&ends, ends[2]));
    }

    #[test]
    fn a_file_in_place_stays_and_a_writer_at_work_keeps_its_own() {
        let directory = directory();
        let (bytes, _) = killed(directory.path());
        let target = directory.path().join("t.parquet");
        fs::write(&target, "whole").unwrap();
        let hidden = directory.path().join(".t.parquet.4000000000.0.tmp");
        fs::write(&hidden, &bytes).unwrap();
        let found = recover_abandoned(&target).unwrap();
        assert_eq!(found, Recovered { requests: None, removed: 1 });
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        fs::remove_file(&target).unwrap();
        let mut writer = ParquetWriter::create(&target, &BTreeMap::new()).unwrap();
        writer.write(&batch(0, 9), &["a".to_owned()]).unwrap();
        writer.keep().unwrap();
        assert_eq!(recover_abandoned(&target).unwrap(), Recovered::default());
        Box::new(writer).finish().unwrap();
        assert_eq!(requests(&target).unwrap(), 9);
    }
}
