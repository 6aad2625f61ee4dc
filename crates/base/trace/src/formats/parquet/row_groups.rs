//! Row groups of a Parquet file, decoded a chunk at a time.
//!
//! For: the reader of the native format. Must never know: what a request may be, batches. Unit:
//! requests (rows).

use super::checked::Load;
use super::column::{BadValue, ColumnType, Meaning, ParquetColumn};
use super::directory::{Fault, Pages, ParquetFile};
use crate::native::checksum;
use parquet::file::reader::FileReader;

/// Requests decoded at a time.
const CHUNK: usize = 1 << 13;
/// Number of parts of a request, in the order of [`crate::native::COLUMNS`].
pub(super) const PARTS: usize = 5;

/// Where one part of a request comes from.
pub(super) enum Part {
    /// A column.
    Column(MappedColumn),
    /// Nowhere: it is the same in all requests.
    Same(u64),
}

/// A column of the file and what it is read as.
pub(super) struct MappedColumn {
    /// Its place among the leaves of the schema, from 0.
    pub leaf: usize,
    /// Its name, as shown in messages.
    pub name: String,
    /// What its values are.
    pub kind: ColumnType,
    /// What they become.
    pub meaning: Meaning,
}

impl MappedColumn {
    /// Whether its values are names, not numbers.
    fn is_text(&self) -> bool {
        self.kind == ColumnType::Text && !matches!(self.meaning, Meaning::Words(_))
    }
}

/// Decoded values of a chunk, all columns of one length.
#[derive(Default)]
pub(super) struct Values {
    /// See [`crate::native`], as all columns.
    pub time_ns: Vec<u64>,
    pub offset_bytes: Vec<u64>,
    pub length_bytes: Vec<u64>,
    pub op: Vec<u64>,
    pub volume: Vec<u64>,
    /// The names of volumes where a column of text holds them; then `volume` is empty.
    pub volume_names: Vec<Box<[u8]>>,
    /// Whether each row is a request; empty where all are.
    pub kept: Vec<u64>,
    /// The values that could not be read, by part and in order of their rows.
    pub bad: [Vec<BadValue>; PARTS],
}

impl Values {
    /// What stands instead of a value of `part` in `row`.
    pub fn bad_value(&self, part: usize, row: usize) -> Option<&str> {
        let values = &self.bad[part];
        let place = values.binary_search_by_key(&row, |value| value.row).ok()?;
        Some(&values[place].found)
    }
}

/// The row groups of a file, passed from the first to the last.
pub(super) struct RowGroups {
    file: Box<dyn FileReader>,
    load: Load,
    pages: Pages,
    /// Checksums of the row groups, where the file has them.
    checksums: Option<Vec<u32>>,
    parts: [Part; PARTS],
    /// The column that says which rows are requests.
    keep: Option<MappedColumn>,
    /// Columns of the row group being read, in the order of `parts`.
    columns: Vec<Option<ParquetColumn>>,
    keep_column: Option<ParquetColumn>,
    /// The row group to open next.
    group: usize,
    /// Requests of the open row group still to come.
    left: usize,
}

impl RowGroups {
    /// Before the first row group of a file whose directory is sound.
    pub fn new(
        file: ParquetFile,
        checksums: Option<Vec<u32>>,
        parts: [Part; PARTS],
        keep: Option<MappedColumn>,
    ) -> RowGroups {
        RowGroups {
            file: file.reader,
            load: file.load,
            pages: file.pages,
            checksums,
            parts,
            keep,
            columns: Vec::new(),
            keep_column: None,
            group: 0,
            left: 0,
        }
    }

    /// The number of the column of a part in the file, from one, and its name.
    pub fn column_of(&self, part: usize) -> (u64, &str) {
        match &self.parts[part] {
            Part::Column(column) => (column.leaf as u64 + 1, &column.name),
            Part::Same(_) => (0, crate::native::COLUMNS[part]),
        }
    }

    /// Opens the next row group that holds requests; false at the end.
    fn next_group(&mut self) -> Result<bool, Fault> {
        while self.left == 0 {
            if self.group >= self.file.num_row_groups() {
                return Ok(false);
            }
            self.columns.clear();
            self.keep_column = None;
            self.check_group()?;
            for part in &self.parts {
                let column = match part {
                    Part::Column(mapped) => Some(self.opened(mapped)?),
                    Part::Same(_) => None,
                };
                self.columns.push(column);
            }
            self.keep_column = match &self.keep {
                Some(mapped) => Some(self.opened(mapped)?),
                None => None,
            };
            self.left = self.rows()?;
            self.group += 1;
        }
        Ok(true)
    }

    /// Rows of the row group to open.
    fn rows(&self) -> Result<usize, Fault> {
        usize::try_from(self.file.metadata().row_group(self.group).num_rows())
            .map_err(|_| Fault::Damaged("a negative number of rows".to_owned()))
    }

    /// A column of the row group to open.
    fn opened(&self, mapped: &MappedColumn) -> Result<ParquetColumn, Fault> {
        let chunk = self.file.metadata().row_group(self.group).column(mapped.leaf);
        let pages = (self.pages)(chunk, self.rows()?)?;
        Ok(ParquetColumn::open(&chunk.column_descr_ptr(), pages, mapped.kind))
    }

    /// Compares the bytes of the row group to open with their checksum, where there is one.
    fn check_group(&self) -> Result<(), Fault> {
        let Some(stated) = self.checksums.as_ref().and_then(|all| all.get(self.group)) else {
            return Ok(());
        };
        let place = checksum::range(self.file.metadata().row_group(self.group));
        let found = (self.load)(place.ok_or_else(|| "columns without a place".to_owned())?)?;
        if found == *stated {
            return Ok(());
        }
        let number = self.group + 1;
        let text = format!("row group {number}: checksum {found:08x}, expected {stated:08x}");
        Err(Fault::Damaged(text))
    }

    /// Decodes the next up to `max` requests into `values`; returns how many.
    pub fn decode(&mut self, max: usize, values: &mut Values) -> Result<usize, Fault> {
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
        values.volume_names.clear();
        let columns = self.columns.iter_mut().zip(&self.parts);
        for (((column, part), into), bad) in columns.zip(into).zip(&mut values.bad) {
            into.clear();
            bad.clear();
            match (column, part) {
                (Some(column), Part::Column(mapped)) if mapped.is_text() => {
                    let read = column.read_texts(count, &mut values.volume_names, bad);
                    read.map_err(|fault| fault.of_column(&mapped.name))?;
                }
                (Some(column), Part::Column(mapped)) => {
                    let read = column.read(count, &mapped.meaning, into, bad);
                    read.map_err(|fault| fault.of_column(&mapped.name))?;
                }
                (_, Part::Same(value)) => into.resize(count, *value),
                (None, Part::Column(_)) => {}
            }
        }
        values.kept.clear();
        if let (Some(column), Some(mapped)) = (&mut self.keep_column, &self.keep) {
            let read = column.read(count, &mapped.meaning, &mut values.kept, &mut Vec::new());
            read.map_err(|fault| fault.of_column(&mapped.name))?;
        }
        self.left -= count;
        Ok(count)
    }
}
