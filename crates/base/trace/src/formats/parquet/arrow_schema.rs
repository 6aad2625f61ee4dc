//! Durations, which Parquet has no type for: the Arrow schema that writers keep beside it has one.
//!
//! For: the columns whose bare integers are durations. Must never know: anything else of Arrow. A
//! schema that cannot be read says nothing. Source: Arrow's `Schema.fbs` and `Message.fbs`, the
//! FlatBuffers binary format.

use crate::units::TimeUnit;

/// The key of the schema in the file's metadata: base64 of an encapsulated message.
pub(super) const KEY: &str = "ARROW:schema";
/// Columns looked at.
const FIELDS_LIMIT: usize = 1 << 16;
/// `Type.Duration` of `Schema.fbs`.
const DURATION: u8 = 18;
/// What marks the length of a message that follows.
const CONTINUATION: u32 = u32::MAX;

/// The columns of durations by name, with their units.
pub(super) fn durations(text: &str) -> Vec<(String, TimeUnit)> {
    base64(text).and_then(|bytes| of_message(&bytes)).unwrap_or_default()
}

fn of_message(bytes: &[u8]) -> Option<Vec<(String, TimeUnit)>> {
    let start = if u32_at(bytes, 0)? == CONTINUATION { 8 } else { 4 };
    let buffer = bytes.get(start..)?;
    let message = Table { buffer, position: u32_at(buffer, 0)? as usize };
    let schema = message.table(2)?;
    let fields = schema.pointed(1)?;
    let count = u32_at(buffer, fields)? as usize;
    let mut found = Vec::new();
    for index in 0..count.min(FIELDS_LIMIT) {
        let field = Table { buffer, position: pointed(buffer, fields + 4 + 4 * index)? };
        if field.byte(2) == Some(DURATION) {
            // The unit that is left out is the default, milliseconds.
            let unit = field.table(3)?.byte(0).unwrap_or(1);
            let unit = ["s", "ms", "us", "ns"].get(usize::from(unit)).copied()?;
            found.push((field.text(0)?, TimeUnit::parse(unit)?));
        }
    }
    Some(found)
}

/// A table of a FlatBuffer; nothing is there that lies outside the buffer.
struct Table<'a> {
    buffer: &'a [u8],
    position: usize,
}

impl<'a> Table<'a> {
    /// Where field `index` is, if the table has it.
    fn place(&self, index: usize) -> Option<usize> {
        let back = u32_at(self.buffer, self.position)?.cast_signed();
        let fields = usize::try_from(self.position as i64 - i64::from(back)).ok()?;
        let entry = 4 + 2 * index;
        if entry + 2 > usize::from(u16_at(self.buffer, fields)?) {
            return None;
        }
        match u16_at(self.buffer, fields + entry)? {
            0 => None,
            offset => Some(self.position + usize::from(offset)),
        }
    }

    fn byte(&self, index: usize) -> Option<u8> {
        self.buffer.get(self.place(index)?).copied()
    }

    fn pointed(&self, index: usize) -> Option<usize> {
        pointed(self.buffer, self.place(index)?)
    }

    fn table(&self, index: usize) -> Option<Table<'a>> {
        Some(Table { buffer: self.buffer, position: self.pointed(index)? })
    }

    fn text(&self, index: usize) -> Option<String> {
        let position = self.pointed(index)?;
        let end = (position + 4).checked_add(u32_at(self.buffer, position)? as usize)?;
        String::from_utf8(self.buffer.get(position + 4..end)?.to_vec()).ok()
    }
}

/// Where the offset at `place` points to.
fn pointed(buffer: &[u8], place: usize) -> Option<usize> {
    place.checked_add(u32_at(buffer, place)? as usize)
}

fn u16_at(bytes: &[u8], position: usize) -> Option<u16> {
    bytes.get(position..position.checked_add(2)?)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], position: usize) -> Option<u32> {
    bytes.get(position..position.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

/// The bytes of a base64 text (RFC 4648, with or without padding).
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}
