//! Ids of formats that number objects (oracleGeneral, its kin and lcs): sectors of 512 B where a
//! block trace was converted, numbers of objects where a cache of objects was recorded.
//!
//! The file does not say which; its first records do.

use crate::fields::SECTOR_BYTES;
use crate::units::TimeUnit;
use cachewright_types::declare::{Mismatch, ValueKind};
use cachewright_types::{Bytes, Value, declare, parse_bytes};

declare! {
    /// Options of formats that number objects.
    pub struct ObjectOptions {
        /// bytes per unit of the object number; `object` where it is no address; `auto` takes it
        /// for a sector of 512 B unless the first records show objects
        address_unit: ObjectUnit = ObjectUnit::Auto, "bytes";
        /// unit of times
        time_unit: TimeUnit = TimeUnit::SECOND, "";
    }
}

/// Distinct ids below which nothing is concluded from them.
const FEWEST_IDS: usize = 8;
/// Sectors that most block requests begin at a multiple of: pages of 4 KiB.
const PAGE_SECTORS: u64 = 8;

/// What the object number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectUnit {
    /// What the first records show.
    Auto,
    /// A name.
    Object,
    /// An address in units of so many bytes.
    Bytes(u64),
}

impl ObjectUnit {
    /// Bytes per unit, where the content does not say it.
    pub fn bytes(self) -> u64 {
        match self {
            ObjectUnit::Auto => SECTOR_BYTES,
            ObjectUnit::Object => 1,
            ObjectUnit::Bytes(bytes) => bytes,
        }
    }
}

impl ValueKind for ObjectUnit {
    const KIND: &'static str = "`auto`, `object` or a size such as `512B`";

    fn read(value: &Value) -> Result<ObjectUnit, Mismatch> {
        match value.as_text() {
            Some("auto") => Ok(ObjectUnit::Auto),
            Some("object") => Ok(ObjectUnit::Object),
            text => {
                let bytes = text.and_then(|text| parse_bytes(text).ok()).map(|bytes| bytes.0);
                bytes.filter(|bytes| *bytes > 0).map(ObjectUnit::Bytes).ok_or(Mismatch::Kind)
            }
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(match self {
            ObjectUnit::Auto => "auto".to_owned(),
            ObjectUnit::Object => "object".to_owned(),
            ObjectUnit::Bytes(bytes) => Bytes(*bytes).exact(),
        }))
    }
}

/// An id of the first records: whose it is, and the bytes of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NumberedObject {
    /// The tenant or name space.
    pub(super) space: u32,
    /// The object number.
    pub(super) id: u64,
    /// The bytes asked for.
    pub(super) bytes: u64,
}

/// How object numbers are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObjectNumbers {
    /// Bytes per unit.
    pub(super) unit_bytes: u64,
    /// Whether they name objects.
    pub(super) are_objects: bool,
    /// What showed that they do, where no option says it.
    pub(super) note: Option<String>,
}

impl ObjectNumbers {
    /// As the option says; with `auto` as the first records show.
    pub(super) fn new(unit: ObjectUnit, first: impl Iterator<Item = NumberedObject>) -> Self {
        let evidence = match unit {
            ObjectUnit::Auto => evidence(first.collect()),
            ObjectUnit::Object | ObjectUnit::Bytes(_) => None,
        };
        let note = |evidence| {
            format!(
                "ids are taken for numbers of objects: {evidence} (`address_unit = object` says \
                 so, `address_unit = 512B` that they are sectors)"
            )
        };
        ObjectNumbers {
            unit_bytes: unit.bytes(),
            are_objects: unit == ObjectUnit::Object || evidence.is_some(),
            note: evidence.map(note),
        }
    }
}

/// What shows that ids are no sectors; nothing where they may be. Block requests are whole sectors,
/// and few of them begin inside another one, but at a multiple of 4 KiB from its beginning.
fn evidence(mut first: Vec<NumberedObject>) -> Option<String> {
    first.sort_unstable();
    // The longest request of each id stays.
    first.reverse();
    first.dedup_by_key(|object| (object.space, object.id));
    first.reverse();
    if first.len() < FEWEST_IDS {
        return None;
    }
    let ragged = first.iter().filter(|object| object.bytes % SECTOR_BYTES != 0);
    if ragged.clone().count() * 2 > first.len() {
        let bytes = ragged.map(|object| object.bytes).next()?;
        return Some(format!("sizes such as {bytes} B are no multiples of 512 B"));
    }
    let is_close = |pair: &&[NumberedObject]| {
        let gap = pair[1].id.saturating_sub(pair[0].id);
        pair[0].space == pair[1].space
            && gap < pair[0].bytes.div_ceil(SECTOR_BYTES)
            && !gap.is_multiple_of(PAGE_SECTORS)
    };
    let close = first.windows(2).filter(is_close);
    if close.clone().count() * 2 < first.len() {
        return None;
    }
    let pair = close.into_iter().next()?;
    let [first, next] = [pair[0], pair[1]];
    Some(format!(
        "most are closer to the next than their size, such as {} and {} of {} B",
        first.id, next.id, first.bytes
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(objects: &[(u64, u64)]) -> Option<String> {
        let object = |(id, bytes): &(u64, u64)| NumberedObject { space: 0, id: *id, bytes: *bytes };
        evidence(objects.iter().map(object).collect())
    }

    fn every(step: u64, bytes: u64) -> Vec<(u64, u64)> {
        (1..=50).map(|n| (n * step, bytes)).collect()
    }

    #[test]
    fn ids_closer_than_the_sizes_of_their_objects_are_no_sectors() {
        let found = shown(&every(1, 4096)).unwrap();
        assert_eq!(found, "most are closer to the next than their size, such as 1 and 2 of 4096 B");
        assert!(shown(&every(3, 4096)).is_some());
        let found = shown(&every(1, 100)).unwrap();
        assert_eq!(found, "sizes such as 100 B are no multiples of 512 B");
        assert!(shown(&every(1 << 40, 3000)).is_some(), "no block request has such a size");
        assert!(shown(&every(1, 4096)[..7]).is_none(), "too few to tell");
    }

    #[test]
    fn sectors_stay_sectors() {
        assert!(shown(&every(8, 4096)).is_none(), "pages");
        assert!(shown(&every(1, 512)).is_none(), "single sectors");
        assert!(shown(&every(8, 65_536)).is_none(), "long requests at every page");
        assert!(shown(&every(63, 16_384)).is_none(), "a partition that is not aligned");
        let mixed: Vec<_> = (0..50).map(|n| (n * 8, 512 << (n % 7))).collect();
        assert!(shown(&mixed).is_none());
    }
}
