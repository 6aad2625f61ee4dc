//! Which rule runs: the best of late, within what may be lost beside `lru`.
//!
//! For: `guarded`. Unit: hits and misses of sampled blocks. Hits of each miniature, less its writes
//! to flash at their price, are summed with decay. Another rule follows when its sum is ahead by a
//! margin. The guard is an account of misses: each miss of the miniature `lru` pays in, with an
//! allowance, and each miss of the cache on the same blocks takes out. While it is empty `lru`
//! runs; it may be left when half of the first deposit is there again.

use super::shelf::{RULES, Rule};
use crate::Verdict;

/// The first deposit, and the most that the account can hold, in capacities of a miniature.
const DEPOSIT: f64 = 0.5;
const MOST: f64 = 4.0;
/// The least margin, in hits: in a small cache a few hits say nothing.
const LEAST_MARGIN: f64 = 16.0;

/// The sums, the account, and what they are measured by.
#[derive(Clone, Debug)]
pub struct Choice {
    sums: [f64; RULES.len()],
    /// What a sum keeps from one access to the next.
    kept: f64,
    /// Hits that another rule must be ahead.
    margin: f64,
    /// Hits that a block written to flash costs.
    price: f64,
    /// Misses that the cache may have more than the miniature `lru`.
    account: f64,
    deposit: f64,
    most: f64,
    /// The share of the misses of `lru` by which the cache may have more.
    allowance: f64,
    /// What the settings say, in capacities.
    horizon: f64,
    margin_share: f64,
}

impl Choice {
    /// Nothing is known. `horizon` is in accesses and `margin` in hits, as multiples of the
    /// capacity; `price` is in hits per block written.
    pub fn new(horizon: f64, margin: f64, price: f64, allowance: f64) -> Choice {
        Choice {
            sums: [0.0; RULES.len()],
            kept: 0.0,
            margin: 0.0,
            price,
            account: f64::NAN,
            deposit: 0.0,
            most: 0.0,
            allowance,
            horizon,
            margin_share: margin,
        }
    }

    /// Takes the capacity of the miniatures; the account scales with it.
    pub fn scale(&mut self, capacity: u32) {
        let capacity = f64::from(capacity);
        let deposit = DEPOSIT * capacity;
        // The first capacity brings the first deposit.
        let filled = if self.deposit > 0.0 { self.account / self.deposit } else { 1.0 };
        self.account = filled * deposit;
        (self.deposit, self.most) = (deposit, MOST * capacity);
        self.kept = 1.0 - 1.0 / (self.horizon * capacity).max(1.0);
        self.margin = (self.margin_share * capacity).max(LEAST_MARGIN);
    }

    /// Notes what the cache and each miniature decided about a sampled block.
    pub fn note(&mut self, cache: Verdict, miniatures: [Verdict; RULES.len()], write: bool) {
        for (sum, verdict) in self.sums.iter_mut().zip(miniatures) {
            let worth = match verdict {
                Verdict::Hit if write => 1.0 - self.price,
                Verdict::Hit => 1.0,
                Verdict::Admit { .. } => -self.price,
                Verdict::Bypass => 0.0,
            };
            *sum = *sum * self.kept + worth;
        }
        let paid = f64::from(miniatures[0] != Verdict::Hit) * (1.0 + self.allowance);
        let spent = f64::from(cache != Verdict::Hit);
        self.account = (self.account + paid - spent).min(self.most);
    }

    /// The rule that should run in place of `running`, or `running`.
    pub fn rule(&self, running: Rule) -> Rule {
        let least = if running == Rule::Lru { self.deposit / 2.0 } else { 0.0 };
        if self.account <= least {
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

    /// Capacity 100: a deposit of 50, a margin of 20, and sums that hardly decay.
    fn choice() -> Choice {
        let mut choice = Choice::new(1e9, 0.2, 0.5, 0.02);
        choice.scale(100);
        choice
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

    /// The deposit of 50 pays for 50 misses; then `lru` runs until 25 are there again, which takes
    /// 1,250 misses of `lru` at 0.02 each.
    #[test]
    fn an_empty_account_falls_back_to_lru_until_half_the_deposit_is_back() {
        let mut choice = choice();
        let lru_hits = [Verdict::Hit, Verdict::Bypass, Verdict::Hit, ADMIT, ADMIT];
        let second_leads = [0.0, 100.0, 0.0, 0.0, 0.0];
        let after = |choice: &mut Choice, miniatures, running| {
            choice.note(ADMIT, miniatures, false);
            choice.sums = second_leads;
            choice.rule(running)
        };
        for _ in 0..49 {
            assert_eq!(after(&mut choice, lru_hits, RULES[1]), RULES[1]);
        }
        assert_eq!(after(&mut choice, lru_hits, RULES[1]), Rule::Lru);
        for _ in 0..1_249 {
            assert_eq!(after(&mut choice, [ADMIT; RULES.len()], Rule::Lru), Rule::Lru);
        }
        let again = (0..3).any(|_| after(&mut choice, [ADMIT; RULES.len()], Rule::Lru) == RULES[1]);
        assert!(again, "the account has {}", choice.account);
    }
}
