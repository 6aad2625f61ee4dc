//! Hints about large arrays: huge pages behind them, and lines loaded ahead of their use. Lists too
//! long for memory are columns in scratch files (`column`).
//!
//! For: arrays by id, in which every access goes to another page. Must never know: what an array
//! holds. A hint changes the time that accesses take, and nothing else. Units: elements, bytes.
//!
//! An array of 24 MiB has 6,144 pages of 4 KiB, more than a processor keeps translations of; of
//! pages of 2 MiB it has 12. Linux gives them to memory that asks for them (`madvise`, section
//! "MADV_HUGEPAGE" of madvise(2)), as it is touched first: so an array is advised before it is
//! filled.

#![allow(unsafe_code)] // each block says why it is sound

mod column;
mod mapping;

pub use column::{BackwardWriter, Column, ColumnWriter, HELD_BYTES};
pub use mapping::Word;

/// Arrays of fewer bytes are left alone: a huge page is 2 MiB, and starts at a multiple of that.
const MIN_ADVISED_BYTES: usize = 4 << 20;
/// `madvise` takes whole pages.
#[cfg(target_os = "linux")]
const PAGE_BYTES: usize = 4096;

/// Lengthens `list` to `len` elements, if it is shorter; the new ones are `value`. As
/// [`Vec::resize`], with huge pages behind what it allocates.
pub fn lengthen<T: Clone>(list: &mut Vec<T>, len: usize, value: T) {
    if len > list.len() {
        reserve(list, len);
        list.resize(len, value);
    }
}

/// Reserves memory for `len` elements in all, as [`Vec::reserve`] does, in huge pages.
pub fn reserve<T>(list: &mut Vec<T>, len: usize) {
    if len > list.capacity() {
        list.reserve(len - list.len());
        advise(list);
    }
}

/// The same without a reserve for more, as [`Vec::reserve_exact`].
pub fn reserve_exact<T>(list: &mut Vec<T>, len: usize) {
    if len > list.capacity() {
        list.reserve_exact(len - list.len());
        advise(list);
    }
}

/// Asks for huge pages behind all that `list` has allocated. Pages that were touched before stay
/// small until the kernel joins them. Returns whether the kernel took the advice; arrays of less
/// than 4 MiB are not worth it.
pub fn advise<T>(list: &mut Vec<T>) -> bool {
    let bytes = list.capacity().saturating_mul(size_of::<T>());
    bytes >= MIN_ADVISED_BYTES && advise_range(list.as_mut_ptr().cast(), bytes)
}

#[cfg(target_os = "linux")]
fn advise_range(start: *mut std::ffi::c_void, bytes: usize) -> bool {
    use rustix::mm::{Advice, madvise};
    let to_page = start.addr().next_multiple_of(PAGE_BYTES) - start.addr();
    let whole = bytes.saturating_sub(to_page) / PAGE_BYTES * PAGE_BYTES;
    let first = start.wrapping_byte_add(to_page);
    // SAFETY: the pages lie inside one live allocation of the caller's vector, which is borrowed
    // mutably; this advice changes how they are mapped, never what they hold.
    unsafe { madvise(first, whole, Advice::LinuxHugepage) }.is_ok()
}

#[cfg(not(target_os = "linux"))]
fn advise_range(_: *mut std::ffi::c_void, _: usize) -> bool {
    false
}

/// Starts to load the line of an element, and does not wait for it; nothing where there is no such
/// element. A load would do the same, but the processor holds a load, and all that follows it,
/// until its data has come.
#[inline(always)]
pub fn prefetch<T>(list: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let element = list.as_ptr().wrapping_add(index);
        // SAFETY: a prefetch reads no memory that the program can see, and an address that is not
        // mapped is ignored.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(element.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        std::hint::black_box(list.get(index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_in_huge_pages_is_the_same_array() {
        let len = 3 << 20;
        let mut plain: Vec<u64> = Vec::new();
        let mut huge: Vec<u64> = Vec::new();
        for step in [1, 1000, len / 2, len] {
            plain.resize(step, step as u64);
            lengthen(&mut huge, step, step as u64);
            lengthen(&mut huge, step / 2, 0);
            assert_eq!(huge.len(), step);
        }
        for index in (0..len).step_by(7) {
            prefetch(&huge, index);
            prefetch(&huge, index + len);
            (plain[index], huge[index]) = (index as u64, index as u64);
        }
        advise(&mut huge);
        assert!(plain == huge);
    }

    #[test]
    fn room_is_made_exactly_or_by_doubling() {
        let mut list = vec![1_u32];
        reserve_exact(&mut list, 2 << 20);
        assert_eq!((list.len(), list.capacity()), (1, 2 << 20));
        list.resize(2 << 20, 2);
        reserve(&mut list, (2 << 20) + 1);
        assert!(list.capacity() >= 4 << 20, "one more doubles");
        assert_eq!((list[0], list[(2 << 20) - 1]), (1, 2));
    }

    #[test]
    fn small_arrays_are_left_alone() {
        assert!(!advise(&mut vec![0_u8; MIN_ADVISED_BYTES / 2]));
        assert!(!advise(&mut Vec::<u8>::new()));
        assert!(!advise(&mut vec![(); 10]));
    }
}
