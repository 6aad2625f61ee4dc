//! What is known of one format, and the options that all have.
//!
//! For: the table of formats, and the formats themselves. Must never know: any format.

use crate::reader::MAX_REQUEST;
use crate::source::ByteSource;
use crate::{OpenOptions, TraceError, TraceReader, UnreadableRecord};
use cachewright_types::{Bytes, Key, declare};

declare! {
    /// Options that every format has beside its own.
    pub struct CommonOptions {
        /// longest read or write; a longer one is a malformed record
        max_request: Bytes = MAX_REQUEST, "bytes", 512 ..= 1_099_511_627_776;
    }
}

/// For formats that do not consist of lines with columns.
pub(crate) const NO_LINES: fn(&[u8]) -> Option<NearMiss> = |_| None;

/// A format's own beginning of reading.
pub type Open = fn(ByteSource, &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError>;

/// How near content comes to a format that it does not fit.
#[derive(Clone, Debug)]
pub struct NearMiss {
    /// Thousandths of the columns of its first lines that were accepted.
    pub accepted: u32,
    /// Thousandths of its first lines that were accepted as a whole.
    pub whole_lines: u32,
    /// The first line that was not accepted.
    pub refused: UnreadableRecord,
}

/// The unit of a column of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// So many nanoseconds or bytes, unless an option says another.
    Of(u64),
    /// There is no such column.
    Absent,
    /// What the file's own words or an option say.
    Stated,
}

/// What is known of one format; everything that lists formats reads this.
#[derive(Clone, Copy)]
pub struct TraceFormat {
    /// The name users write.
    pub name: &'static str,
    /// One sentence: what records and units look like.
    pub doc: &'static str,
    /// Where the format is defined.
    pub source: &'static str,
    /// The unit of times, in nanoseconds.
    pub time: Unit,
    /// The unit of offsets, in bytes.
    pub offset: Unit,
    /// The unit of lengths, in bytes.
    pub length: Unit,
    /// What is found out from the content, beside the format.
    pub detected: &'static str,
    /// Options that say what the content does not.
    pub to_say: &'static [&'static str],
    /// The keys of its own options.
    pub options: fn() -> Vec<Key>,
    /// How well the beginning of the decompressed content fits, 0 to 100.
    pub recognise: fn(&[u8]) -> u8,
    /// How near content that fits no format comes to this one, where that can be told by lines.
    pub near_miss: fn(&[u8]) -> Option<NearMiss>,
    /// Starts reading. The options' keys have been checked, their values not.
    pub open: Open,
}
