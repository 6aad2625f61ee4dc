//! Which rule runs: the best of late, within what may be lost beside `lru`.
//!
//! For: `guarded`. Unit: hits and misses of sampled blocks. Hits of each miniature, less its writes
//! to flash at their price, are summed with decay. Another rule follows when its sum is ahead by a
//! margin, unless the budget of misses beside the miniature `lru` is spent ([`MissBudget`]).

use super::GuardedSettings;
use super::switching_cache::{RULES, Rule};
use crate::Verdict;
use crate::miss_budget::MissBudget;
use cachewright_snapshot::Snapshot;

/// The least margin, in hits: in a small cache a few hits say nothing.
const LEAST_MARGIN: f64 = 16.0;

/// The sums, the budget, and what they are measured by.
#[derive(Clone, Debug, Snapshot)]
pub struct Choice {
    sums: [f64; RULES.len()],
    /// What a sum keeps from one access to the next.
    kept: f64,
    /// Hits that another rule must be ahead.
    margin: f64,
    budget: MissBudget,
    #[snapshot(settings)]
    settings: GuardedSettings,
}

impl Choice {
    /// Nothing is known of miniatures of this capacity.
    pub fn new(settings: &GuardedSettings, capacity: u32) -> Choice {
        let mut choice = Choice {
            sums: [0.0; RULES.len()],
            kept: 0.0,
            margin: 0.0,
            budget: MissBudget::new(capacity, settings.allowance),
            settings: settings.clone(),
        };
        choice.scale(capacity);
        choice
    }

    /// Takes the capacity of the miniatures; the budget scales with it.
    pub fn scale(&mut self, capacity: u32) {
        self.budget.scale(capacity);
        let capacity = f64::from(capacity);
        self.kept = 1.0 - 1.0 / (self.settings.horizon * capacity).max(1.0);
        self.margin = (self.settings.margin * capacity).max(LEAST_MARGIN);
    }

    /// Notes what the cache and each miniature decided about a sampled block.
    pub fn note(&mut self, cache: Verdict, miniatures: [Verdict; RULES.len()], write: bool) {
        let price = self.settings.write_price;
        for (sum, verdict) in self.sums.iter_mut().zip(miniatures) {
            let worth = match verdict {
                Verdict::Hit if write => 1.0 - price,
                Verdict::Hit => 1.0,
                Verdict::Admit { .. } => -price,
                Verdict::Bypass => 0.0,
            };
            *sum = *sum * self.kept + worth;
        }
        self.budget.note(miniatures[0], cache);
    }

    /// The rule that should run in place of `running`, or `running`.
    pub fn rule(&self, running: Rule) -> Rule {
        if self.budget.demands_lru(running == Rule::Lru) {
            return Rule::Lru;
        }
        let sum = |rule: Rule| RULES.iter().zip(&self.sums).find(|(each, _)| **each == rule);
        let here = sum(running).map_or(0.0, |(_, sum)| *sum);
        let (mut best, mut most) = (running, here + self.margin);
        for (rule, sum) in RULES.iter().zip(&self.sums) {
            if *sum > most {
                (best, most) = (*rule, *sum);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMIT: Verdict = Verdict::Admit { evicted: None };

    /// Capacity 100: a budget of 50, a margin of 20, and sums that hardly decay.
    fn choice() -> Choice {
        let settings = GuardedSettings {
            horizon: 1e9,
            margin: 0.2,
            write_price: 0.5,
            allowance: 0.02,
            ..GuardedSettings::default()
        };
        Choice::new(&settings, 100)
    }

    /// Hits of the second rule alone: 20 are no more than the margin, 21 are. A block admitted and
    /// a hit that writes cost half a hit each, so that the first rule has -11.
    #[test]
    fn another_rule_follows_when_it_is_ahead_by_more_than_the_margin() {
        let mut choice = choice();
        let hit = [Verdict::Bypass, Verdict::Hit, Verdict::Bypass, Verdict::Bypass, ADMIT];
        for _ in 0..20 {
            choice.note(Verdict::Hit, hit, false);
            assert_eq!(choice.rule(Rule::Lru), Rule::Lru);
        }
        choice.note(Verdict::Hit, hit, true);
        assert_eq!(choice.rule(Rule::Lru), RULES[1], "20.5 of 20");
        assert_eq!(choice.rule(Rule::Bimodal), RULES[1]);
        assert!((choice.sums[4] + 10.5).abs() < 1e-6 && choice.sums[0] == 0.0);
    }

    /// The budget of 50 is spent by 50 misses.
    #[test]
    fn without_a_budget_lru_runs_whatever_leads() {
        let mut choice = choice();
        let lru_hits = [Verdict::Hit, Verdict::Bypass, Verdict::Hit, ADMIT, ADMIT];
        for misses in 1..=50 {
            choice.note(ADMIT, lru_hits, false);
            choice.sums = [0.0, 100.0, 0.0, 0.0, 0.0];
            let rule = if misses < 50 { RULES[1] } else { Rule::Lru };
            assert_eq!(choice.rule(RULES[1]), rule, "{misses} misses");
        }
    }
}
