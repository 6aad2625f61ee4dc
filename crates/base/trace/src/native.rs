//! The native format: a Parquet file whose columns are a batch's columns.
//!
//! Units are the last word of each column's name. The full description is docs/trace-format.md.

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::Result;
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::schema::types::{Type, TypePtr};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

/// Nanoseconds in the trace's own epoch, unsigned 64 bits.
pub const TIME: &str = "time_ns";
/// First byte, unsigned 64 bits.
pub const OFFSET: &str = "offset_bytes";
/// Length in bytes, unsigned 64 bits; 0 for a flush.
pub const LENGTH: &str = "length_bytes";
/// 0 read, 1 write, 2 trim, 3 flush; unsigned 8 bits.
pub const OP: &str = "op";
/// Index into the list of [`VOLUMES_KEY`], unsigned 32 bits.
pub const VOLUME: &str = "volume";
/// All columns, in the order written.
pub const COLUMNS: [&str; 5] = [TIME, OFFSET, LENGTH, OP, VOLUME];

/// The name of the schema of files with checksums: such a file without them is damaged.
pub const SCHEMA_NAME: &str = "cachewright";
/// File metadata: the names of the volumes as a JSON list of strings.
pub const VOLUMES_KEY: &str = "cachewright.volumes";
/// File metadata: the version of this schema.
pub const VERSION_KEY: &str = "cachewright.version";
/// File metadata: checksums of the row groups and of the directory, each a CRC-32.
pub const CHECKSUM_KEY: &str = "cachewright.crc32";
/// File metadata: `none` where the trace has no times, so that `time_ns` is the request's number.
pub const TIMES_KEY: &str = "cachewright.times";
/// The value of [`TIMES_KEY`] that says so.
pub const NO_TIMES: &str = "none";
/// The version written, and the only one read.
pub const VERSION: &str = "1";

/// The schema as written: five required columns.
pub(crate) fn schema() -> Result<TypePtr> {
    let column = |name: &str, physical: Physical, bit_width: i8| -> Result<TypePtr> {
        let column = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(Some(LogicalType::integer(bit_width, false)))
            .build()?;
        Ok(Arc::new(column))
    };
    let fields = vec![
        column(TIME, Physical::INT64, 64)?,
        column(OFFSET, Physical::INT64, 64)?,
        column(LENGTH, Physical::INT64, 64)?,
        column(OP, Physical::INT32, 8)?,
        column(VOLUME, Physical::INT32, 32)?,
    ];
    Ok(Arc::new(Type::group_type_builder(SCHEMA_NAME).with_fields(fields).build()?))
}

/// The checksums of one file: the value of [`CHECKSUM_KEY`], `DIRECTORY GROUP GROUP ...`, each a
/// CRC-32 (RFC 1952) in eight hexadecimal digits. The first covers the layout of all row groups,
/// the other metadata and the groups' checksums. Each other one covers the bytes of a row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checksums {
    pub(crate) directory: u32,
    /// One per row group.
    pub(crate) groups: Vec<u32>,
}

impl Checksums {
    /// Those of a file with these row groups, their bytes' checksums and this metadata.
    pub(crate) fn compute(
        row_groups: &[RowGroupMetaData],
        groups: Vec<u32>,
        metadata: &[KeyValue],
    ) -> Checksums {
        Checksums { directory: directory(row_groups, &groups, metadata), groups }
    }

    /// As in the file.
    pub(crate) fn text(&self) -> String {
        let words = std::iter::once(&self.directory).chain(&self.groups);
        words.map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(" ")
    }

    /// Reads what [`text`](Self::text) gives; nothing where it is something else.
    pub(crate) fn parse(text: &str) -> Option<Checksums> {
        let number = |word: &str| {
            let sound = word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
            sound.then(|| u32::from_str_radix(word, 16).ok()).flatten()
        };
        let words: Vec<u32> = text.split(' ').map(number).collect::<Option<_>>()?;
        let (directory, groups) = words.split_first()?;
        Some(Checksums { directory: *directory, groups: groups.to_vec() })
    }
}

/// The bytes of a row group within the file; nothing where its columns contradict each other.
pub(crate) fn range(group: &RowGroupMetaData) -> Option<Range<u64>> {
    let mut range: Option<Range<u64>> = None;
    for column in group.columns() {
        let data = column.data_page_offset();
        let start = column.dictionary_page_offset().map_or(data, |offset| offset.min(data));
        let start = u64::try_from(start).ok()?;
        let end = start.checked_add(u64::try_from(column.compressed_size()).ok()?)?;
        range = Some(match range {
            None => start..end,
            Some(range) => range.start.min(start)..range.end.max(end),
        });
    }
    range
}

fn directory(row_groups: &[RowGroupMetaData], groups: &[u32], metadata: &[KeyValue]) -> u32 {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for key in [VERSION_KEY, VOLUMES_KEY, TIMES_KEY] {
        let pair = metadata.iter().find(|pair| pair.key == key);
        let value = pair.and_then(|pair| pair.value.as_deref());
        let _ = writeln!(text, "{key} {value:?}");
    }
    for (group, crc) in row_groups.iter().zip(groups) {
        let _ = writeln!(text, "{} {crc:08x}", group.num_rows());
        for column in group.columns() {
            // Levels of compression are not in the file: the name ends at a bracket.
            let codec = format!("{:?}", column.compression());
            let codec = codec.split('(').next().unwrap_or_default();
            let _ = writeln!(
                text,
                "{} {} {codec} {} {} {} {:?}",
                column.column_path().string(),
                column.column_type(),
                column.num_values(),
                column.compressed_size(),
                column.data_page_offset(),
                column.dictionary_page_offset(),
            );
        }
    }
    let _ = writeln!(text, "{} of {}", groups.len(), row_groups.len());
    crc32fast::hash(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_read_back_and_nothing_else_is() {
        let checksums = Checksums { directory: 7, groups: vec![0, u32::MAX] };
        assert_eq!(checksums.text(), "00000007 00000000 ffffffff");
        assert_eq!(Checksums::parse(&checksums.text()), Some(checksums));
        for wrong in ["", "7", "00000007  00000000", "0000000g", "+0000007", "00000007 "] {
            assert_eq!(Checksums::parse(wrong), None, "`{wrong}`");
        }
    }
}
