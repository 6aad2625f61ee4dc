//! What decides, as bytes: written at one moment, and continued from later.
//!
//! For: policies, partitioners, meters, and caches of them. A snapshot is restored *into* what was
//! made from the same settings and models: it has neither, and a digest of them is to be kept
//! beside it. Continuing from it decides as what was saved would have; so it has all that any later
//! decision depends on, floating-point numbers bit by bit and generators included.
//!
//! The bytes: fields in the order of their declaration, without names or padding. Numbers are
//! little-endian in their own width (`usize` as 64 bits), `bool` and the variant of an `Option` one
//! byte, the variant of an enum four. A list begins with its length (64 bits). A map is written in
//! the order of its keys. The version of a file of them stands in that file.

mod containers;
mod reader;
mod writer;

pub use cachewright_snapshot_derive::{Snapshot, SnapshotValue};
pub use reader::{SnapshotError, SnapshotReader};
pub use writer::SnapshotWriter;

/// State that a snapshot has, and that continues from one.
pub trait Snapshot {
    /// Writes all that later decisions depend on, but settings and models.
    fn save(&self, out: &mut SnapshotWriter<'_>);

    /// Takes what was saved in place of what is there. What is there was made from the same
    /// settings and models. Errors: bytes that were not saved of such state; what is there is then
    /// in no state to be used.
    fn restore(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError>;
}

/// State without settings: a value that is read as a whole.
pub trait SnapshotValue: Snapshot + Sized {
    /// Reads a value. Errors: as [`Snapshot::restore`].
    fn load(from: &mut SnapshotReader<'_>) -> Result<Self, SnapshotError>;

    /// Writes values one after the other, without their number.
    fn save_all(values: &[Self], out: &mut SnapshotWriter<'_>) {
        out.reserve(size_of_val(values));
        values.iter().for_each(|value| value.save(out));
    }

    /// Reads so many values, each of at least one byte, behind what `into` has.
    fn load_all(
        count: usize,
        into: &mut Vec<Self>,
        from: &mut SnapshotReader<'_>,
    ) -> Result<(), SnapshotError> {
        for _ in 0..count {
            into.push(Self::load(from)?);
        }
        Ok(())
    }
}

/// The bytes of a snapshot. Errors: something refuses to be saved.
pub fn saved(state: &(impl Snapshot + ?Sized)) -> Result<Vec<u8>, SnapshotError> {
    let mut out = SnapshotWriter::default();
    state.save(&mut out);
    out.finish()
}

/// Restores from the bytes of a snapshot, all of them. Errors: as [`Snapshot::restore`].
pub fn restore(state: &mut (impl Snapshot + ?Sized), bytes: &[u8]) -> Result<(), SnapshotError> {
    let mut from = SnapshotReader::new(bytes);
    state.restore(&mut from)?;
    from.finish()
}

/// Types whose state cannot be saved, each with the reason as a phrase: `refused!(Type, "why")`.
#[macro_export]
macro_rules! refused {
    ($($kind:ty: $why:expr),+ $(,)?) => {$(
        impl $crate::Snapshot for $kind {
            fn save(&self, out: &mut $crate::SnapshotWriter<'_>) {
                out.refuse($why);
            }

            fn restore(
                &mut self,
                _: &mut $crate::SnapshotReader<'_>,
            ) -> Result<(), $crate::SnapshotError> {
                Err($crate::SnapshotError::refused($why))
            }
        }
    )+};
}
