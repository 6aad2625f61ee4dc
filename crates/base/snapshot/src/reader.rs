//! The bytes of a snapshot as they are read, none of them trusted.

use thiserror::Error;

/// Why a snapshot cannot be made, or continued from.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// Something has a state that the workspace does not know.
    #[error("found {0}, expected state that can be saved")]
    Refused(String),
    /// What takes its bytes has failed.
    #[error("a snapshot cannot be written: {0}")]
    Sink(String),
    /// It ends before its time.
    #[error("found a snapshot that ends after {at} bytes, expected {needed} more")]
    Ended {
        /// Bytes that were read.
        at: usize,
        /// Bytes that were to follow.
        needed: usize,
    },
    /// It goes on behind its end.
    #[error("found {0} bytes behind the end of a snapshot, expected none")]
    Beyond(usize),
    /// Something that is no such value, or not what the settings ask for.
    #[error("found {found} in a snapshot, expected {expected}")]
    Value {
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
}

impl SnapshotError {
    /// A type that cannot be saved, for a reason that is a phrase.
    pub fn refused(why: &str) -> SnapshotError {
        SnapshotError::Refused(why.to_owned())
    }

    /// A value of another kind or size than the settings ask for.
    pub fn value(found: impl Into<String>, expected: impl Into<String>) -> SnapshotError {
        SnapshotError::Value { found: found.into(), expected: expected.into() }
    }

    /// A variant that an enum does not have.
    pub fn variant(name: &str, found: u32) -> SnapshotError {
        SnapshotError::value(format!("variant {found}"), format!("a variant of {name}"))
    }
}

/// Reads the bytes of a snapshot from their beginning.
#[derive(Clone, Debug)]
pub struct SnapshotReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> SnapshotReader<'a> {
    /// At the beginning.
    pub fn new(bytes: &'a [u8]) -> SnapshotReader<'a> {
        SnapshotReader { bytes, at: 0 }
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next bytes. Errors: fewer are left.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], SnapshotError> {
        let taken = self.at.checked_add(bytes).and_then(|end| self.bytes.get(self.at..end));
        let needed = bytes.saturating_sub(self.left());
        let taken = taken.ok_or(SnapshotError::Ended { at: self.bytes.len(), needed })?;
        self.at += bytes;
        Ok(taken)
    }

    /// The next bytes, as many as the array has. Errors: fewer are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// The number of a variant. Errors: the end.
    pub fn tag(&mut self) -> Result<u32, SnapshotError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads the variant that the settings ask for. Errors: it is another one.
    pub fn expect_tag(&mut self, expected: u32, name: &str) -> Result<(), SnapshotError> {
        let found = self.tag()?;
        if found == expected {
            return Ok(());
        }
        Err(SnapshotError::value(
            format!("variant {found} of {name}"),
            format!("variant {expected}, which the settings ask for"),
        ))
    }

    /// The length of a list whose elements have at least one byte. Errors: it is longer than what
    /// is left.
    pub fn length(&mut self) -> Result<usize, SnapshotError> {
        let length = u64::from_le_bytes(self.array()?);
        match usize::try_from(length) {
            Ok(length) if length <= self.left() => Ok(length),
            _ => Err(SnapshotError::value(
                format!("a list of {length} elements"),
                format!("at most {}, one for each byte that is left", self.left()),
            )),
        }
    }

    /// Reads the length of a list that the settings ask for. Errors: it is another one.
    pub fn expect_length(&mut self, expected: usize, what: &str) -> Result<(), SnapshotError> {
        let found = u64::from_le_bytes(self.array()?);
        if found == expected as u64 {
            return Ok(());
        }
        Err(SnapshotError::value(format!("{found} {what}"), format!("{expected}")))
    }

    /// Checks that all was read. Errors: something is left.
    pub fn finish(self) -> Result<(), SnapshotError> {
        match self.left() {
            0 => Ok(()),
            left => Err(SnapshotError::Beyond(left)),
        }
    }
}
