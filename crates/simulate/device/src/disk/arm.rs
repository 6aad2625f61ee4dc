//! The arm of a disk: where it is, and the way to another place.
//!
//! For: the disk. Must never know: commands, rotation. Units: cylinders, nanoseconds.

use super::geometry::DiskPlace;
use super::seek::SeekCurve;

/// The arm, and the head that is chosen.
#[derive(Clone, Debug)]
pub struct Arm {
    curve: SeekCurve,
    head_switch_ns: u64,
    cylinder: u64,
    head: u64,
}

impl Arm {
    /// An arm at the outermost cylinder.
    pub fn new(curve: SeekCurve, head_switch_ns: u64) -> Arm {
        Arm { curve, head_switch_ns, cylinder: 0, head: 0 }
    }

    /// The cylinder that the arm is at.
    pub fn cylinder(&self) -> u64 {
        self.cylinder
    }

    /// The way to a place from where the arm is.
    pub fn way_ns(&self, place: &DiskPlace) -> u64 {
        match place.cylinder.abs_diff(self.cylinder) {
            0 if place.head == self.head => 0,
            0 => self.head_switch_ns,
            crossed => self.curve.time_ns(crossed),
        }
    }

    /// The arm is at a place.
    pub fn move_to(&mut self, place: &DiskPlace) {
        (self.cylinder, self.head) = (place.cylinder, place.head);
    }
}
