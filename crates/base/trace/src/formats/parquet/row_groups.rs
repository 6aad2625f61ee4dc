//! Row groups of a Parquet file, decoded a chunk at a time.
//!
//! For: the reader of the native format. Must never know: what a request may be, batches. Unit:
//! requests (rows).

use super::checked::Load;
use super::column::ParquetColumn;
use crate::native::{COLUMNS, checksum};
use parquet::file::reader::FileReader;

/// Requests decoded at a time.
const CHUNK: usize = 1 << 13;

/// Decoded values of a chunk, all columns of one length.
#[derive(Default)]
pub struct Values {
    /// See [`crate::native`], as all columns.
    pub time_ns: Vec<u64>,
    pub offset_bytes: Vec<u64>,
    pub length_bytes: Vec<u64>,
    pub op: Vec<u64>,
    pub volume: Vec<u64>,
}

/// The row groups of a file, passed from the first to the last.
pub struct RowGroups {
    file: Box<dyn FileReader>,
    load: Load,
    /// Checksums of the row groups, where the file has them.
    checksums: Option<Vec<u32>>,
    /// Leaf of each of [`COLUMNS`]; nothing for an absent volume.
    leaves: [Option<usize>; 5],
    /// Columns of the row group being read, in the order of [`COLUMNS`].
    columns: Vec<Option<ParquetColumn>>,
    /// The row group to open next.
    group: usize,
    /// Requests of the open row group still to come.
    left: usize,
}

impl RowGroups {
    /// Before the first row group of a file whose directory is sound.
    pub fn new(
        file: Box<dyn FileReader>,
        load: Load,
        checksums: Option<Vec<u32>>,
        leaves: [Option<usize>; 5],
    ) -> RowGroups {
        RowGroups { file, load, checksums, leaves, columns: Vec::new(), group: 0, left: 0 }
    }

    /// The number of a column in the file, from one.
    pub fn column_number(&self, column: usize) -> u64 {
        self.leaves[column].unwrap_or(0) as u64 + 1
    }

    /// Opens the next row group that holds requests; false at the end.
    fn next_group(&mut self) -> Result<bool, String> {
        while self.left == 0 {
            if self.group >= self.file.num_row_groups() {
                return Ok(false);
            }
            self.columns.clear();
            self.check_group()?;
            let group = self.file.get_row_group(self.group).map_err(|e| e.to_string())?;
            self.left = usize::try_from(group.metadata().num_rows())
                .map_err(|_| "a negative number of rows".to_owned())?;
            for leaf in self.leaves {
                let column = match leaf {
                    Some(leaf) => Some(ParquetColumn::open(group.as_ref(), leaf)?),
                    None => None,
                };
                self.columns.push(column);
            }
            self.group += 1;
        }
        Ok(true)
    }

    /// Compares the bytes of the row group to open with their checksum, where there is one.
    fn check_group(&self) -> Result<(), String> {
        let Some(stated) = self.checksums.as_ref().and_then(|all| all.get(self.group)) else {
            return Ok(());
        };
        let place = checksum::range(self.file.metadata().row_group(self.group));
        let found = (self.load)(place.ok_or_else(|| "columns without a place".to_owned())?)?;
        if found == *stated {
            return Ok(());
        }
        let number = self.group + 1;
        Err(format!("row group {number}: checksum {found:08x}, expected {stated:08x}"))
    }

    /// Decodes the next up to `max` requests into `values`; returns how many.
    pub fn decode(&mut self, max: usize, values: &mut Values) -> Result<usize, String> {
        if !self.next_group()? {
            return Ok(0);
        }
        let count = max.min(CHUNK).min(self.left);
        let into = [
            &mut values.time_ns,
            &mut values.offset_bytes,
            &mut values.length_bytes,
            &mut values.op,
            &mut values.volume,
        ];
        for ((column, values), name) in self.columns.iter_mut().zip(into).zip(COLUMNS) {
            values.clear();
            match column {
                None => values.resize(count, 0),
                Some(column) => {
                    column.read(count, values).map_err(|error| format!("column {name}: {error}"))?
                }
            }
        }
        self.left -= count;
        Ok(count)
    }
}
