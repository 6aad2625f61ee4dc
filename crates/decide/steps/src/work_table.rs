//! What steps know of the residents that they touch.
//!
//! For: a line of a processor's cache per resident with steps under way, out of a table as large as
//! the most of them at once. Must never know: ids of the cache, slots, when a resident ends.

use crate::step_graph::StepRef;

/// The steps of a resident for which others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidentSteps {
    /// The step that waits for its slot.
    pub slot_granted: StepRef,
    /// The step that reads it from the backing device.
    pub fetch: StepRef,
    /// The step that puts it on the cache device.
    pub fill: StepRef,
    /// The last step that writes to it.
    pub writer: StepRef,
}

impl ResidentSteps {
    /// Nothing is under way.
    pub const DONE: ResidentSteps = ResidentSteps {
        slot_granted: StepRef::DONE,
        fetch: StepRef::DONE,
        fill: StepRef::DONE,
        writer: StepRef::DONE,
    };
}

/// What is under way for one resident.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Work {
    pub steps: ResidentSteps,
    /// The block's number on its tenant's volume, once a plan has named it.
    number: u64,
    /// The last plan that uses it.
    pub plan: u64,
    /// Steps under way that touch it.
    pub pins: u32,
    /// The resident's.
    pub generation: u32,
    is_numbered: bool,
    /// The cache has evicted it.
    pub evicted: bool,
    /// A step that was to bring its content has failed.
    pub lost: bool,
}

impl Work {
    /// None of a resident of this generation.
    fn new(generation: u32) -> Work {
        Work {
            steps: ResidentSteps::DONE,
            number: 0,
            plan: 0,
            pins: 0,
            generation,
            is_numbered: false,
            evicted: false,
            lost: false,
        }
    }

    /// The block's number on its tenant's volume; nothing if no plan has named it.
    pub fn number(&self) -> Option<u64> {
        self.is_numbered.then_some(self.number)
    }

    /// A plan names the block.
    pub fn set_number(&mut self, number: u64) {
        (self.number, self.is_numbered) = (number, true);
    }

    /// Whether a step touches the resident, or its content is lost.
    pub fn is_needed(&self) -> bool {
        self.pins > 0 || self.lost
    }
}

/// The residents with steps under way, by a place that each keeps meanwhile.
#[derive(Clone, Debug, Default)]
pub struct WorkTable {
    all: Vec<Work>,
    free: Vec<u32>,
}

impl WorkTable {
    /// A place for a resident of this generation, for which nothing is under way.
    #[inline]
    pub fn begin(&mut self, generation: u32) -> u32 {
        let work = Work::new(generation);
        if let Some(place) = self.free.pop() {
            self.all[place as usize] = work;
            return place;
        }
        self.all.push(work);
        self.all.len() as u32 - 1
    }

    /// Gives a place back.
    #[inline]
    pub fn end(&mut self, place: u32) {
        self.free.push(place);
    }

    /// What is under way in a place.
    #[inline]
    pub fn get(&self, place: u32) -> &Work {
        &self.all[place as usize]
    }

    /// What is under way in a place, to be changed.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> &mut Work {
        &mut self.all[place as usize]
    }

    /// Residents with a place.
    pub fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_was_given_back_is_the_next_and_knows_nothing() {
        let mut table = WorkTable::default();
        let places = [7, 8].map(|generation| table.begin(generation));
        table.get_mut(places[0]).set_number(3);
        table.get_mut(places[0]).pins += 1;
        assert_eq!((table.get(places[0]).number(), table.get(places[1]).number()), (Some(3), None));
        table.end(places[0]);
        assert_eq!(table.len(), 1);
        assert_eq!(table.begin(9), places[0]);
        let fresh = table.get(places[0]);
        assert_eq!((fresh.number(), fresh.generation, fresh.is_needed()), (None, 9, false));
        assert_eq!(size_of::<Work>(), 64);
    }
}
