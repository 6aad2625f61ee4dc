//! The life table: how likely pages are to be overwritten, by their past and their age.
//!
//! For: counts of overwrites and of time at risk per cell and bin of ages, and what follows from
//! them: hazards and residual lifetimes. Must never know: pages, streams. A page that has not been
//! overwritten adds its time at risk and no overwrite. No label is guessed and none is censored.
//! Counts are of periods, not of generations: what happens in a window counts for it, and old
//! windows fade. Units: host page writes; a hazard is overwrites per page and host page write.
//! Source: the piecewise exponential model of survival analysis (life tables of a period); its use
//! for pages is Cachewright's, not Shiro's. Memory: 300 KiB.

use super::history::{CELLS, SPANS, span, span_start};

/// Overwrites by which a cell leans on what is known without it.
const PRIOR: f64 = 2.0;
/// The hazard before anything was seen, in overwrites per page and drive write.
const FIRST: f64 = 0.5;
/// Times beyond are not told apart.
const LONGEST: f64 = 4e9;

/// What was seen of one cell at one bin of ages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct AgeCounts {
    overwrites: f32,
    /// Time at risk of pages whose observation began or ended in this bin.
    time: f32,
    /// Observations that began in an earlier bin and ended in this one.
    ended: f32,
    /// Observations that began in this bin and ended in a later one.
    began: f32,
}

/// Overwrites and time at risk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Risk {
    overwrites: f64,
    time: f64,
}

/// What was seen, and what follows.
#[derive(Clone, Debug, Default)]
pub struct LifeTable {
    first: f64,
    keep: f32,
    seen: Vec<[AgeCounts; SPANS]>,
    medians: Vec<[u8; SPANS]>,
}

impl LifeTable {
    /// Nothing seen of a drive of so many pages; a window counts `keep` times as much as the next.
    pub fn new(pages: u32, keep: f64) -> LifeTable {
        LifeTable {
            first: FIRST / f64::from(pages.max(1)),
            keep: keep as f32,
            seen: vec![[AgeCounts::default(); SPANS]; CELLS],
            medians: vec![[0; SPANS]; CELLS],
        }
    }

    /// Bytes of counts and medians.
    pub fn held_bytes(&self) -> usize {
        size_of_val(self.seen.as_slice()) + size_of_val(self.medians.as_slice())
    }

    /// A page of a cell was at risk while its age went from `from` to `to`.
    #[inline]
    pub fn survived(&mut self, cell: usize, from: u32, to: u32) {
        let (low, high) = (span(from), span(to));
        let Some(row) = self.seen.get_mut(cell) else { return };
        if low >= high {
            row[high].time += to.saturating_sub(from) as f32;
            return;
        }
        row[low].time += (span_start(low + 1) - f64::from(from)) as f32;
        row[low].began += 1.0;
        row[high].time += (f64::from(to) - span_start(high)) as f32;
        row[high].ended += 1.0;
    }

    /// A page of a cell was overwritten or trimmed at this age.
    #[inline]
    pub fn died(&mut self, cell: usize, age: u32) {
        if let Some(row) = self.seen.get_mut(cell) {
            row[span(age)].overwrites += 1.0;
        }
    }

    /// The time, as a bin, within which half of the pages of a cell and a bin of ages are
    /// overwritten. The windows that ended decide.
    #[inline]
    pub fn median_residual(&self, cell: usize, age: usize) -> usize {
        self.medians.get(cell).map_or(0, |row| usize::from(row[age.min(SPANS - 1)]))
    }

    /// Ends a window: medians follow from what was seen, which then fades.
    pub fn end_window(&mut self) {
        self.fit();
        for seen in self.seen.as_flattened_mut() {
            seen.overwrites *= self.keep;
            seen.time *= self.keep;
            seen.ended *= self.keep;
            seen.began *= self.keep;
        }
    }

    /// Hazards of each cell are drawn towards those of all rewritten pages of the same mean. Those
    /// are drawn towards the hazards of all pages of the same age, and those towards a constant.
    fn fit(&mut self) {
        let risks: Vec<[Risk; SPANS]> = self.seen.iter().map(risks).collect();
        let all = hazards(&sum(risks.iter()), &[self.first; SPANS]);
        for mean in 0..SPANS {
            let rewritten = risks.iter().skip(SPANS + mean).step_by(SPANS);
            let same = hazards(&sum(rewritten), &all);
            for cell in (mean..CELLS).step_by(SPANS) {
                let prior = if cell < SPANS { &all } else { &same };
                self.medians[cell] = medians(&hazards(&risks[cell], prior));
            }
        }
    }

    /// Checks that counts are numbers of things.
    pub fn audit(&self) -> Result<(), String> {
        let sound = |x: f32| x.is_finite() && x >= 0.0;
        let wrong = self.seen.as_flattened().iter().find(|seen| {
            ![seen.overwrites, seen.time, seen.ended, seen.began].into_iter().all(sound)
        });
        wrong.map_or(Ok(()), |seen| Err(format!("the life table holds {seen:?}")))
    }
}

/// Time at risk per bin: observations that began and ended elsewhere passed all bins between.
fn risks(row: &[AgeCounts; SPANS]) -> [Risk; SPANS] {
    let mut risks = [Risk::default(); SPANS];
    let mut passing = 0.0;
    for (age, (risk, seen)) in risks.iter_mut().zip(row).enumerate() {
        passing -= f64::from(seen.ended);
        let passed = passing.max(0.0) * (span_start(age + 1) - span_start(age));
        *risk =
            Risk { overwrites: f64::from(seen.overwrites), time: f64::from(seen.time) + passed };
        passing += f64::from(seen.began);
    }
    risks
}

fn sum<'a>(rows: impl Iterator<Item = &'a [Risk; SPANS]>) -> [Risk; SPANS] {
    let mut all = [Risk::default(); SPANS];
    for row in rows {
        for (sum, risk) in all.iter_mut().zip(row) {
            sum.overwrites += risk.overwrites;
            sum.time += risk.time;
        }
    }
    all
}

/// Hazards that are the prior's until overwrites or time say otherwise.
fn hazards(risks: &[Risk; SPANS], prior: &[f64; SPANS]) -> [f64; SPANS] {
    std::array::from_fn(|age| {
        (risks[age].overwrites + PRIOR) / (risks[age].time + PRIOR / prior[age])
    })
}

/// Per bin of ages the median residual lifetime, from the middle of the bin, as a bin.
fn medians(hazards: &[f64; SPANS]) -> [u8; SPANS] {
    let width = |age: usize| span_start(age + 1) - span_start(age);
    // The hazard integrated up to the start of each bin: ln 2 more of it halves the pages.
    let mut sums = [0.0; SPANS + 1];
    for age in 0..SPANS {
        sums[age + 1] = sums[age] + hazards[age] * width(age);
    }
    let mut end = 0;
    std::array::from_fn(|age| {
        let middle = 0.5 * (span_start(age) + span_start(age + 1));
        let half = 0.5 * (sums[age] + sums[age + 1]) + core::f64::consts::LN_2;
        end = end.max(age);
        while end + 1 < SPANS && sums[end + 1] < half {
            end += 1;
        }
        let reached = span_start(end) + (half - sums[end]) / hazards[end];
        span((reached - middle).clamp(1.0, LONGEST) as u32) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: usize = SPANS + 20;

    fn table() -> LifeTable {
        LifeTable::new(1000, 0.5)
    }

    /// Bins begin at 1, 2, 3, 4, 6, 8, 12, 16. A page watched from age 2 to 10 is at risk for 1 in
    /// [2, 3), 1 in [3, 4), 2 in [4, 6), 2 in [6, 8) and 2 in [8, 12); one from 8 to 9 for 1 there.
    #[test]
    fn time_at_risk_is_shared_out_over_bins() {
        let mut table = table();
        table.survived(CELL, 2, 10);
        table.survived(CELL, 8, 9);
        table.died(CELL, 9);
        let risks = risks(&table.seen[CELL]);
        let bins = [2, 3, 4, 6, 8, 12].map(span);
        assert_eq!(bins.map(|bin| risks[bin].time), [1.0, 1.0, 2.0, 2.0, 3.0, 0.0]);
        assert_eq!(bins.map(|bin| risks[bin].overwrites), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(risks.iter().map(|risk| risk.time).sum::<f64>(), 9.0);
    }

    /// A hazard of 1/1000 at any age: half are gone after 693, in the bin [512, 768).
    #[test]
    fn a_constant_hazard_has_one_median() {
        let medians = medians(&[0.001; SPANS]);
        assert!(medians[..40].iter().all(|median| usize::from(*median) == span(693)));
    }

    /// 1000 pages that all live exactly 1000, watched from birth to death: at birth they have 1000
    /// left, at 512 to 768 about 360, and one that has passed 1024 may live for long.
    #[test]
    fn a_fixed_lifetime_is_learned() {
        let mut table = table();
        for _ in 0..1000 {
            table.survived(CELL, 0, 1000);
            table.died(CELL, 1000);
        }
        table.end_window();
        let median = |age| span_start(table.median_residual(CELL, span(age)));
        assert_eq!((median(1), median(600)), (768.0, 256.0));
        assert!(median(5000) > 1000.0);
    }

    /// Pages that were not overwritten teach by their time at risk: the more of them lived on
    /// beside ten that died, the longer is the median.
    #[test]
    fn time_without_an_overwrite_teaches() {
        let median = |pages: u32| {
            let mut table = table();
            (0..10).for_each(|_| table.died(CELL, 5000));
            (0..pages).for_each(|_| table.survived(CELL, 0, 100_000));
            table.end_window();
            table.median_residual(CELL, span(3500))
        };
        assert!(median(10) < median(100));
    }

    #[test]
    fn old_windows_fade() {
        let mut table = table();
        table.survived(CELL, 2, 10);
        table.died(CELL, 10);
        table.end_window();
        let risks = risks(&table.seen[CELL]);
        assert_eq!((risks[span(4)].time, risks[span(10)].overwrites), (1.0, 0.5));
        assert_eq!(table.audit(), Ok(()));
        table.seen[CELL][3].time = f32::NAN;
        assert!(table.audit().is_err());
    }
}
