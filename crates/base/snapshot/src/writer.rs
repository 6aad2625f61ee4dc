//! The bytes of a snapshot as they grow.

use crate::SnapshotError;
use std::io::Write;

/// Bytes that are handed to a sink together, about.
const PIECE: usize = 1 << 18;

/// Takes the bytes of a snapshot, and keeps them or hands them on.
#[derive(Default)]
pub struct SnapshotWriter<'a> {
    /// All bytes; with a sink, those that it has not got yet.
    bytes: Vec<u8>,
    sink: Option<&'a mut dyn Write>,
    /// Why there is no snapshot: the first reason.
    error: Option<SnapshotError>,
}

impl<'a> SnapshotWriter<'a> {
    /// Hands the bytes on to `sink` as they grow.
    pub fn to(sink: &'a mut dyn Write) -> SnapshotWriter<'a> {
        SnapshotWriter { bytes: Vec::with_capacity(2 * PIECE), sink: Some(sink), error: None }
    }

    /// So many bytes more will be written.
    pub fn reserve(&mut self, bytes: usize) {
        if self.sink.is_none() {
            self.bytes.reserve(bytes);
        }
    }

    /// Writes bytes as they are.
    #[inline(always)]
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() >= PIECE && self.sink.is_some() {
            self.hand_on();
        }
    }

    /// So many bytes more, zero, to be filled.
    pub fn extend(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes.len() >= PIECE {
            self.hand_on();
        }
        let from = self.bytes.len();
        self.bytes.resize(from + bytes, 0);
        &mut self.bytes[from..]
    }

    /// Writes the number of a variant.
    #[inline(always)]
    pub fn tag(&mut self, variant: u32) {
        self.put(&variant.to_le_bytes());
    }

    /// Writes the length of a list.
    #[inline(always)]
    pub fn length(&mut self, length: usize) {
        self.put(&(length as u64).to_le_bytes());
    }

    /// Notes that something cannot be saved, for a reason that is a phrase; the first one counts.
    pub fn refuse(&mut self, why: &str) {
        self.error.get_or_insert_with(|| SnapshotError::refused(why));
    }

    /// All bytes; none with a sink, which has got them. Errors: something cannot be saved; the
    /// sink's.
    pub fn finish(mut self) -> Result<Vec<u8>, SnapshotError> {
        self.hand_on();
        self.error.map_or(Ok(self.bytes), Err)
    }

    /// Behind an error nothing is written any more, and memory does not grow.
    fn hand_on(&mut self) {
        let Some(sink) = &mut self.sink else { return };
        if self.error.is_none() {
            let done = sink.write_all(&self.bytes);
            self.error = done.err().map(|error| SnapshotError::Sink(error.to_string()));
        }
        self.bytes.clear();
    }
}
