//! The residents that a step touches.
//!
//! For: a list that mostly has one entry or a few: these cost no allocation. Must never know: what
//! is done to them.

use crate::ids::ResidentId;
use std::ops::Deref;

/// Residents that lie in the list itself: as many as leave it as large as a vector.
const FEW: usize = 3;

/// Residents in order; reads as a slice.
#[derive(Clone, Debug)]
pub struct Pins(List);

#[derive(Clone, Debug)]
enum List {
    Few { count: u32, ids: [ResidentId; FEW] },
    Many(Vec<ResidentId>),
}

impl Pins {
    /// No resident.
    pub const NONE: Pins = Pins(List::Few { count: 0, ids: [ResidentId::NONE; FEW] });
}

impl Deref for Pins {
    type Target = [ResidentId];

    #[inline]
    fn deref(&self) -> &[ResidentId] {
        match &self.0 {
            List::Few { count, ids } => &ids[..*count as usize],
            List::Many(ids) => ids,
        }
    }
}

impl FromIterator<ResidentId> for Pins {
    #[inline]
    fn from_iter<I: IntoIterator<Item = ResidentId>>(residents: I) -> Pins {
        let mut residents = residents.into_iter();
        let (mut count, mut ids) = (0, [ResidentId::NONE; FEW]);
        while let Some(resident) = residents.next() {
            if count == FEW {
                let more = [resident].into_iter().chain(residents);
                return Pins(List::Many(ids.into_iter().chain(more).collect()));
            }
            ids[count] = resident;
            count += 1;
        }
        Pins(List::Few { count: count as u32, ids })
    }
}

impl From<&[ResidentId]> for Pins {
    fn from(residents: &[ResidentId]) -> Pins {
        residents.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_any_length_keeps_its_residents_in_order() {
        assert!(Pins::NONE.is_empty());
        for length in 0..9 {
            let residents: Vec<ResidentId> = (0..length).map(|id| ResidentId(id * 7)).collect();
            let pins: Pins = residents.iter().copied().collect();
            assert_eq!(*pins, *residents);
            assert_eq!(*Pins::from(&residents[..]), *residents);
            assert_eq!(matches!(pins.0, List::Few { .. }), residents.len() <= FEW);
        }
        assert_eq!(size_of::<Pins>(), size_of::<Vec<ResidentId>>());
    }
}
