//! Where requests go.
//!
//! Units: bytes. A region is cut into slots of `align` bytes; patterns draw slots. A request that
//! would end beyond its region is moved back into it.

use cachewright_types::seed::mix;
use cachewright_types::{Rng, Seed};

/// What is to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PatternSpec {
    Region(AddressRegion, AddressShape),
    /// Alternatives, drawn by weight.
    Mix(Vec<PartSpec>),
    Phases(PhasesSpec),
}

/// One of several alternatives.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PartSpec {
    pub(super) weight: u64,
    /// Share of reads among its requests, in place of the tenant's.
    pub(super) read_share: Option<f64>,
    pub(super) pattern: PatternSpec,
}

/// Patterns one after another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PhasesSpec {
    pub(super) phases: Vec<PhaseSpec>,
    /// Whether the first phase follows the last, which otherwise stays.
    pub(super) repeat: bool,
    /// Requests by which the first phase is shorter the first time.
    pub(super) begun: u64,
}

/// One of several phases.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PhaseSpec {
    pub(super) length: Length,
    /// Share of reads among its requests, in place of the tenant's.
    pub(super) read_share: Option<f64>,
    pub(super) pattern: PatternSpec,
}

/// How long a phase lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Length {
    Requests(u64),
    Nanos(u64),
}

/// A part of the address space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AddressRegion {
    pub(super) offset: u64,
    pub(super) span: u64,
    pub(super) align: u64,
    /// Whether slots stand in a random order.
    pub(super) scattered: bool,
}

/// How slots of a region are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AddressShape {
    Uniform,
    Zipf {
        alpha: f64,
    },
    /// A share of the requests goes to a share of the slots.
    HotCold {
        hot_space: f64,
        hot_access: f64,
    },
    /// Each request begins where the one before ended; after `run` bytes at a random slot.
    Sequential {
        run: Option<u64>,
    },
    /// All slots in order, over and over.
    Loop,
}

/// Draws addresses one after another.
pub(super) enum AddressStream {
    Region(Cursor),
    Mix { parts: Vec<Part>, weight: u64, rng: Rng },
    Phases(Phases),
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) offset_bytes: u64,
    /// Share of reads of the innermost part or phase that has one.
    pub(super) read_share: Option<f64>,
}

impl Place {
    /// The place, read as often as this part or phase says unless one within it says otherwise.
    fn within(self, read_share: Option<f64>) -> Place {
        Place { read_share: self.read_share.or(read_share), ..self }
    }
}

/// An alternative of a mix.
pub(super) struct Part {
    weight: u64,
    read_share: Option<f64>,
    addresses: AddressStream,
}

/// A phase among others.
struct Phase {
    length: Length,
    read_share: Option<f64>,
    addresses: AddressStream,
}

/// Draws within a region.
pub(super) struct Cursor {
    region: AddressRegion,
    slots: u64,
    shape: AddressShape,
    zipf: Zipf,
    order: Option<Permutation>,
    rng: Rng,
    /// Next byte of a sequential run, or next slot of a loop.
    next: u64,
    /// Bytes left of the run.
    left: u64,
}

/// Draws from the phase that it is time for.
pub(super) struct Phases {
    phases: Vec<Phase>,
    repeat: bool,
    current: usize,
    /// Requests drawn in this phase.
    drawn: u64,
    /// When this phase began.
    since_ns: u64,
}

impl AddressStream {
    pub(super) fn new(spec: &PatternSpec, seed: Seed) -> AddressStream {
        let part = |index: usize, spec: &PatternSpec| {
            AddressStream::new(spec, seed.derive(&index.to_string()))
        };
        match spec {
            PatternSpec::Region(region, shape) => {
                AddressStream::Region(Cursor::new(*region, *shape, seed))
            }
            PatternSpec::Mix(specs) => AddressStream::Mix {
                weight: specs.iter().map(|spec| spec.weight).sum(),
                parts: specs
                    .iter()
                    .enumerate()
                    .map(|(index, spec)| Part {
                        weight: spec.weight,
                        read_share: spec.read_share,
                        addresses: part(index, &spec.pattern),
                    })
                    .collect(),
                rng: seed.derive("mix").rng(),
            },
            PatternSpec::Phases(spec) => AddressStream::Phases(Phases {
                phases: spec
                    .phases
                    .iter()
                    .enumerate()
                    .map(|(index, phase)| Phase {
                        length: phase.length,
                        read_share: phase.read_share,
                        addresses: part(index, &phase.pattern),
                    })
                    .collect(),
                repeat: spec.repeat,
                current: 0,
                drawn: spec.begun,
                since_ns: 0,
            }),
        }
    }

    /// Where the next request goes, of `length` bytes, `now_ns` after the tenant's start.
    pub(super) fn next(&mut self, length: u64, now_ns: u64) -> Place {
        match self {
            AddressStream::Region(cursor) => {
                Place { offset_bytes: cursor.next(length), read_share: None }
            }
            AddressStream::Mix { parts, weight, rng } => {
                let drawn = rng.below(*weight);
                let mut below = 0;
                let chosen = parts.iter_mut().find(|part| {
                    below += part.weight;
                    drawn < below
                });
                let nowhere = Place { offset_bytes: 0, read_share: None };
                chosen.map_or(nowhere, |part| {
                    part.addresses.next(length, now_ns).within(part.read_share)
                })
            }
            AddressStream::Phases(phases) => phases.next(length, now_ns),
        }
    }
}

impl Phases {
    fn next(&mut self, length: u64, now_ns: u64) -> Place {
        // A pause may outlast several phases; whole rounds of timed phases are passed at once.
        let round_ns: u64 = self.phases.iter().fold(0, |sum: u64, phase| match phase.length {
            Length::Nanos(ns) => sum.saturating_add(ns),
            Length::Requests(_) => sum,
        });
        let timed = self.phases.iter().all(|phase| matches!(phase.length, Length::Nanos(_)));
        if timed && self.repeat {
            self.since_ns += now_ns.saturating_sub(self.since_ns) / round_ns * round_ns;
        }
        for _ in 0..self.phases.len() {
            let last = self.current + 1 == self.phases.len();
            let over = match self.phases[self.current].length {
                Length::Requests(count) => self.drawn >= count,
                Length::Nanos(ns) => now_ns.saturating_sub(self.since_ns) >= ns,
            };
            if !over || (last && !self.repeat) {
                break;
            }
            self.since_ns = match self.phases[self.current].length {
                Length::Requests(_) => now_ns,
                Length::Nanos(ns) => self.since_ns.saturating_add(ns),
            };
            self.current = if last { 0 } else { self.current + 1 };
            self.drawn = 0;
        }
        self.drawn += 1;
        let phase = &mut self.phases[self.current];
        phase.addresses.next(length, now_ns).within(phase.read_share)
    }
}

impl Cursor {
    fn new(region: AddressRegion, shape: AddressShape, seed: Seed) -> Cursor {
        let slots = (region.span / region.align).max(1);
        let alpha = if let AddressShape::Zipf { alpha } = shape { alpha } else { 0.0 };
        let order = Permutation::new(slots, seed.derive("order"));
        Cursor {
            region,
            slots,
            shape,
            zipf: Zipf::new(slots, alpha),
            order: region.scattered.then_some(order),
            rng: seed.derive("draw").rng(),
            next: 0,
            left: match shape {
                AddressShape::Sequential { run: Some(_) } => 0,
                _ => u64::MAX,
            },
        }
    }

    fn next(&mut self, length: u64) -> u64 {
        let slot = match self.shape {
            AddressShape::Uniform => self.rng.below(self.slots),
            AddressShape::Zipf { .. } => self.zipf.sample(&mut self.rng) - 1,
            AddressShape::HotCold { hot_space, hot_access } => {
                self.hot_or_cold(hot_space, hot_access)
            }
            AddressShape::Loop => {
                let slot = self.next;
                self.next = (slot + 1) % self.slots;
                slot
            }
            AddressShape::Sequential { run } => return self.sequential(run, length),
        };
        let slot = self.order.map_or(slot, |order| order.apply(slot));
        self.place(slot * self.region.align, length)
    }

    fn hot_or_cold(&mut self, hot_space: f64, hot_access: f64) -> u64 {
        let hot = ((self.slots as f64 * hot_space).round() as u64).clamp(1, self.slots);
        let cold = self.slots - hot;
        if cold == 0 || self.rng.unit() < hot_access {
            self.rng.below(hot)
        } else {
            hot + self.rng.below(cold)
        }
    }

    fn sequential(&mut self, run: Option<u64>, length: u64) -> u64 {
        if self.left == 0 {
            self.next = self.rng.below(self.slots) * self.region.align;
            self.left = run.unwrap_or(u64::MAX);
        }
        if length > self.region.span.saturating_sub(self.next) {
            self.next = 0;
        }
        let start = self.next;
        self.next = start.saturating_add(length);
        if run.is_some() {
            self.left = self.left.saturating_sub(length);
        }
        self.place(start, length)
    }

    /// The address of byte `start` of the region, moved back so that the request ends within it.
    fn place(&self, start: u64, length: u64) -> u64 {
        let last = self.region.span.saturating_sub(length);
        let last = last - last % self.region.align;
        self.region.offset + if start + length > self.region.span { last.min(start) } else { start }
    }
}

/// A fixed random order of `0..n` that needs no memory: a Feistel network of four rounds over the
/// next power of four, walked until the value falls below `n` (fewer than four steps on average).
/// Source: J. Black and P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002, cycle
/// walking.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    len: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// An order of `0..len`, the same for the same seed.
    pub(super) fn new(len: u64, seed: Seed) -> Permutation {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        let mut rng = seed.rng();
        Permutation {
            len: len.max(1),
            half_bits: bits.div_ceil(2).max(1),
            keys: [(); 4].map(|()| rng.next_u64()),
        }
    }

    /// What stands at `index`, which must be below the length.
    pub(super) fn apply(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        let mask = (1_u64 << self.half_bits) - 1;
        let mut value = index;
        loop {
            let (mut left, mut right) = (value >> self.half_bits, value & mask);
            for key in self.keys {
                (left, right) = (right, left ^ (mix(right ^ key) & mask));
            }
            value = left << self.half_bits | right;
            if value < self.len {
                return value;
            }
        }
    }
}

/// Draws rank `k` of `1..=n` with probability proportional to `k^-alpha`, in constant time and
/// memory; exact up to the rounding of `f64`. Source: W. Hörmann and G. Derflinger,
/// "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS
/// 6(3), 1996, section 4.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    ranks: f64,
    alpha: f64,
    /// The area below the density's hat, from the first rank's part ...
    area_low: f64,
    /// ... to the last rank's end.
    area_high: f64,
    /// Left of a rank by no more than this, acceptance is certain.
    certain: f64,
}

/// ln(1 + x) / x, also near 0.
fn ln_1p_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

/// (e^x - 1) / x, also near 0.
fn exp_m1_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

impl Zipf {
    /// Ranks `1..=ranks` (at least 1) with exponent `alpha` of at least 0; 0 is uniform.
    pub fn new(ranks: u64, alpha: f64) -> Zipf {
        let mut zipf =
            Zipf { ranks: ranks.max(1) as f64, alpha, area_low: 0.0, area_high: 0.0, certain: 0.0 };
        zipf.area_low = zipf.area(1.5) - 1.0;
        zipf.area_high = zipf.area(zipf.ranks + 0.5);
        zipf.certain = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.density(2.0));
        zipf
    }

    /// The hat: x^-alpha.
    fn density(&self, x: f64) -> f64 {
        (-self.alpha * x.ln()).exp()
    }

    /// Its integral from 1: (x^(1-alpha) - 1) / (1 - alpha), or ln x where alpha is 1.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        exp_m1_ratio((1.0 - self.alpha) * log) * log
    }

    fn area_inverse(&self, area: f64) -> f64 {
        // Rounding may take the argument below the domain's edge.
        let scaled = (area * (1.0 - self.alpha)).max(-1.0);
        (ln_1p_ratio(scaled) * area).exp()
    }

    /// The next rank, from 1. Needs 1.1 draws on average or fewer.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.area_high + rng.unit() * (self.area_low - self.area_high);
            let x = self.area_inverse(area);
            let rank = x.round().clamp(1.0, self.ranks);
            if rank - x <= self.certain || area >= self.area(rank + 0.5) - self.density(rank) {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_stands_somewhere_once() {
        for len in [1, 2, 3, 4, 5, 17, 1000, 4096, 4097] {
            let order = Permutation::new(len, Seed(5));
            let mut seen = vec![false; len as usize];
            (0..len).for_each(|index| seen[order.apply(index) as usize] = true);
            assert!(seen.iter().all(|seen| *seen), "{len}");
        }
        let order = Permutation::new(1000, Seed(5));
        let fixed = (0..1000).filter(|index| order.apply(*index) == *index).count();
        assert!(fixed < 10, "{fixed} of 1000 stayed");
        assert!(Permutation::new(u64::MAX >> 1, Seed(1)).apply(7) < u64::MAX >> 1);
    }

    #[test]
    fn frequencies_are_those_of_the_law() {
        const RANKS: usize = 60;
        const DRAWS: usize = 200_000;
        for alpha in [0.0, 0.5, 0.99, 1.0, 1.2, 3.0] {
            let zipf = Zipf::new(RANKS as u64, alpha);
            let mut rng = Seed(11).derive(&alpha.to_string()).rng();
            let mut counts = [0_u32; RANKS];
            for _ in 0..DRAWS {
                counts[zipf.sample(&mut rng) as usize - 1] += 1;
            }
            let weights: Vec<f64> = (1..=RANKS).map(|k| (k as f64).powf(-alpha)).collect();
            let total: f64 = weights.iter().sum();
            // Ranks expected fewer than 5 times are left out, as the chi-square test asks.
            let (mut chi_square, mut cells) = (0.0, 0);
            for (count, weight) in counts.iter().zip(&weights) {
                let expected = weight / total * DRAWS as f64;
                if expected >= 5.0 {
                    chi_square += (f64::from(*count) - expected).powi(2) / expected;
                    cells += 1;
                }
            }
            // Mean `cells`, deviation sqrt(2 cells): five deviations above the mean.
            let limit = f64::from(cells) + 5.0 * (2.0 * f64::from(cells)).sqrt();
            assert!(chi_square < limit, "alpha {alpha}: {chi_square} over {cells} cells");
        }
    }

    #[test]
    fn extremes_stay_within_the_ranks() {
        let mut rng = Seed(1).rng();
        for (ranks, alpha) in [(1, 1.0), (2, 0.0), (1 << 50, 1.0), (1 << 50, 0.2), (10, 50.0)] {
            let zipf = Zipf::new(ranks, alpha);
            assert!((0..1000).all(|_| (1..=ranks).contains(&zipf.sample(&mut rng))));
        }
    }
}
