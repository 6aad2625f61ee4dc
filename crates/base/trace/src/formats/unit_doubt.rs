//! Whether sectors of a trace may be bytes.
//!
//! For: formats that some sets have in sectors and others in bytes, without a word in the file.
//! Must never know: columns of any format. Units: bytes as read, each a unit times what the file
//! says.

use super::entry::TraceFormat;
use crate::units::AddressUnit;
use crate::{Batch, OpenOptions};
use cachewright_types::declare::ValueKind;

/// Numbers of sectors that all are multiples of this are bytes, if both columns are so.
const SECTOR: u64 = 512;
/// The same of one column alone.
const PAGE: u64 = 4096;
/// Requests that do not begin at 0 below which nothing is concluded.
const FEWEST: u64 = 4;

/// What speaks against the units of offsets and lengths that no option states.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnitDoubt {
    /// Bytes of the unit taken for granted; nothing where it was stated, or is none of a format.
    offset_unit: Option<u64>,
    length_unit: Option<u64>,
    /// All bits that are set in any offset, or length.
    offset_bits: u64,
    length_bits: u64,
    /// Requests that do not begin at 0.
    requests: u64,
}

impl UnitDoubt {
    /// Of a trace that is read as `options` say.
    pub(super) fn new(entry: &TraceFormat, options: &OpenOptions) -> UnitDoubt {
        let keys = (entry.options)();
        let taken = |name: &str| {
            let key = keys.iter().find(|key| key.name == name)?;
            let is_stated = options.format_options.contains_key(name);
            let unit = AddressUnit::read(key.default.as_ref().filter(|_| !is_stated)?).ok()?;
            (unit.0 > 1).then_some(unit.0)
        };
        UnitDoubt {
            offset_unit: taken("offset_unit"),
            length_unit: taken("length_unit"),
            ..UnitDoubt::default()
        }
    }

    /// Looks at the requests of a batch from `start` on.
    pub(super) fn look(&mut self, batch: &Batch, start: usize) {
        if self.offset_unit.is_none() && self.length_unit.is_none() {
            return;
        }
        for offset in &batch.offset_bytes[start..] {
            self.offset_bits |= offset;
            self.requests += u64::from(*offset != 0);
        }
        self.length_bits |=
            batch.length_bytes[start..].iter().fold(0, |bits, length| bits | length);
    }

    /// What has been found, as a sentence.
    pub(super) fn note(&self) -> Option<String> {
        let all_multiples = |bits: u64, unit: Option<u64>, factor: u64| {
            unit.is_some_and(|unit| bits != 0 && bits & (unit * factor - 1) == 0)
        };
        let offset = |factor| all_multiples(self.offset_bits, self.offset_unit, factor);
        let length = |factor| all_multiples(self.length_bits, self.length_unit, factor);
        let (what, options) = if self.requests < FEWEST {
            return None;
        } else if offset(SECTOR) && length(SECTOR) {
            ("offset and length is a multiple of 512", "`offset_unit=B` and `length_unit=B` say")
        } else if offset(PAGE) {
            ("offset is a multiple of 4096", "`offset_unit=B` says")
        } else if length(PAGE) {
            ("length is a multiple of 4096", "`length_unit=B` says")
        } else {
            return None;
        };
        Some(format!("every {what}: bytes may be meant, not sectors of 512 B; {options} so"))
    }
}
