//! Death rate: cost-benefit with the age replaced by what ages tell.
//!
//! For: victims under any separation. Must never know: how pages came to their streams. Design of
//! Cachewright. Cost-benefit takes an age t for how long the valid pages left will go on living.
//! Here the rate h at which they are overwritten is learned per stream and age since sealing. It is
//! dead pages over pages that could have died, counted between two looks at a superblock. With v
//! the share of valid pages the worth is (1 - v + v ln v) / (v h).
//!
//! Why: pages that die at a rate h and are cleaned when a share v is left take T = -ln v / h. They
//! cost v moves and T - (1-v)/h of garbage and time, and 1-v of them need no more. With garbage at
//! a price p, the cost per page that dies is (v + p (T - (1-v)/h)) / (1-v). It is least where p is
//! v h / (1 - v + v ln v). So that is what all victims have in common. Next to v = 1 the worth is
//! (1-v)^2 / 2h: that of cost-benefit, (1-v) t, for then t is (1-v)/h. Units: pages; ages on the
//! clock of host page writes, in powers of two. Memory: 24 bytes per superblock and 32 KiB.

use super::{Reclaim, Registered, Round, best};
use crate::geometry::STREAM_LIMIT;
use crate::{Block, Entry, Geometry};
use cachewright_types::{Seed, declare};

/// Bins of ages.
const AGES: usize = 32;
/// Victims from one look at all superblocks to the next; victims are looked at themselves.
const LOOK_EVERY: u64 = 8;
/// Deaths by which a rate leans on 1 / age, the rate of cost-benefit.
const PRIOR: f64 = 20.0;

declare! {
    /// The numbers of death-rate.
    pub struct DeathRateSettings {
        /// how much what was seen counts for, after a hundred more victims
        keep: f64 = 0.99, "ratio", 0.0 ..= 1.0;
    }
}

/// A superblock when it was last looked at.
#[derive(Clone, Copy, Debug)]
struct Look {
    clock: u64,
    invalid: u32,
    /// Which life of the superblock it was; none while it was not sealed.
    number: Option<u64>,
}

/// Pages that died, and page writes of the host times pages that could have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Deaths {
    pages: f64,
    risk: f64,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct DeathRate {
    settings: DeathRateSettings,
    looks: Vec<Look>,
    deaths: Vec<[Deaths; AGES]>,
    /// The worth at a rate of 1 per number of invalid pages.
    worth: Vec<f64>,
    victims: u64,
}

impl Registered for DeathRate {
    type Settings = DeathRateSettings;
    const ENTRY: Entry = Entry {
        name: "death-rate",
        doc: "space won against pages moved and how fast they die, learned per stream and age",
        source: "design of Cachewright; cost-benefit of Rosenblum and Ousterhout, SOSP'91",
        needs: &[],
    };

    fn new(_: &Geometry, settings: &DeathRateSettings, _: Seed) -> Self {
        DeathRate {
            settings: settings.clone(),
            looks: Vec::new(),
            deaths: vec![[Deaths::default(); AGES]; STREAM_LIMIT as usize],
            worth: Vec::new(),
            victims: 0,
        }
    }
}

/// The bin of an age.
#[inline(always)]
fn bin(age: u64) -> usize {
    (age.max(1).ilog2() as usize).min(AGES - 1)
}

/// The natural logarithm of a number above 0, by additions, multiplications and divisions alone:
/// the same bits on every machine. With x = m 2^e it is e ln 2 + 2 artanh((m-1)/(m+1)).
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..17).rev().fold(0.0, |sum, k| sum * z * z + 1.0 / f64::from(2 * k + 1));
    f64::from(exponent) * core::f64::consts::LN_2 + 2.0 * z * series
}

impl DeathRate {
    /// Looks at every superblock.
    fn look(&mut self, round: &Round<'_>) {
        let never = Look { clock: 0, invalid: 0, number: None };
        self.looks.resize(round.blocks.len() as usize, never);
        for block in round.blocks.iter() {
            self.look_at(&block, round.clock);
        }
    }

    /// Counts what happened to a superblock since the last look at it.
    fn look_at(&mut self, block: &Block, now: u64) {
        let Some(look) = self.looks.get_mut(block.id as usize) else { return };
        if !block.sealed {
            look.number = None;
            return;
        }
        if look.number == Some(block.number)
            && let Some(deaths) = self.deaths.get_mut(block.stream.index())
        {
            let middle = look.clock + (now - look.clock) / 2;
            let deaths = &mut deaths[bin(middle - block.sealed_at.min(middle))];
            let could = f64::from(block.pages) - 0.5 * f64::from(look.invalid + block.invalid);
            deaths.pages += f64::from(block.invalid - look.invalid);
            deaths.risk += could * (now - look.clock) as f64;
        }
        *look = Look { clock: now, invalid: block.invalid, number: Some(block.number) };
    }

    /// Deaths per valid page and page write of the host.
    #[inline(always)]
    fn rate(&self, block: &Block, clock: u64) -> f64 {
        let age = (clock - block.sealed_at).max(1);
        let deaths = self.deaths.get(block.stream.index());
        let Deaths { pages, risk } = deaths.map_or(Deaths::default(), |bins| bins[bin(age)]);
        (pages + PRIOR) / (risk + PRIOR * age as f64)
    }
}

impl Reclaim for DeathRate {
    fn prepare(&mut self, data_pages: u32) {
        let worth = |invalid: u32| {
            let valid = f64::from(data_pages - invalid) / f64::from(data_pages);
            if valid == 0.0 { f64::INFINITY } else { (1.0 - valid) / valid + ln(valid) }
        };
        // Rounding leaves a hair below 0 where nothing is invalid.
        self.worth = (0..=data_pages).map(|invalid| worth(invalid).max(0.0)).collect();
    }

    fn held_bytes(&self) -> usize {
        let learned = size_of_val(self.looks.as_slice()) + size_of_val(self.deaths.as_slice());
        learned + size_of_val(self.worth.as_slice())
    }

    #[inline(always)]
    fn score(&self, block: &Block, round: &Round<'_>) -> f64 {
        let worth = self.worth.get(block.invalid as usize).copied().unwrap_or(0.0);
        worth / self.rate(block, round.clock)
    }

    fn choose(&mut self, round: &Round<'_>) -> Option<u32> {
        if self.victims.is_multiple_of(LOOK_EVERY) {
            self.look(round);
        }
        self.victims += 1;
        if self.victims.is_multiple_of(100) {
            for deaths in self.deaths.as_flattened_mut() {
                deaths.pages *= self.settings.keep;
                deaths.risk *= self.settings.keep;
            }
        }
        let victim = best(self, round);
        if let Some(victim) = victim {
            self.look_at(&round.blocks.get(victim), round.clock);
        }
        victim
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Stream, Superblocks};

    fn policy() -> DeathRate {
        let geometry = Geometry::with_over_provisioning(1000, 100, 0.3, 2);
        DeathRate::new(&geometry, &DeathRateSettings::default(), Seed(0))
    }

    /// Without anything seen: 100 pages, 20 invalid, sealed 16 ago: the rate is that of the age,
    /// 1/16, the worth (1/4 + ln 0.8) 16 = 0.4297. Then 60 deaths in a risk of 320 are seen at that
    /// age: the rate is (60 + 20) / (320 + 20 x 16) = 1/8 and the worth half as much.
    #[test]
    fn the_worth_by_hand() {
        let blocks = Superblocks::new(100, crate::CleaningOrder::None);
        let round = Round::over(&blocks, 116);
        let block = Block { pages: 100, invalid: 20, sealed_at: 100, ..Block::default() };
        let mut policy = policy();
        policy.prepare(100);
        let worth = |policy: &DeathRate, block: Block| policy.score(&block, &round);
        assert!((worth(&policy, block) - 16.0 * (0.25 + 0.8_f64.ln())).abs() < 1e-12);
        policy.deaths[0][4] = Deaths { pages: 60.0, risk: 320.0 };
        assert!((worth(&policy, block) - 8.0 * (0.25 + 0.8_f64.ln())).abs() < 1e-12);
        assert_eq!(worth(&policy, Block { invalid: 100, ..block }), f64::INFINITY);
        assert_eq!(worth(&policy, Block { invalid: 0, ..block }), 0.0);
        assert!(policy.worth.is_sorted());
    }

    #[test]
    fn the_logarithm_is_one() {
        for x in [1e-9, 0.001, 0.3, 0.5, 0.999, 1.0, 7.0] {
            assert!((ln(x) - x.ln()).abs() < 1e-13 * x.ln().abs().max(1.0), "{x}");
        }
    }

    /// A superblock of 10 pages on stream 1, sealed at 100 with 1 invalid, has 3 at 108: 2 died of
    /// 8 on average, in 8 page writes, at the middle age 4. Erased and filled anew it starts over.
    #[test]
    fn deaths_are_counted_between_looks() {
        let mut blocks = Superblocks::new(10, crate::CleaningOrder::None);
        blocks.grow();
        blocks.open(0, Stream(1), 90);
        blocks.invalidate(0);
        blocks.seal(0, 100);
        let mut policy = policy();
        policy.look(&Round::over(&blocks, 100));
        blocks.invalidate(0);
        blocks.invalidate(0);
        policy.look(&Round::over(&blocks, 108));
        assert_eq!(policy.deaths[1][2], Deaths { pages: 2.0, risk: 64.0 });
        blocks.withdraw(0);
        blocks.erase(0);
        blocks.open(0, Stream(1), 108);
        blocks.seal(0, 110);
        policy.look(&Round::over(&blocks, 112));
        let risk: f64 = policy.deaths.as_flattened().iter().map(|deaths| deaths.risk).sum();
        assert_eq!(risk, 64.0);
    }
}
