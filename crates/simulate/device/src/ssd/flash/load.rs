//! How much work waits, by plane and by class, and for how long.
//!
//! For: pages that may share a command, and tables of waits. Must never know: whose turn is next.
//! Units: nanoseconds, transactions.

use super::class::{CLASSES, QueueClass};
use super::ids::PlaneId;
use super::stats::Waits;

/// Work that waits.
#[derive(Clone, Debug)]
pub struct QueueLoad {
    by_plane: Vec<[u32; CLASSES]>,
    waits: [Waits; CLASSES],
}

impl QueueLoad {
    /// Nothing waits for any of so many planes.
    pub fn new(planes: u32) -> QueueLoad {
        let by_plane = vec![[0; CLASSES]; planes as usize];
        QueueLoad { by_plane, waits: [Waits::default(); CLASSES] }
    }

    /// One more waits.
    #[inline]
    pub fn join(&mut self, plane: PlaneId, class: QueueClass, now: u64) {
        self.by_plane[plane.index()][class as usize] += 1;
        self.waits[class as usize].join(now);
    }

    /// One that has waited for so long leaves.
    #[inline]
    pub fn leave(&mut self, plane: PlaneId, class: QueueClass, now: u64, waited_ns: u64) {
        self.by_plane[plane.index()][class as usize] -= 1;
        self.waits[class as usize].leave(now, waited_ns);
    }

    /// One begins without waiting.
    #[inline]
    pub fn pass(&mut self, class: QueueClass) {
        self.waits[class as usize].left += 1;
    }

    /// No load of as many planes.
    pub fn none(&self) -> Vec<[u32; CLASSES]> {
        vec![[0; CLASSES]; self.by_plane.len()]
    }

    /// Work of a class that waits for a plane.
    #[inline]
    pub fn waiting(&self, plane: PlaneId, class: QueueClass) -> u32 {
        self.by_plane[plane.index()][class as usize]
    }

    /// Waits by class.
    pub fn waits(&self) -> &[Waits; CLASSES] {
        &self.waits
    }

    /// What waits is counted.
    pub fn audit(&self, counted: &[[u32; CLASSES]]) -> Result<(), String> {
        if counted == self.by_plane.as_slice() {
            return Ok(());
        }
        Err("work per plane is miscounted".to_owned())
    }

    /// Nothing waits, and Little's law holds.
    pub fn audit_rest(&self) -> Result<(), String> {
        for (class, waits) in QueueClass::ALL.iter().zip(&self.waits) {
            if waits.area_ns != waits.waited_ns || waits.waiting != 0 {
                let (area, waited) = (waits.area_ns, waits.waited_ns);
                return Err(format!("{}: {area} ns queued, {waited} ns waited", class.word()));
            }
        }
        Ok(())
    }
}
