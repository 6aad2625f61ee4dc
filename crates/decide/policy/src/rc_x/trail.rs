//! Runs of blocks that leave `rc-x` one after the other.
//!
//! For: what comes next in a run. Must never know: why a run leaves. Units: places, accesses.

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
    fn next(self, by: i32) -> Option<Trail> {
        let place = self.place.checked_add_signed(by)?;
        let last = self.last.wrapping_add_signed(by);
        (self.left > 1).then_some(Trail { place, last, left: self.left - 1 })
    }
}

/// The runs that leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trails {
    /// What leaves next for a block that comes in.
    onwards: Option<Trail>,
    /// What leaves next ahead of need.
    backwards: Option<Trail>,
}

impl Trails {
    /// What leaves next for a block that comes in.
    pub fn take_onwards(&mut self) -> Option<Trail> {
        self.onwards.take()
    }

    /// The block of a trail leaves for one that comes in: the one after it is next.
    pub fn go_onwards(&mut self, trail: Trail) {
        self.onwards = trail.next(1);
    }

    /// What leaves next ahead of need.
    pub fn take_backwards(&mut self) -> Option<Trail> {
        self.backwards.take()
    }

    /// The block of a trail leaves ahead of need: the one before it is next.
    pub fn go_backwards(&mut self, trail: Trail) {
        self.backwards = trail.next(-1);
    }

    /// Whether a run that leaves ahead of need has begun.
    #[inline(always)]
    pub fn has_backwards(&self) -> bool {
        self.backwards.is_some()
    }
}
