//! The writes of a stretch longer than one window, for the threshold alone.
//!
//! For: lifetimes that a window of 5 % of the drive cannot see, as both of their writes must lie
//! within it. Must never know: labels, models. Units: host page writes. A ring of the last writes;
//! a page that is written or trimmed finds the write that began its lifetime by its age, so that
//! nothing is sorted. Memory: 20 bytes per write of the stretch (the host's, not the drive's).

use super::features::{Encoding, Features};
use super::window::Lifetimes;
use std::collections::VecDeque;

/// A write whose lifetime has not ended.
const GOING_ON: u32 = 0;

/// The last writes of the host, oldest first.
#[derive(Clone, Debug)]
pub struct History {
    most: usize,
    /// Features and lifetime of each write.
    writes: VecDeque<(Features, u32)>,
}

impl History {
    /// Remembers so many writes.
    pub fn new(pages: u32) -> History {
        History { most: pages.max(1) as usize, writes: VecDeque::new() }
    }

    /// A page is written; `age` is the lifetime of its old copy, if it had one.
    #[inline]
    pub fn write(&mut self, age: Option<u32>, features: Features) {
        if self.writes.len() == self.most {
            self.writes.pop_front();
        }
        self.writes.push_back((features, GOING_ON));
        if let Some(age) = age {
            self.end(self.writes.len().checked_sub(1 + age as usize), age);
        }
    }

    /// A page is trimmed, so many writes after its own.
    pub fn trim(&mut self, age: u32) {
        self.end(self.writes.len().checked_sub(1 + age as usize), age);
    }

    fn end(&mut self, write: Option<usize>, age: u32) {
        if let Some((_, lifetime)) = write.and_then(|write| self.writes.get_mut(write)) {
            // A page trimmed before the next write lived as short as can be.
            *lifetime = age.max(1);
        }
    }

    /// The lifetimes that began and ended within the stretch, with rows for at most so many.
    pub fn lifetimes(&self, encoding: Encoding, most_rows: usize) -> Lifetimes {
        let mut found = Lifetimes::new(encoding);
        let ended = || self.writes.iter().filter(|(_, lifetime)| *lifetime != GOING_ON);
        let stride = ended().count() / most_rows.max(1) + 1;
        for (index, (features, lifetime)) in ended().enumerate() {
            found.add(*lifetime, index.is_multiple_of(stride).then_some((encoding, features)));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn lifetimes_are_those_of_a_search_among_the_last_writes() {
        let (mut history, mut rng) = (History::new(50), cachewright_types::Seed(3).rng());
        let (mut all, mut last) = (Vec::new(), HashMap::<u32, u32>::new());
        for clock in 0..400_u32 {
            let page = rng.below(10 + u64::from(clock) / 20) as u32;
            if clock % 7 == 3
                && let Some(before) = last.remove(&page)
            {
                // Page `page` was written at `before`; the last write happened at clock - 1.
                history.trim(clock - 1 - before);
                all.push((before, (clock - 1 - before).max(1)));
            }
            let before = last.insert(page, clock);
            history.write(before.map(|before| clock - before), Features::default());
            all.extend(before.map(|before| (before, clock - before)));
        }
        let mut expected: Vec<u32> =
            all.iter().filter(|(began, _)| *began >= 350).map(|(_, lifetime)| *lifetime).collect();
        let found = history.lifetimes(Encoding::Log, 5);
        let observed = found.observed();
        let mut lifetimes = observed.all.to_vec();
        assert_eq!(observed.rows.len(), 6 * observed.lifetimes.len());
        assert!((1..=5).contains(&observed.lifetimes.len()));
        lifetimes.sort_unstable();
        expected.sort_unstable();
        assert!(lifetimes.len() > 10);
        assert_eq!(lifetimes, expected);
    }
}
