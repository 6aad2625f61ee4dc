//! A list that grows a piece at a time.
//!
//! For: structures that are reached by index and must not pause to grow. Must never know: what it
//! holds. A piece has [`PIECE`] elements and never moves. Cost: one more load per access than an
//! array. Unit: elements.

use std::ops::{Index, IndexMut};

/// Elements of a piece: a power of two.
const PIECE: usize = 256;

/// A list whose elements never move.
#[derive(Clone, Debug)]
pub struct SegmentedList<T> {
    pieces: Vec<Box<[T; PIECE]>>,
    len: usize,
}

impl<T> Default for SegmentedList<T> {
    fn default() -> Self {
        SegmentedList { pieces: Vec::new(), len: 0 }
    }
}

impl<T: Copy> SegmentedList<T> {
    /// Elements in use.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an element at the end.
    pub fn push(&mut self, element: T) {
        if self.len == self.pieces.len() * PIECE {
            self.pieces.push(Box::new([element; PIECE]));
        }
        self.len += 1;
        let last = self.len - 1;
        self[last] = element;
    }
}

impl<T> Index<usize> for SegmentedList<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        &self.pieces[index / PIECE][index % PIECE]
    }
}

impl<T> IndexMut<usize> for SegmentedList<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.pieces[index / PIECE][index % PIECE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_stay_where_they_are_while_it_grows() {
        let mut list: SegmentedList<usize> = SegmentedList::default();
        assert!(list.is_empty());
        list.push(0);
        let first = &raw const list[0];
        (1..3 * PIECE + 5).for_each(|element| list.push(element));
        assert_eq!(list.len(), 3 * PIECE + 5);
        assert!((0..list.len()).all(|at| list[at] == at));
        list[PIECE] = 7;
        assert_eq!((list[PIECE], list[PIECE - 1]), (7, PIECE - 1));
        assert_eq!(&raw const list[0], first);
    }
}
