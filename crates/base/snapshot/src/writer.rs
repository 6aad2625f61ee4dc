//! The bytes of a snapshot as they grow.

use crate::SnapshotError;

/// Takes the bytes of a snapshot.
#[derive(Debug, Default)]
pub struct SnapshotWriter {
    bytes: Vec<u8>,
    refusal: Option<String>,
}

impl SnapshotWriter {
    /// Makes room for so many bytes more.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Writes bytes as they are.
    #[inline(always)]
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// So many bytes more, zero, to be filled.
    pub fn extend(&mut self, bytes: usize) -> &mut [u8] {
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
        self.refusal.get_or_insert_with(|| why.to_owned());
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All bytes. Errors: something cannot be saved.
    pub fn finish(self) -> Result<Vec<u8>, SnapshotError> {
        match self.refusal {
            Some(why) => Err(SnapshotError::Refused(why)),
            None => Ok(self.bytes),
        }
    }
}
