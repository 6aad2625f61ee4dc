//! Entries by small numbers.
//!
//! For: whatever is under way and named by a number in a token. Must never know: what an entry is.

/// Entries by small numbers, which are used again.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds an entry under a number that is free.
    #[inline]
    pub fn insert(&mut self, entry: T) -> usize {
        match self.free.pop() {
            Some(number) => {
                self.entries[number] = Some(entry);
                number
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() - 1
            }
        }
    }

    /// Takes an entry out.
    #[inline]
    pub fn remove(&mut self, number: usize) -> Option<T> {
        let entry = self.entries.get_mut(number)?.take();
        if entry.is_some() {
            self.free.push(number);
        }
        entry
    }

    /// An entry.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        self.entries.get(number)?.as_ref()
    }

    /// An entry, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.entries.get_mut(number)?.as_mut()
    }

    /// All entries with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(number, entry)| entry.as_ref().map(|entry| (number, entry)))
    }

    /// Entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// All numbers in use are below this.
    #[inline]
    pub fn numbers(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_when_their_entry_is_taken_out() {
        let mut slab = Slab::default();
        assert_eq!([slab.insert('a'), slab.insert('b')], [0, 1]);
        assert_eq!((slab.remove(0), slab.remove(0), slab.remove(9)), (Some('a'), None, None));
        assert_eq!((slab.get(0), slab.get(1), slab.len()), (None, Some(&'b'), 1));
        assert_eq!(slab.insert('c'), 0);
        assert_eq!(slab.iter().collect::<Vec<_>>(), [(0, &'c'), (1, &'b')]);
        assert!(!slab.is_empty() && slab.remove(1).is_some() && slab.remove(0).is_some());
        assert!(slab.is_empty());
    }
}
