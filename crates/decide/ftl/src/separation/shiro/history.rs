//! The writes of a stretch longer than one window.
//!
//! For: lifetimes that a window of 5 % of the drive cannot see, as both of their writes must lie
//! within it. Their labels are final when they are learned. Must never know: models. Units: host
//! page writes. A ring of the last writes. A written or trimmed page finds the write that began its
//! lifetime by its age, so that only learned writes are sorted. Memory: 28 bytes per write of the
//! stretch (the host's, not the drive's).

use super::dataset::{Dataset, LifetimeLabel};
use super::features::{Encoding, Features};
use super::window::{Lifetimes, Sampling, Series};
use std::collections::VecDeque;

/// A write whose lifetime has not ended.
const GOING_ON: u32 = 0;

/// One write.
#[derive(Clone, Copy, Debug)]
struct PastWrite {
    page: u32,
    /// How long its copy lived, or [`GOING_ON`].
    lifetime: u32,
    /// Whether the page held nothing before.
    first: bool,
    features: Features,
}

/// The last writes of the host, oldest first.
#[derive(Clone, Debug)]
pub struct History {
    max_writes: usize,
    writes: VecDeque<PastWrite>,
}

impl History {
    /// Remembers so many writes.
    pub fn new(max_writes: usize) -> History {
        History { max_writes: max_writes.max(1), writes: VecDeque::new() }
    }

    /// A page is written; `age` is the lifetime of its old copy, if it had one.
    #[inline]
    pub fn write(&mut self, page: u32, age: Option<u32>, features: Features) {
        if self.writes.len() == self.max_writes {
            self.writes.pop_front();
        }
        self.writes.push_back(PastWrite {
            page,
            lifetime: GOING_ON,
            first: age.is_none(),
            features,
        });
        if let Some(age) = age {
            self.end(self.writes.len().checked_sub(1 + age as usize), age);
        }
    }

    /// A page is trimmed, so many writes after its own.
    pub fn trim(&mut self, age: u32) {
        self.end(self.writes.len().checked_sub(1 + age as usize), age);
    }

    fn end(&mut self, write: Option<usize>, age: u32) {
        if let Some(past) = write.and_then(|write| self.writes.get_mut(write)) {
            // A page trimmed before the next write lived as short as can be.
            past.lifetime = age.max(1);
        }
    }

    /// The lifetimes that began and ended within the last `span` writes, with rows for at most so
    /// many.
    pub fn lifetimes(&self, encoding: Encoding, max_rows: usize, span: u32) -> Lifetimes {
        let mut found = Lifetimes::new(encoding);
        let from = self.writes.len().saturating_sub(span.max(1) as usize);
        let ended = || self.writes.range(from..).filter(|past| past.lifetime != GOING_ON);
        let stride = ended().count() / max_rows.max(1) + 1;
        for (index, PastWrite { lifetime, features, .. }) in ended().enumerate() {
            found.add(*lifetime, index.is_multiple_of(stride).then_some((encoding, features)));
        }
        found
    }

    /// The labelled series of a window's worth of writes, the last ones whose labels are final: as
    /// many writes as the threshold have followed each. None until there are as many.
    pub fn dataset(
        &self,
        number: u64,
        threshold: u32,
        encoding: Encoding,
        sampling: Sampling,
        window_pages: u32,
    ) -> Dataset {
        let end = self.writes.len().saturating_sub(threshold as usize);
        let mut series = Series::new(number, threshold, encoding, sampling.series_steps);
        let Some(start) = end.checked_sub(window_pages as usize) else { return series.finish() };
        let picks = sampling.picks(number, end - start);
        let mut own: Vec<(usize, &PastWrite)> = self.writes.range(start..end).enumerate().collect();
        own.retain(|(_, past)| picks(past.page));
        own.sort_unstable_by_key(|(index, past)| (past.page, *index));
        for (_, past) in own {
            if past.first {
                series.cut();
            }
            let label = match past.lifetime {
                _ if past.first => LifetimeLabel::Context,
                GOING_ON => LifetimeLabel::Long,
                lifetime if lifetime <= threshold => LifetimeLabel::Short,
                _ => LifetimeLabel::Long,
            };
            series.add(past.page, &past.features, label);
        }
        series.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn lifetimes_are_those_of_a_search_among_the_last_writes() {
        let (mut history, mut rng) = (History::new(70), cachewright_types::Seed(3).rng());
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
            history.write(page, before.map(|before| clock - before), Features::default());
            all.extend(before.map(|before| (before, clock - before)));
        }
        let mut expected: Vec<u32> =
            all.iter().filter(|(began, _)| *began >= 350).map(|(_, lifetime)| *lifetime).collect();
        let found = history.lifetimes(Encoding::Log, 5, 50);
        let observed = found.observed();
        let mut lifetimes = observed.all.to_vec();
        assert_eq!(observed.rows.len(), 6 * observed.lifetimes.len());
        assert!((1..=5).contains(&observed.lifetimes.len()));
        lifetimes.sort_unstable();
        expected.sort_unstable();
        assert!(lifetimes.len() > 10);
        assert_eq!(lifetimes, expected);
    }

    #[test]
    fn only_final_labels_teach() {
        use LifetimeLabel::{Context, Long, Short};
        let mut history = History::new(16);
        // Page 1 is written at 1, 3, 7 and 9; page 2 at 2 and 8; 3 to 5 once.
        for (page, age) in [(1, 0), (2, 0), (1, 2), (3, 0), (4, 0), (5, 0), (1, 4), (2, 6), (1, 2)]
        {
            history.write(page, (age > 0).then_some(age), Features::default());
        }
        let all = Sampling { share: 1.0, min_steps: 0, series_steps: 20, drop_censored: false };
        let found = |threshold, window| {
            let dataset = history.dataset(0, threshold, Encoding::Log, all, window);
            (dataset.lengths, dataset.labels)
        };
        // Threshold 3: writes 1 to 6 are final; page 1 at 3 lived for 4.
        assert_eq!(
            found(3, 6),
            (vec![2, 1, 1, 1, 1], [vec![Context, Long], vec![Context; 4]].concat())
        );
        assert_eq!(found(4, 3), (vec![1, 1, 1], vec![Short, Context, Context]), "writes 3 to 5");
        assert_eq!(found(9, 1).0, [0; 0], "none has been waited for long enough");
    }
}
