//! Lists of numbers that are written once and then read, of any length.
//!
//! For: what is kept per request or access of a trace. Must never know: what the numbers mean. A
//! list is held in memory while it is short. Beyond that it lies in a scratch file (in `TMPDIR`)
//! without a name, which is mapped to be read. Readers give back what they have passed
//! ([`Column::release`]), so that the memory of a pass does not grow with the list. Systems other
//! than Linux hold all in memory. Units: elements, bytes.

use crate::mapping::{MappedWords, Word, write_words, write_words_at};
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bytes of a list that are held in memory, unless a writer is told otherwise.
pub const HELD_BYTES: usize = 32 << 20;
/// Whether longer lists lie in scratch files.
const SPILLS: bool = cfg!(target_os = "linux");

/// A finished list.
#[derive(Clone, Debug)]
pub struct Column<T>(ColumnContent<T>);

#[derive(Clone, Debug)]
enum ColumnContent<T> {
    Held(Vec<T>),
    Mapped(Arc<MappedWords<T>>),
}

impl<T> Default for Column<T> {
    fn default() -> Column<T> {
        Column(ColumnContent::Held(Vec::new()))
    }
}

impl<T> From<Vec<T>> for Column<T> {
    fn from(held: Vec<T>) -> Column<T> {
        Column(ColumnContent::Held(held))
    }
}

impl<T: Word> Deref for Column<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match &self.0 {
            ColumnContent::Held(held) => held,
            ColumnContent::Mapped(mapping) => mapping.words(),
        }
    }
}

impl<T: Word> AsRef<[T]> for Column<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: Word + PartialEq, L: AsRef<[T]>> PartialEq<L> for Column<T> {
    fn eq(&self, other: &L) -> bool {
        **self == *other.as_ref()
    }
}

impl<'a, T: Word> IntoIterator for &'a Column<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Word> Column<T> {
    /// Whether it lies in a scratch file.
    pub fn is_mapped(&self) -> bool {
        matches!(self.0, ColumnContent::Mapped(_))
    }

    /// Gives the memory of a range back, which will not be read soon; nothing where it is held.
    pub fn release(&self, range: Range<usize>) {
        if let ColumnContent::Mapped(mapping) = &self.0 {
            mapping.release(range.start, range.end);
        }
    }

    /// All elements in memory.
    pub fn into_vec(self) -> Vec<T> {
        match self.0 {
            ColumnContent::Held(held) => held,
            ColumnContent::Mapped(mapping) => mapping.words().to_vec(),
        }
    }
}

/// Writes a list from its beginning.
///
/// What was added since the last [`ColumnWriter::settle`] is in `tail`, which may be lengthened.
#[derive(Debug)]
pub struct ColumnWriter<T> {
    /// The last elements.
    pub tail: Vec<T>,
    held_bytes: usize,
    /// Elements before the tail, in the file.
    written: usize,
    file: Option<File>,
}

impl<T: Word> Default for ColumnWriter<T> {
    fn default() -> ColumnWriter<T> {
        ColumnWriter::holding(HELD_BYTES)
    }
}

impl<T: Word> ColumnWriter<T> {
    /// An empty list of which at most so many bytes are held in memory, besides what is added
    /// between two calls of [`ColumnWriter::settle`].
    pub fn holding(held_bytes: usize) -> ColumnWriter<T> {
        ColumnWriter { tail: Vec::new(), held_bytes, written: 0, file: None }
    }

    /// Elements added.
    pub fn len(&self) -> usize {
        self.written + self.tail.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held in memory.
    pub fn held(&self) -> usize {
        self.tail.len() * size_of::<T>()
    }

    /// Moves the tail to the scratch file when it is long. Errors: no file, or no space for it.
    pub fn settle(&mut self) -> io::Result<()> {
        if SPILLS && self.held() > self.held_bytes { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile()?),
        };
        write_words(file, &self.tail)?;
        self.written += self.tail.len();
        self.tail.clear();
        Ok(())
    }

    /// The list, to be read. Errors: as [`ColumnWriter::settle`].
    pub fn finish(mut self) -> io::Result<Column<T>> {
        if self.file.is_some() {
            self.spill()?;
        }
        Ok(match self.file {
            Some(file) => {
                Column(ColumnContent::Mapped(Arc::new(MappedWords::new(&file, self.written)?)))
            }
            None => Column(ColumnContent::Held(self.tail)),
        })
    }
}

/// Writes a list of known length from its end. Every element is to be written.
#[derive(Debug)]
pub struct BackwardWriter<T> {
    /// The elements from `from` on that are not in the file.
    chunk: Vec<T>,
    /// The place in the chunk of the element written last.
    first: usize,
    /// The number of the first element of the chunk.
    from: usize,
    len: usize,
    file: Option<File>,
    failure: Option<io::Error>,
}

impl<T: Word> BackwardWriter<T> {
    /// A list of `len` elements, of which at most so many bytes are held; `value` stands where
    /// nothing is written yet. Errors: no scratch file.
    pub fn holding(held_bytes: usize, len: usize, value: T) -> io::Result<BackwardWriter<T>> {
        let fits = !SPILLS || len.saturating_mul(size_of::<T>()) <= held_bytes;
        let file = if fits { None } else { Some(tempfile::tempfile()?) };
        let count = if fits { len } else { (held_bytes / size_of::<T>()).max(1).min(len) };
        let (chunk, from) = (vec![value; count], len - count);
        Ok(BackwardWriter { chunk, first: count, from, len, file, failure: None })
    }

    /// Writes the element before the one written last, at first the last one. More elements than
    /// there are in the list are dropped.
    #[inline(always)]
    pub fn push(&mut self, value: T) {
        if self.first == 0 {
            self.next_chunk();
        }
        if let Some(index) = self.first.checked_sub(1) {
            self.chunk[index] = value;
            self.first = index;
        }
    }

    /// Writes a full chunk down, and begins the one before it.
    #[cold]
    fn next_chunk(&mut self) {
        if let Some(file) = &self.file
            && self.failure.is_none()
        {
            self.failure = write_words_at(file, &self.chunk, self.from).err();
        }
        let count = self.chunk.len().min(self.from);
        self.chunk.truncate(count);
        (self.from, self.first) = (self.from - count, count);
    }

    /// The list, to be read. Errors: no space for it, elements that were not written.
    pub fn finish(mut self) -> io::Result<Column<T>> {
        if self.from + self.first > 0 {
            let missing = self.from + self.first;
            let text = format!("{missing} of {} elements were not written", self.len);
            return Err(io::Error::other(text));
        }
        let Some(file) = self.file.take() else {
            return Ok(Column(ColumnContent::Held(self.chunk)));
        };
        let written = match self.failure {
            Some(error) => Err(error),
            None => write_words_at(&file, &self.chunk, self.from),
        };
        written?;
        Ok(Column(ColumnContent::Mapped(Arc::new(MappedWords::new(&file, self.len)?))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: usize = 4096;

    #[test]
    fn a_list_reads_the_same_from_memory_and_from_a_scratch_file() {
        for len in [0_u32, 1, 1024, 1025, 10_000] {
            let mut writer = ColumnWriter::holding(HELD);
            for value in 0..len {
                writer.tail.push(value * 7);
                writer.settle().unwrap();
                assert!(writer.held() <= HELD, "{} bytes are held", writer.held());
            }
            assert_eq!(writer.len(), len as usize);
            let column = writer.finish().unwrap();
            let expected: Vec<u32> = (0..len).map(|value| value * 7).collect();
            assert_eq!(column.is_mapped(), SPILLS && len > 1024);
            assert_eq!(*column, expected[..]);
            column.release(0..len as usize / 2);
            column.release(3..5);
            column.release(0..usize::MAX);
            assert_eq!(column[..], expected, "what was given back is read again");
            assert_eq!(column.clone().into_vec(), expected);
        }
    }

    #[test]
    fn a_list_written_from_its_end_is_the_same_list() {
        for len in [0_usize, 1, 2047, 2048, 2049, 4096, 9_999] {
            let mut writer = BackwardWriter::holding(HELD, len, 0).unwrap();
            (0..len as u16).rev().for_each(|value| writer.push(value));
            assert!(writer.chunk.len() * 2 <= HELD);
            assert_eq!(writer.from, 0, "the first chunk is the last one written");
            let column = writer.finish().unwrap();
            assert_eq!(column.is_mapped(), SPILLS && len > 2048);
            assert!(column.iter().copied().eq(0..len as u16), "{len} elements");
        }
    }

    #[test]
    fn triples_lie_as_they_were_written() {
        let mut writer = ColumnWriter::holding(100);
        for value in 0..1000_u32 {
            writer.tail.push([value, value + 1, value + 2]);
            writer.settle().unwrap();
        }
        let column = writer.finish().unwrap();
        assert_eq!((column.len(), column[999]), (1000, [999, 1000, 1001]));
    }

    #[test]
    fn columns_can_be_read_by_several_threads_that_give_back_what_they_passed() {
        let mut writer = ColumnWriter::holding(HELD);
        writer.tail.extend(0..1_000_000_u64);
        writer.settle().unwrap();
        let column = writer.finish().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for from in (0..column.len()).step_by(50_000) {
                        let range = from..from + 50_000;
                        let expected = from as u64..range.end as u64;
                        assert!(column[range.clone()].iter().copied().eq(expected));
                        column.release(range);
                    }
                });
            }
        });
    }
}
