//! A run of blocks that leave `rc-x` one after the other.
//!
//! For: what comes next in the run. Must never know: why a run leaves. Units: places, accesses.

/// The next block of a run that leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trail {
    pub place: u32,
    /// Its last access.
    pub last: u32,
    /// Blocks of the run from it on.
    pub left: u32,
}

impl Trail {
    /// The block `by` places further, if there is one left.
    pub fn next(self, by: i32) -> Option<Trail> {
        let place = self.place.checked_add_signed(by)?;
        let last = self.last.wrapping_add_signed(by);
        (self.left > 1).then_some(Trail { place, last, left: self.left - 1 })
    }
}
