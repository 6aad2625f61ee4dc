//! The header page of a segment.
//!
//! For: which generation of a segment its groups belong to, and whether it holds anything. Must
//! never know: groups. Source of the idea: generations of zones and segments, as zoned devices and
//! log-structured stores have them.

use super::{Home, begin, open, seal};

const MAGIC: &[u8; 8] = b"CWsegmnt";

/// Whether a segment holds records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentState {
    /// It holds nothing: what its pages hold is void.
    Free,
    /// Groups of this generation follow.
    Begun,
    /// As [`SegmentState::Begun`], but the header was once lost: whether the segment had been
    /// emptied is not known, so that its content may be too old.
    Doubtful,
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Where it stands.
    pub home: Home,
    /// Whether it holds records.
    pub state: SegmentState,
    /// The stream whose blocks it takes.
    pub stream: u32,
    /// Groups up to this number may have stood in segments that were emptied since.
    pub emptied: u64,
}

impl SegmentHeader {
    /// Its page.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = begin(MAGIC);
        self.home.put(&mut bytes);
        let state: u32 = match self.state {
            SegmentState::Free => 0,
            SegmentState::Begun => 1,
            SegmentState::Doubtful => 2,
        };
        bytes.extend_from_slice(&state.to_le_bytes());
        bytes.extend_from_slice(&self.stream.to_le_bytes());
        bytes.extend_from_slice(&self.emptied.to_le_bytes());
        seal(bytes)
    }

    /// The header of a page, if it is one.
    pub fn decode(page: &[u8]) -> Option<SegmentHeader> {
        let mut fields = open(page, MAGIC)?;
        let home = Home::take(&mut fields)?;
        let state = match fields.u32()? {
            0 => SegmentState::Free,
            1 => SegmentState::Begun,
            2 => SegmentState::Doubtful,
            _ => return None,
        };
        let (stream, emptied) = (fields.u32()?, fields.count()?);
        Some(SegmentHeader { home, state, stream, emptied })
    }
}
