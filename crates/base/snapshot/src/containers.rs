//! Numbers, and what values and state lie in.

use crate::{Snapshot, SnapshotError, SnapshotReader, SnapshotValue, SnapshotWriter};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU32;
use std::sync::Arc;

/// Numbers of a list that are written together.
const PART: usize = 1 << 13;

/// Numbers whose bytes are those in memory, on machines of this order of bytes.
macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Snapshot for $number {
            #[inline(always)]
            fn save(&self, out: &mut SnapshotWriter<'_>) {
                out.put(&self.to_le_bytes());
            }

            #[inline(always)]
            fn restore(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
                *self = <$number>::load(from)?;
                Ok(())
            }
        }

        impl SnapshotValue for $number {
            #[inline(always)]
            fn load(from: &mut SnapshotReader<'_>) -> Result<$number, SnapshotError> {
                from.array().map(<$number>::from_le_bytes)
            }

            fn save_all(values: &[$number], out: &mut SnapshotWriter<'_>) {
                const BYTES: usize = size_of::<$number>();
                out.reserve(BYTES * values.len());
                for part in values.chunks(PART) {
                    let room = out.extend(BYTES * part.len());
                    for (bytes, value) in room.chunks_exact_mut(BYTES).zip(part) {
                        bytes.copy_from_slice(&value.to_le_bytes());
                    }
                }
            }

            fn load_all(
                count: usize,
                into: &mut Vec<$number>,
                from: &mut SnapshotReader<'_>,
            ) -> Result<(), SnapshotError> {
                const BYTES: usize = size_of::<$number>();
                let bytes = from.take(BYTES.saturating_mul(count))?;
                into.extend(bytes.chunks_exact(BYTES).map(|bytes| {
                    let mut number = [0; BYTES];
                    number.copy_from_slice(bytes);
                    <$number>::from_le_bytes(number)
                }));
                Ok(())
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

/// What is read anew takes the place of what was there.
macro_rules! restored_anew {
    () => {
        #[inline]
        fn restore(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
            *self = Self::load(from)?;
            Ok(())
        }
    };
}

impl Snapshot for () {
    fn save(&self, _: &mut SnapshotWriter<'_>) {}
    restored_anew!();
}

impl SnapshotValue for () {
    fn load(_: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        Ok(())
    }
}

impl Snapshot for bool {
    #[inline]
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        u8::from(*self).save(out);
    }
    restored_anew!();
}

impl SnapshotValue for bool {
    #[inline]
    fn load(from: &mut SnapshotReader<'_>) -> Result<bool, SnapshotError> {
        match u8::load(from)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(SnapshotError::value(found.to_string(), "0 or 1")),
        }
    }
}

impl Snapshot for usize {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        (*self as u64).save(out);
    }
    restored_anew!();
}

impl SnapshotValue for usize {
    fn load(from: &mut SnapshotReader<'_>) -> Result<usize, SnapshotError> {
        let found = u64::load(from)?;
        let too_large = |_| SnapshotError::value(found.to_string(), "a number of this machine");
        usize::try_from(found).map_err(too_large)
    }
}

impl Snapshot for NonZeroU32 {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        self.get().save(out);
    }
    restored_anew!();
}

impl SnapshotValue for NonZeroU32 {
    fn load(from: &mut SnapshotReader<'_>) -> Result<NonZeroU32, SnapshotError> {
        let found = NonZeroU32::new(u32::load(from)?);
        found.ok_or_else(|| SnapshotError::value("0", "a number above 0"))
    }
}

impl Snapshot for String {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        out.length(self.len());
        out.put(self.as_bytes());
    }
    restored_anew!();
}

impl SnapshotValue for String {
    fn load(from: &mut SnapshotReader<'_>) -> Result<String, SnapshotError> {
        let length = from.length()?;
        let text = std::str::from_utf8(from.take(length)?);
        text.map(str::to_owned).map_err(|_| SnapshotError::value("bytes", "text in UTF-8"))
    }
}

impl<T: SnapshotValue> Snapshot for Option<T> {
    #[inline]
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        self.is_some().save(out);
        self.iter().for_each(|value| value.save(out));
    }
    restored_anew!();
}

impl<T: SnapshotValue> SnapshotValue for Option<T> {
    #[inline]
    fn load(from: &mut SnapshotReader<'_>) -> Result<Option<T>, SnapshotError> {
        bool::load(from)?.then(|| T::load(from)).transpose()
    }
}

impl<T: Snapshot + ?Sized> Snapshot for Box<T> {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        (**self).save(out);
    }

    fn restore(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        (**self).restore(from)
    }
}

impl<T: SnapshotValue> SnapshotValue for Box<T> {
    fn load(from: &mut SnapshotReader<'_>) -> Result<Box<T>, SnapshotError> {
        T::load(from).map(Box::new)
    }
}

impl<T: SnapshotValue> Snapshot for Arc<T> {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        (**self).save(out);
    }
    restored_anew!();
}

impl<T: SnapshotValue> SnapshotValue for Arc<T> {
    fn load(from: &mut SnapshotReader<'_>) -> Result<Arc<T>, SnapshotError> {
        T::load(from).map(Arc::new)
    }
}

impl<T: Snapshot, const N: usize> Snapshot for [T; N] {
    #[inline]
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        self.iter().for_each(|value| value.save(out));
    }

    fn restore(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        self.iter_mut().try_for_each(|value| value.restore(from))
    }
}

impl<T: SnapshotValue, const N: usize> SnapshotValue for [T; N] {
    #[inline]
    fn load(from: &mut SnapshotReader<'_>) -> Result<[T; N], SnapshotError> {
        // The elements before the first that failed are all that is read.
        let mut failed = None;
        let values: Vec<T> = (0..N)
            .map_while(|_| T::load(from).map_err(|error| failed = Some(error)).ok())
            .collect();
        let lacks = |_| SnapshotError::value("part of an array", "all of it");
        values.try_into().map_err(|part| failed.unwrap_or_else(|| lacks(part)))
    }
}

macro_rules! tuples {
    ($(($($name:ident: $place:tt),+)),+) => {$(
        impl<$($name: Snapshot),+> Snapshot for ($($name,)+) {
            #[inline]
            fn save(&self, out: &mut SnapshotWriter<'_>) {
                $(self.$place.save(out);)+
            }

            fn restore(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
                $(self.$place.restore(from)?;)+
                Ok(())
            }
        }

        impl<$($name: SnapshotValue),+> SnapshotValue for ($($name,)+) {
            #[inline]
            fn load(from: &mut SnapshotReader<'_>) -> Result<Self, SnapshotError> {
                Ok(($($name::load(from)?,)+))
            }
        }
    )+};
}

tuples!((A: 0, B: 1), (A: 0, B: 1, C: 2));

impl<T: SnapshotValue> Snapshot for Vec<T> {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        out.length(self.len());
        T::save_all(self, out);
    }

    /// The memory of what was there is used again.
    fn restore(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        let length = from.length()?;
        self.clear();
        T::load_all(length, self, from)
    }
}

impl<T: SnapshotValue> SnapshotValue for Vec<T> {
    fn load(from: &mut SnapshotReader<'_>) -> Result<Vec<T>, SnapshotError> {
        let mut list = Vec::new();
        list.restore(from)?;
        Ok(list)
    }
}

/// Lists of values in another order of memory.
macro_rules! lists {
    ($($list:ident: $($bound:ident)?),+) => {$(
        impl<T: SnapshotValue $(+ $bound)?> Snapshot for $list<T> {
            fn save(&self, out: &mut SnapshotWriter<'_>) {
                out.length(self.len());
                self.iter().for_each(|value| value.save(out));
            }
            restored_anew!();
        }

        impl<T: SnapshotValue $(+ $bound)?> SnapshotValue for $list<T> {
            fn load(from: &mut SnapshotReader<'_>) -> Result<Self, SnapshotError> {
                Ok(Vec::load(from)?.into_iter().collect())
            }
        }
    )+};
}

lists!(VecDeque:, BTreeSet: Ord);

/// A heap that is read is the same array: in an array that is a heap nothing moves.
impl<T: SnapshotValue + Ord> Snapshot for BinaryHeap<T> {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        out.length(self.len());
        T::save_all(self.as_slice(), out);
    }
    restored_anew!();
}

impl<T: SnapshotValue + Ord> SnapshotValue for BinaryHeap<T> {
    fn load(from: &mut SnapshotReader<'_>) -> Result<BinaryHeap<T>, SnapshotError> {
        Vec::load(from).map(BinaryHeap::from)
    }
}

impl<K: SnapshotValue + Ord, V: SnapshotValue> Snapshot for BTreeMap<K, V> {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        out.length(self.len());
        for (key, value) in self {
            key.save(out);
            value.save(out);
        }
    }
    restored_anew!();
}

impl<K: SnapshotValue + Ord, V: SnapshotValue> SnapshotValue for BTreeMap<K, V> {
    fn load(from: &mut SnapshotReader<'_>) -> Result<BTreeMap<K, V>, SnapshotError> {
        Ok(Vec::load(from)?.into_iter().collect())
    }
}

/// A map is written by its keys. The order in which it is gone through may change: nothing that
/// decides goes by it.
impl<K, V, S> Snapshot for HashMap<K, V, S>
where
    K: SnapshotValue + Ord + Hash,
    V: SnapshotValue,
    S: BuildHasher + Default,
{
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        let mut entries: Vec<(&K, &V)> = self.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        out.length(entries.len());
        for (key, value) in entries {
            key.save(out);
            value.save(out);
        }
    }
    restored_anew!();
}

impl<K, V, S> SnapshotValue for HashMap<K, V, S>
where
    K: SnapshotValue + Ord + Hash,
    V: SnapshotValue,
    S: BuildHasher + Default,
{
    fn load(from: &mut SnapshotReader<'_>) -> Result<HashMap<K, V, S>, SnapshotError> {
        Ok(Vec::load(from)?.into_iter().collect())
    }
}
