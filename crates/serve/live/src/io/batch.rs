//! Operations one waits for: a batch where nothing else is under way, and single ones beside
//! others.
//!
//! Opening, formatting, recovery and offline tools use batches. Rare changes of a server that runs,
//! such as a volume that is added, wait beside what is under way; what that brings meanwhile is
//! kept in order for its owner.

use super::token::{Submitter, purpose};
use super::{ALIGNMENT, Buffer, Done, FileId, Io, IoError, IoOp, Output, Token};
use std::sync::Arc;

/// Operations under way at once.
const DEPTH: usize = 64;

/// Carries out operations and returns their results in order.
pub fn run(io: &mut impl Io, ops: Vec<IoOp>) -> Vec<Result<Output, IoError>> {
    let mut results: Vec<Option<Result<Output, IoError>>> = ops.iter().map(|_| None).collect();
    let (mut begun, mut ended, total) = (0, 0, ops.len());
    let mut ops = ops.into_iter();
    let mut done = Vec::new();
    while ended < total {
        for op in ops.by_ref().take(DEPTH - (begun - ended)) {
            io.submit(Token(begun as u64), op);
            begun += 1;
        }
        io.wait(&mut done);
        for done in done.drain(..) {
            let index = done.token.0 as usize;
            debug_assert!(index < total && results[index].is_none(), "nothing else is under way");
            if let Some(result) = results.get_mut(index) {
                *result = Some(done.error.map_or(Ok(done.output), Err));
                ended += 1;
            }
        }
    }
    results.into_iter().flatten().collect()
}

/// Reads ranges of files. Errors: the device's, one per range.
pub fn read(
    io: &mut impl Io,
    ranges: impl IntoIterator<Item = (FileId, u64, usize)>,
) -> Vec<Result<Buffer, IoError>> {
    let op = |(file, offset, length)| IoOp::Read { file, offset, buffer: Buffer::zeroed(length) };
    let results = run(io, ranges.into_iter().map(op).collect());
    let buffer = |result| match result {
        Ok(Output::Buffer(buffer, _)) => Ok(buffer),
        Ok(_) => Err(IoError::IO),
        Err(error) => Err(error),
    };
    results.into_iter().map(buffer).collect()
}

/// What could be read of a range.
#[derive(Debug)]
pub struct PartlyRead {
    /// Its bytes; zeroes where they could not be read.
    pub data: Buffer,
    /// The pages of the range that could not be read, by their first byte in it, and why.
    pub unreadable: Vec<(usize, IoError)>,
}

/// Reads ranges of whole pages; where a device cannot read all of one, it is read in ever smaller
/// parts, so that no page is given up for another. Errors: one that says nothing about the pages,
/// such as a device that is gone, and the place of the range among `ranges`.
pub fn read_pages(
    io: &mut impl Io,
    ranges: &[(FileId, u64, usize)],
) -> Result<Vec<PartlyRead>, (usize, IoError)> {
    let mut found = Vec::with_capacity(ranges.len());
    // Parts that are to be read yet: the range, the first byte in it, and bytes.
    let mut parts: Vec<(usize, usize, usize)> = Vec::new();
    for (index, result) in read(io, ranges.iter().copied()).into_iter().enumerate() {
        let (_, _, length) = ranges[index];
        let data = match result {
            Ok(data) => data,
            Err(error) if error.is_of_pages() => {
                parts.extend(split(index, 0, length));
                Buffer::zeroed(length)
            }
            Err(error) => return Err((index, error)),
        };
        found.push(PartlyRead { data, unreadable: Vec::new() });
    }
    while !parts.is_empty() {
        let places = parts.iter().map(|(index, start, length)| {
            let (file, offset, _) = ranges[*index];
            (file, offset + *start as u64, *length)
        });
        let results = read(io, places);
        for ((index, start, length), result) in std::mem::take(&mut parts).into_iter().zip(results)
        {
            match result {
                Ok(data) => found[index].data[start..start + length].copy_from_slice(&data),
                Err(error) if !error.is_of_pages() => return Err((index, error)),
                Err(error) if length <= ALIGNMENT => found[index].unreadable.push((start, error)),
                Err(_) => parts.extend(split(index, start, length)),
            }
        }
    }
    found.iter_mut().for_each(|range| range.unreadable.sort_unstable_by_key(|(start, _)| *start));
    Ok(found)
}

/// Two halves of a part of range `index`, of whole pages; a part of one page is tried once more.
fn split(index: usize, start: usize, length: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let half = (length / 2).next_multiple_of(ALIGNMENT).min(length);
    let halves = [(index, start, half), (index, start + half, length - half)];
    halves.into_iter().filter(|(_, _, length)| *length > 0)
}

/// Writes pieces to files and makes them durable. Errors: the first of a device.
pub fn write(
    io: &mut impl Io,
    pieces: impl IntoIterator<Item = (FileId, u64, Buffer)>,
) -> Result<(), IoError> {
    let mut files = Vec::new();
    let op = |(file, offset, buffer)| {
        files.push(file);
        IoOp::Write { file, offset, buffer: Arc::new(buffer) }
    };
    let writes = pieces.into_iter().map(op).collect();
    run(io, writes).into_iter().try_for_each(|result| result.map(drop))?;
    files.sort_unstable();
    files.dedup();
    let syncs = files.into_iter().map(|file| IoOp::Sync { file }).collect();
    run(io, syncs).into_iter().try_for_each(|result| result.map(drop))
}

/// Carries operations out beside those that are under way.
pub struct Aside<'a, I> {
    io: &'a mut I,
    done: Vec<Done>,
    others: Vec<Done>,
}

impl<'a, I: Io> Aside<'a, I> {
    /// Beside what is under way in `io`.
    pub fn new(io: &'a mut I) -> Aside<'a, I> {
        Aside { io, done: Vec::new(), others: Vec::new() }
    }

    /// What the others have brought meanwhile.
    pub fn into_others(self) -> Vec<Done> {
        self.others
    }
}

impl<I: Io> Io for Aside<'_, I> {
    fn submit(&mut self, token: Token, op: IoOp) {
        self.io.submit(Submitter::Aside.token(0, token.0 as usize), op);
    }

    fn wait(&mut self, done: &mut Vec<Done>) {
        let before = done.len();
        while done.len() == before {
            self.io.wait(&mut self.done);
            if self.done.is_empty() {
                return;
            }
            for found in self.done.drain(..) {
                let (_, number) = purpose(found.token);
                match Submitter::of(found.token) == Some(Submitter::Aside) {
                    true => done.push(Done { token: Token(number as u64), ..found }),
                    false => self.others.push(found),
                }
            }
        }
    }

    fn now_ns(&self) -> u64 {
        self.io.now_ns()
    }

    fn file_bytes(&self, file: FileId) -> u64 {
        self.io.file_bytes(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Buffer;
    use crate::io::sim::{Sim, SimFile};
    use cachewright_types::Seed;

    #[test]
    fn what_others_bring_meanwhile_is_kept() {
        for seed in 0..20 {
            let mut sim = Sim::new(Seed(seed));
            let file = sim.add_file(SimFile::new(1 << 16));
            for token in 0..4 {
                sim.submit(Token(1 << 56 | token), IoOp::Sync { file });
            }
            let mut aside = Aside::new(&mut sim);
            write(&mut aside, [(file, 0, Buffer::copy_of(&[7; 4096]))]).unwrap();
            let mut brought = aside.into_others();
            let mut done = Vec::new();
            while brought.len() < 4 {
                sim.wait(&mut done);
                assert!(!done.is_empty(), "all end, here or there");
                brought.append(&mut done);
            }
            let mut tokens: Vec<u64> = brought.iter().map(|done| done.token.0 & 0xff).collect();
            tokens.sort_unstable();
            assert_eq!(tokens, [0, 1, 2, 3]);
        }
    }
}
