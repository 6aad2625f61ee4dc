//! Newtypes of indices into tables.
//!
//! For: an index that cannot be used in the table of another kind. Must never know: what the tables
//! hold. Tables store "none" in the number itself, so that an entry takes four bytes; outside a
//! table it is an `Option`.

/// Declares kinds of index of 32 bits.
#[macro_export]
macro_rules! index_ids {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        #[allow(dead_code, reason = "not every kind is stored, or left out")]
        impl $name {
            /// No number, as tables store it.
            pub const NONE: $name = $name(u32::MAX);

            /// The number of the entry at `index`.
            #[inline]
            pub fn new(index: usize) -> $name {
                debug_assert!(index < u32::MAX as usize, "a table has fewer entries");
                $name(index as u32)
            }

            /// The place in its table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The number, unless it is [`Self::NONE`].
            #[inline]
            pub fn present(self) -> Option<$name> {
                (self.0 != u32::MAX).then_some(self)
            }
        }
    )+};
}

#[cfg(test)]
mod tests {
    crate::index_ids! {
        /// An index of this test.
        TestId,
    }

    #[test]
    fn none_is_no_number_and_every_other_is_its_index() {
        assert_eq!(TestId::NONE.present(), None);
        for index in [0, 1, 70_000] {
            let id = TestId::new(index);
            assert_eq!((id.index(), id.present()), (index, Some(id)));
        }
        assert_eq!(std::mem::size_of::<TestId>(), 4);
    }
}
