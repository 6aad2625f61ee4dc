//! Life tables: how long blocks of a class wait for their next use, and what their room is worth.
//!
//! For: `rc-x`. A *wait* begins with an access to a block and ends with its next one, or when the
//! block is forgotten. Must never know: which block waits, or where. Ours; after Kaplan and Meier
//! (JASA'58) for hazards from waits cut short, and Gittins (JRSS B'79) for the index. Units: ages
//! in accesses; hazards from 0 to 1; savings in requests per use; worths in requests saved per
//! block and access.
//!
//! Few waits of a class say little, so that a class believes its parent as if it were `trust` waits
//! of its own: a class its kind (without how often the block was used), a kind its family (interval
//! and operation), a family all blocks, and all blocks nothing: where no block was ever used again,
//! every hazard is 0. All sums are taken in a fixed order in `f32`.

use super::class::{CLASSES, FAMILIES, KINDS};

/// Number of ages: one below 8 accesses, then two per doubling.
pub const AGES: usize = 40;
/// One value for each age.
pub type Ages<T> = [T; AGES];

/// Waits that count as much as the parent of a class.
const TRUST: f32 = 64.0;
/// Waits that count as much as having seen none end well, for all blocks together.
const DOUBT: f32 = 1.0;
/// What a wait counts after one more learning.
const FADE: f32 = 0.95;

/// The index of an age.
#[inline(always)]
pub fn index_of(age: u32) -> usize {
    let age = age.max(4);
    let octave = 31 - age.leading_zeros();
    let half = (age >> (octave - 1)) & 1;
    ((2 * octave + half) as usize).saturating_sub(5).min(AGES - 1)
}

/// Accesses between the ages of an index.
fn width(index: usize) -> f32 {
    if index == 0 { 8.0 } else { (4_u32 << ((index - 1) / 2)) as f32 }
}

/// Waits of one class, fading.
#[derive(Clone, Copy, Debug)]
struct WaitCounts {
    /// Ended by a use, by age.
    used: Ages<f32>,
    /// Ended otherwise, or not yet.
    cut: Ages<f32>,
    /// What the uses that ended them saved.
    saved: f32,
}

const NONE: WaitCounts = WaitCounts { used: [0.0; AGES], cut: [0.0; AGES], saved: 0.0 };

/// What the waits of a class forecast.
#[derive(Clone, Copy, Debug)]
struct UseForecast {
    /// The chance of a use at each age of those that reach it.
    hazards: Ages<f32>,
    /// What a use saves.
    saving: f32,
}

/// What was learned of one class.
#[derive(Clone, Copy, Debug)]
struct Worth {
    /// By the age that the block has reached.
    stays: Ages<f32>,
    /// At its access, after the price of writing it.
    enters: f32,
}

const WORTHLESS: Worth = Worth { stays: [0.0; AGES], enters: 0.0 };

/// The waits of all classes and what they forecast.
#[derive(Clone, Debug)]
pub struct LifeTables {
    /// Requests that a write into the cache costs.
    price: f32,
    waits: Vec<WaitCounts>,
    /// Of classes, then of kinds.
    worths: Vec<Worth>,
    /// Where each class finds its worth: its own, or that of its kind if it has no waits.
    found_at: Vec<u16>,
}

impl LifeTables {
    /// Tables that have seen nothing.
    pub fn new(price: f32) -> LifeTables {
        LifeTables {
            price,
            waits: vec![NONE; CLASSES],
            worths: vec![WORTHLESS; CLASSES + KINDS],
            found_at: (0..CLASSES as u16).collect(),
        }
    }

    /// A wait has ended with a use that saved so much, or would have.
    #[inline(always)]
    pub fn used(&mut self, class: u16, age: u32, saving: f32) {
        let waits = &mut self.waits[usize::from(class)];
        waits.used[index_of(age)] += 1.0;
        waits.saved += saving;
    }

    /// A block was forgotten while it waited.
    #[inline(always)]
    pub fn forgotten(&mut self, class: u16, age: u32) {
        self.waits[usize::from(class)].cut[index_of(age)] += 1.0;
    }

    /// What room is worth for a block of the class which has waited so long.
    #[inline(always)]
    pub fn stays(&self, class: u16, age: u32) -> f32 {
        self.worths[usize::from(self.found_at[usize::from(class)])].stays[index_of(age)]
    }

    /// The same for a block that would be written now; 0 if it is not worth its write.
    #[inline(always)]
    pub fn enters(&self, class: u16) -> f32 {
        self.worths[usize::from(self.found_at[usize::from(class)])].enters
    }

    /// Learns from all waits so far; `waiting` holds how many are under way, by class and then by
    /// index of age.
    pub fn learn(&mut self, waiting: &[u32]) {
        let mut waits = self.waits.clone();
        for (waits, counts) in waits.iter_mut().zip(waiting.chunks_exact(AGES)) {
            for (cut, count) in waits.cut.iter_mut().zip(counts) {
                *cut = plus_ones(*cut, *count);
            }
        }
        let mut kinds = vec![NONE; KINDS];
        let mut families = vec![NONE; FAMILIES];
        let mut all = NONE;
        for (class, of) in waits.iter().enumerate() {
            kinds[class % KINDS].add(of);
            families[class % FAMILIES].add(of);
            all.add(of);
        }
        let all = all.forecast(&UseForecast { hazards: [0.0; AGES], saving: 0.0 }, DOUBT);
        let families: Vec<_> = families.iter().map(|of| of.forecast(&all, TRUST)).collect();
        let kinds = kinds.iter().enumerate();
        let kinds: Vec<_> =
            kinds.map(|(kind, of)| of.forecast(&families[kind % FAMILIES], TRUST)).collect();
        for (class, of) in waits.iter().enumerate() {
            let own = of.used.iter().chain(&of.cut).any(|count| *count > 0.0);
            let kind = class % KINDS;
            self.found_at[class] = if own { class } else { CLASSES + kind } as u16;
            if own {
                self.worths[class] = worth(&of.forecast(&kinds[kind], TRUST), self.price);
            }
        }
        for (kind, forecast) in kinds.iter().enumerate() {
            self.worths[CLASSES + kind] = worth(forecast, self.price);
        }
        for of in &mut self.waits {
            of.saved *= FADE;
            of.used.iter_mut().chain(&mut of.cut).for_each(|count| *count *= FADE);
        }
    }
}

impl WaitCounts {
    fn add(&mut self, other: &WaitCounts) {
        for age in 0..AGES {
            self.used[age] += other.used[age];
            self.cut[age] += other.cut[age];
        }
        self.saved += other.saved;
    }

    /// What they teach where `prior` is believed as if it came from `trust` waits.
    fn forecast(&self, prior: &UseForecast, trust: f32) -> UseForecast {
        let uses = self.used.iter().sum::<f32>() + trust;
        let saving = (self.saved + trust * prior.saving) / uses;
        UseForecast { hazards: self.hazards(&prior.hazards, trust), saving }
    }

    /// The chance of a use at each age of those that reach it, where `prior` is believed as if it
    /// came from `trust` waits. Waits cut short at an age have seen half of it.
    fn hazards(&self, prior: &Ages<f32>, trust: f32) -> Ages<f32> {
        let mut hazards = [0.0; AGES];
        let mut reach = 0.0;
        for age in (0..AGES).rev() {
            reach += self.used[age] + self.cut[age];
            let exposed = (reach - 0.5 * self.cut[age]).max(0.0);
            let of = exposed + trust;
            hazards[age] = if of > 0.0 { (self.used[age] + trust * prior[age]) / of } else { 0.0 };
        }
        hazards
    }
}

/// A sum (at least 0) after so many additions of 1, each rounded. Between two powers of two up to
/// 2^23 none is, so that they are one addition.
fn plus_ones(mut sum: f32, mut count: u32) -> f32 {
    while count > 0 {
        let above = f32::from_bits((sum.to_bits() & 0x7F80_0000) + 0x0080_0000);
        let exact = if (1.0..8_388_608.0).contains(&sum) { (above - sum) as u32 } else { 0 };
        let step = exact.clamp(1, count);
        sum += step as f32;
        count -= step;
    }
    sum
}

/// For each age the best rate of savings over all times for which the block might be kept from
/// there on; at the first age also less the price of writing it. All ages at which it might begin
/// go side by side.
fn worth(forecast: &UseForecast, price: f32) -> Worth {
    let UseForecast { hazards, saving } = forecast;
    let mut found = WORTHLESS;
    let (mut waits, mut space) = ([1.0_f32; AGES], [0.0_f32; AGES]);
    for (age, hazard) in hazards.iter().enumerate() {
        let width = width(age);
        let kept = waits[..=age].iter_mut().zip(&mut space[..=age]);
        for ((waits, space), stays) in kept.zip(&mut found.stays[..=age]) {
            let uses = *waits * hazard;
            *space += width * (*waits - 0.5 * uses);
            *waits -= uses;
            *stays = stays.max(saving * (1.0 - *waits) / *space);
        }
        found.enters = found.enters.max((saving * (1.0 - waits[0]) - price) / space[0]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_by_hand() {
        assert_eq!([0, 3, 4, 7, 8, 11, 12, 15, 16].map(index_of), [0, 0, 0, 0, 1, 1, 2, 2, 3]);
        assert_eq!([u32::MAX, 1 << 22].map(index_of), [AGES - 1; 2]);
        let first = |index: usize| (0..index).map(width).sum::<f32>() as u32;
        for index in 1..AGES {
            let ages = [first(index) - 1, first(index)];
            assert_eq!(ages.map(index_of), [index - 1, index]);
        }
    }

    /// Two waits ended with a use before age 8, two were cut short at ages 8 to 11.
    #[test]
    fn hazards_and_worths_by_hand() {
        let mut waits = NONE;
        waits.used[0] = 2.0;
        waits.cut[1] = 2.0;
        // Of four waits that came there two ended at the first age; of two half seen, none.
        let hazards = waits.hazards(&[0.0; AGES], 0.0);
        assert_eq!(hazards[..3], [0.5, 0.0, 0.0]);
        // A parent of 4 waits that says 1/4 everywhere: (2 + 1) / (4 + 4), then 1 / (1 + 4).
        assert_eq!(waits.hazards(&[0.25; AGES], 4.0)[..3], [0.375, 0.2, 0.25]);
        // Half a use for 8 accesses, the last four of which (on average) half are saved: 0.5 / 6.
        let found = worth(&UseForecast { hazards, saving: 1.0 }, 0.1);
        assert_eq!(found.stays[..2], [0.5 / 6.0, 0.0]);
        assert!((found.enters - 0.4 / 6.0).abs() < 1e-7);
        assert_eq!(worth(&UseForecast { hazards, saving: 1.0 }, 0.5).enters, 0.0);
        // Of requests of two blocks half as much is saved, and the write costs as much.
        let found = worth(&UseForecast { hazards, saving: 0.5 }, 0.1);
        assert_eq!(found.stays[0], 0.25 / 6.0);
        assert!((found.enters - 0.15 / 6.0).abs() < 1e-7);
    }

    #[test]
    fn ones_add_up_as_in_single_steps() {
        for start in [0.0, 0.3, 0.95, 1.0, 1.7, 63.05, 1_023.999_9, 8_388_600.0, 8_388_607.5] {
            let mut sum = start;
            for count in 0..3_000 {
                assert_eq!(plus_ones(start, count), sum, "{start} and {count} ones");
                sum += 1.0;
            }
        }
        let in_steps = (0..500_000).fold(0.1_f32, |sum, _| sum + 1.0);
        assert_eq!(plus_ones(0.1, 500_000), in_steps);
    }

    /// A use that is sure to come at ages 12 to 15 makes room worth more the nearer it is.
    #[test]
    fn what_is_about_to_be_used_is_worth_more() {
        let mut hazards = [0.0; AGES];
        hazards[2] = 1.0;
        let found = worth(&UseForecast { hazards, saving: 1.0 }, 0.0);
        assert_eq!(found.stays[..4], [1.0 / 14.0, 1.0 / 6.0, 1.0 / 2.0, 0.0]);
        assert_eq!(found.enters, 1.0 / 14.0);
    }

    /// Three uses that saved a quarter each and a parent that says one half, believed as two uses.
    #[test]
    fn savings_by_hand() {
        let mut waits = NONE;
        (waits.used[3], waits.cut[9], waits.saved) = (3.0, 50.0, 0.75);
        let parent = UseForecast { hazards: [0.0; AGES], saving: 0.5 };
        assert_eq!(waits.forecast(&parent, 2.0).saving, 1.75 / 5.0);
    }

    #[test]
    fn a_class_without_waits_is_as_its_kind() {
        let mut tables = LifeTables::new(0.0);
        let (class, sibling, stranger) = (5, 5 + KINDS as u16, 6);
        (0..1000).for_each(|_| tables.used(class, 9, 1.0));
        tables.learn(&[]);
        assert!(tables.stays(sibling, 9) > 0.05, "of the same kind");
        assert!(tables.stays(stranger, 9) > 0.05, "all that is known says so");
        assert!(tables.stays(class, 9) >= tables.stays(sibling, 9));
        assert_eq!(tables.stays(class, 12), 0.0);
    }
}
