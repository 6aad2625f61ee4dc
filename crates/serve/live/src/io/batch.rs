//! Operations one waits for: where nothing else is under way.
//!
//! For: opening, formatting, recovery, offline tools. Must never know: what is read. Units: bytes.

use super::{Buffer, FileId, Io, IoError, IoOp, Output, Token};
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
