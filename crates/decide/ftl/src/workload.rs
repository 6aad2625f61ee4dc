//! Synthetic streams of page writes, bit for bit those of the reference runs.
//!
//! For: studies, tests and measurements of write amplification without a trace. Must never know:
//! drives. Units: pages. Each stream writes pages 0..n once in order and then overwrites. `uniform`
//! picks at random over all. Zipf's law has exponent 1 or 0.6 over permuted pages. `hc8020` and
//! `hc9505` send most writes to few pages. The top fifth of `zipfshift` moves every 131,072 writes
//! (experiment 7 of SepBIT). `mix3` mixes a cyclic journal, Zipf, uniform and bursts. The generator
//! is splitmix64 from seed 20261121.

use cachewright_types::{Rng, Seed};

/// The seed of the reference runs.
const SEED: u64 = 20_261_121;
/// Writes between shifts of `zipfshift` (512 MiB of 4 KiB).
const SHIFT_EVERY: usize = 131_072;

/// Names that [`generate`] knows.
pub const KINDS: [&str; 7] =
    ["uniform", "zipf1", "zipf06", "hc8020", "hc9505", "zipfshift", "mix3"];

/// The fill of `pages` pages followed by `overwrites` writes; nothing for an unknown kind.
pub fn generate(kind: &str, pages: u32, overwrites: usize) -> Option<Vec<u32>> {
    let mut rng = Reference(Seed(SEED).rng());
    let mut out: Vec<u32> = Vec::with_capacity(pages as usize + overwrites);
    out.extend(0..pages);
    match kind {
        "uniform" => out.extend((0..overwrites).map(|_| rng.below(pages))),
        "zipf1" => zipf(&mut rng, pages, 1.0, overwrites, &mut out),
        "zipf06" => zipf(&mut rng, pages, 0.6, overwrites, &mut out),
        "hc8020" => hot_cold(&mut rng, pages, 80, 20, overwrites, &mut out),
        "hc9505" => hot_cold(&mut rng, pages, 95, 5, overwrites, &mut out),
        "zipfshift" => shifting(&mut rng, pages, overwrites, &mut out),
        "mix3" => mix(&mut rng, pages, overwrites, &mut out),
        _ => return None,
    }
    Some(out)
}

/// splitmix64 with the reference's ways to draw.
struct Reference(Rng);

impl Reference {
    /// Uniform in `0..bound`, by multiplying a 53-bit fraction.
    fn below(&mut self, bound: u32) -> u32 {
        (self.0.unit() * f64::from(bound)) as u32
    }

    /// Fisher and Yates, from the end.
    fn shuffle(&mut self, pages: &mut [u32]) {
        for last in (1..pages.len()).rev() {
            pages.swap(last, self.below(last as u32 + 1) as usize);
        }
    }

    /// `low..low + count`, shuffled.
    fn permutation(&mut self, low: u32, count: u32) -> Vec<u32> {
        let mut pages: Vec<u32> = (low..low + count).collect();
        self.shuffle(&mut pages);
        pages
    }
}

/// Ranks by Zipf's law: the cumulative weights, and where to begin to search them.
struct Ranks {
    sums: Vec<f64>,
    /// First rank above each of equally spaced fractions of the whole weight.
    guide: Vec<u32>,
}

impl Ranks {
    fn new(count: u32, exponent: f64) -> Ranks {
        let weight = |rank: u32| match exponent {
            1.0 => 1.0 / f64::from(rank),
            other => f64::from(rank).powf(-other),
        };
        let sums: Vec<f64> = (1..=count)
            .scan(0.0, |sum, rank| {
                *sum += weight(rank);
                Some(*sum)
            })
            .collect();
        let whole = sums.last().copied().unwrap_or(0.0);
        let mut guide = Vec::with_capacity(count as usize + 2);
        let mut rank = 0;
        for step in 0..=count {
            let fraction = f64::from(step) / f64::from(count);
            while (rank as usize) < sums.len() && sums[rank as usize] <= fraction * whole {
                rank += 1;
            }
            guide.push(rank);
        }
        Ranks { sums, guide }
    }

    /// The number of cumulative weights at or below a random share of the whole.
    fn draw(&self, rng: &mut Reference) -> usize {
        let (unit, count) = (rng.0.unit(), self.sums.len());
        let whole = self.sums[count - 1];
        // One step of the guide on either side covers the rounding of the product.
        let step = ((unit * count as f64) as usize).min(count - 1);
        let low = self.guide[step.saturating_sub(1)] as usize;
        let high = self.guide[(step + 2).min(count)] as usize;
        let rank = low + self.sums[low..high].partition_point(|sum| *sum <= unit * whole);
        rank.min(count - 1)
    }
}

fn zipf(rng: &mut Reference, pages: u32, exponent: f64, overwrites: usize, out: &mut Vec<u32>) {
    let permuted = rng.permutation(0, pages);
    let ranks = Ranks::new(pages, exponent);
    out.extend((0..overwrites).map(|_| permuted[ranks.draw(rng)]));
}

/// `writes` per cent of the writes go to `share` per cent of the pages.
fn hot_cold(
    rng: &mut Reference,
    pages: u32,
    writes: u32,
    share: u32,
    overwrites: usize,
    out: &mut Vec<u32>,
) {
    let permuted = rng.permutation(0, pages);
    let hot = (u64::from(pages) * u64::from(share) / 100) as u32;
    for _ in 0..overwrites {
        let index = if rng.0.unit() < f64::from(writes) / 100.0 {
            rng.below(hot)
        } else {
            hot + rng.below(pages - hot)
        };
        out.push(permuted[index as usize]);
    }
}

fn shifting(rng: &mut Reference, pages: u32, overwrites: usize, out: &mut Vec<u32>) {
    let ranks = Ranks::new(pages, 1.0);
    let mut order: Vec<u32> = (0..pages).collect();
    for write in 0..overwrites {
        if write > 0 && write % SHIFT_EVERY == 0 {
            rng.shuffle(&mut order[..pages as usize / 5]);
        }
        out.push(order[ranks.draw(rng)]);
    }
}

/// A quarter of the writes is a cyclic journal over 1/64 of the pages. 45 % are Zipf over a
/// quarter, 20 % uniform over a half, 10 % sequential bursts of 64 pages over the rest.
fn mix(rng: &mut Reference, pages: u32, overwrites: usize, out: &mut Vec<u32>) {
    const BURST: u32 = 64;
    /// Chance of a burst such that bursts are a tenth of the writes.
    const BURST_CHANCE: f64 = 0.001_733_1;
    let (journal, skewed, uniform) = (pages / 64, pages / 4, pages / 2);
    let bursts_from = journal + skewed + uniform;
    let bursts = (pages - bursts_from) / BURST;
    let permuted = rng.permutation(journal, skewed);
    let ranks = Ranks::new(skewed, 1.0);
    let (mut next, end) = (0, out.len() + overwrites);
    while out.len() < end {
        if rng.0.unit() < BURST_CHANCE {
            let first = bursts_from + rng.below(bursts) * BURST;
            let count = (end - out.len()).min(BURST as usize) as u32;
            out.extend(first..first + count);
            continue;
        }
        let kind = rng.0.unit();
        out.push(if kind < 0.25 / 0.9 {
            let page = next;
            next = (next + 1) % journal;
            page
        } else if kind < 0.70 / 0.9 {
            permuted[ranks.draw(rng)]
        } else {
            journal + skewed + rng.below(uniform)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::seed::mix;

    /// A hash of each stream, which the reference generator's output gives as well.
    #[test]
    fn the_streams_are_those_of_the_reference() {
        let hash = |kind: &&str| {
            let pages = generate(kind, 6400, 300_000).unwrap();
            pages.iter().fold(0, |hash, page| mix(hash ^ u64::from(*page)))
        };
        let found: Vec<u64> = KINDS.iter().map(hash).collect();
        assert_eq!(found, REFERENCE, "in the order of KINDS");
        assert_eq!(generate("zipf2", 10, 10), None);
    }

    const REFERENCE: [u64; 7] = [
        0xfbb3_d165_0b69_8e3c,
        0x97f9_c670_a447_0bca,
        0x18c1_9721_e5f3_ffba,
        0x9fba_99e4_f811_e110,
        0xe8f1_b8f0_1d45_252c,
        0xbaff_65b7_dbfd_e3de,
        0xf101_7dca_fbff_2049,
    ];
}
