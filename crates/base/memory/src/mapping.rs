//! A scratch file of numbers, mapped into memory to be read.
//!
//! For: columns too long for memory. Must never know: what the numbers mean. Units: bytes. The file
//! has no name, and nothing but the mapping holds it: it cannot change or shrink while it is read,
//! and its space is free again with the last mapping.

#![allow(unsafe_code)] // each block says why it is sound

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// What is given back begins and ends at multiples of this, which are whole pages everywhere: they
/// have 4 KiB to 64 KiB.
#[cfg(target_os = "linux")]
const GRAIN_BYTES: usize = 64 << 10;

/// A number, or some: any bytes of its size are one, and it has no bytes of no meaning.
pub trait Word: Copy + Send + Sync + private::Sealed + 'static {}

mod private {
    /// Keeps others from promising what this file relies on.
    pub trait Sealed {}
}

macro_rules! words {
    ($($word:ty),*) => { $(
        impl private::Sealed for $word {}
        impl Word for $word {}
    )* };
}

words!(u8, u16, u32, u64, [u32; 3], [u64; 3]);

/// Writes words at the end of a file, as they lie in memory.
pub(crate) fn write_words<T: Word>(file: &mut File, words: &[T]) -> io::Result<()> {
    file.write_all(bytes_of(words))
}

/// Writes words as they lie in memory, the first at the place of word number `index`.
pub(crate) fn write_words_at<T: Word>(file: &File, words: &[T], index: usize) -> io::Result<()> {
    file.write_all_at(bytes_of(words), (index * size_of::<T>()) as u64)
}

fn bytes_of<T: Word>(words: &[T]) -> &[u8] {
    // SAFETY: words are plain numbers without padding (see `Word`), so that all of their bytes are
    // initialised; the slice covers exactly them and is borrowed from them.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// The words of a scratch file. Pages are loaded as they are read, and can be given back.
#[derive(Debug)]
pub(crate) struct MappedWords<T> {
    start: *const T,
    len: usize,
}

// SAFETY: a mapping is read-only memory that nothing writes to (see the head of this file), as a
// shared slice of words is.
unsafe impl<T: Word> Send for MappedWords<T> {}
// SAFETY: as above.
unsafe impl<T: Word> Sync for MappedWords<T> {}

impl<T: Word> MappedWords<T> {
    /// Maps a scratch file without a name, which holds `len` words.
    pub fn new(file: &File, len: usize) -> io::Result<MappedWords<T>> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let bytes = len * size_of::<T>();
        if bytes == 0 || file.metadata()?.len() != bytes as u64 {
            return Err(io::Error::other("a scratch file has not the size of what was written"));
        }
        let (anywhere, read, shared) = (std::ptr::null_mut(), ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: a new mapping at a place that the kernel chooses overlaps nothing; the file has
        // as many bytes, no name, and is not written to any more.
        let start = unsafe { mmap(anywhere, bytes, read, shared, file, 0) }?;
        Ok(MappedWords { start: start.cast(), len })
    }

    /// The words.
    #[inline(always)]
    pub fn words(&self) -> &[T] {
        // SAFETY: the mapping has `len` words of initialised bytes, starts at a page, lives as long
        // as `self`, and is never written to.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// Gives the pages of the words `from..to` back; they are loaded again when they are read.
    #[cfg(target_os = "linux")]
    pub fn release(&self, from: usize, to: usize) {
        use rustix::mm::{Advice, madvise};
        let bytes = |words: usize| words.min(self.len) * size_of::<T>();
        let first = bytes(from) / GRAIN_BYTES * GRAIN_BYTES;
        // The kernel takes the whole of the last page.
        let end = if to >= self.len { bytes(to) } else { bytes(to) / GRAIN_BYTES * GRAIN_BYTES };
        if first < end {
            let start = self.start.cast_mut().cast::<std::ffi::c_void>();
            // SAFETY: the pages lie inside the mapping. It is shared with a file, so that dropping
            // its pages loses nothing. The advice cannot fail in a way that matters: then the pages
            // stay.
            let _ = unsafe {
                madvise(start.wrapping_byte_add(first), end - first, Advice::LinuxDontNeed)
            };
        }
    }

    /// Nothing: pages are given back on Linux only.
    #[cfg(not(target_os = "linux"))]
    pub fn release(&self, _: usize, _: usize) {}
}

impl<T> Drop for MappedWords<T> {
    fn drop(&mut self) {
        let bytes = self.len * size_of::<T>();
        // SAFETY: the mapping is this value's own, and no slice of it outlives it.
        let _ = unsafe { rustix::mm::munmap(self.start.cast_mut().cast(), bytes) };
    }
}
