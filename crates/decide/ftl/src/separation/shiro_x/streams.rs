//! Which residual lifetimes share a stream.
//!
//! For: cutting the range of residual lifetimes into streams, by how many pages are placed with
//! each. Must never know: pages, cells. Units: pages placed; residual lifetimes are bins of half
//! octaves of host page writes. Design of Cachewright.
//!
//! Theory: pages that are placed F at a time and live R on average fill F R pages of space. With
//! little spare space, a stream whose share of it is s costs about F (F R) / 2 s moves; the best
//! shares are as sqrt(F F R), and all moves together are as the square of the sum of these roots.
//! So the cut with the least sum of roots is sought, exactly, over all cuts of the range.

use super::history::{SPANS, span_start};

/// Pages placed per bin of residual lifetimes.
pub type Flow = [f64; SPANS];

/// The stream of each bin, from 0; at most `count` streams in the order of lifetimes.
pub fn cut(flow: &Flow, count: usize) -> [u8; SPANS] {
    let mut pages = [0.0; SPANS + 1];
    let mut space = [0.0; SPANS + 1];
    for (bin, placed) in flow.iter().enumerate() {
        pages[bin + 1] = pages[bin] + placed;
        let residual = 0.5 * (span_start(bin) + span_start(bin + 1));
        space[bin + 1] = space[bin] + placed * residual;
    }
    let root = |from: usize, to: usize| {
        ((pages[to] - pages[from]) * (space[to] - space[from])).max(0.0).sqrt()
    };
    // Per number of streams and end, the least sum and where the last stream begins.
    let mut least = vec![[(f64::INFINITY, 0); SPANS + 1]; count + 1];
    least[0][0].0 = 0.0;
    for used in 1..=count {
        for to in 0..=SPANS {
            for from in 0..=to {
                let sum = least[used - 1][from].0 + root(from, to);
                if sum < least[used][to].0 {
                    least[used][to] = (sum, from);
                }
            }
        }
    }
    let mut streams = [0; SPANS];
    let mut to = SPANS;
    for used in (1..=count).rev() {
        let from = least[used][to].1;
        streams[from..to].fill(used as u8 - 1);
        to = from;
    }
    streams
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

    fn sum_of_roots(flow: &Flow, streams: &[u8; SPANS]) -> f64 {
        let root = |stream: u8| {
            let own = (0..SPANS).filter(|bin| streams[*bin] == stream);
            let (pages, space) = own.fold((0.0, 0.0), |(pages, space), bin| {
                let middle = 0.5 * (span_start(bin) + span_start(bin + 1));
                (pages + flow[bin], space + flow[bin] * middle)
            });
            f64::sqrt(pages * space)
        };
        (0..=streams[SPANS - 1]).map(root).sum()
    }

    /// Half of the pages live 1000, a quarter 100,000 or 150,000 each: two streams part them.
    #[test]
    fn short_and_long_lives_are_parted() {
        let mut flow = [0.0; SPANS];
        let (short, long, longer) = (20, 33, 34);
        (flow[short], flow[long], flow[longer]) = (50.0, 25.0, 25.0);
        let streams = cut(&flow, 2);
        assert_eq!([short, long, longer].map(|bin| streams[bin]), [0, 1, 1]);
        assert_eq!(cut(&flow, 1), [0; SPANS]);
        assert_eq!(cut(&[0.0; SPANS], 3)[SPANS - 1], 2, "nothing placed: any cut will do");
    }

    #[test]
    fn no_cut_is_better() {
        let mut rng = Seed(5).rng();
        for _ in 0..20 {
            let mut flow = [0.0; SPANS];
            (0..SPANS).for_each(|bin| flow[bin] = rng.unit() * f64::from(rng.below(2) as u32));
            let found = sum_of_roots(&flow, &cut(&flow, 3));
            for first in 1..SPANS {
                for second in first + 1..SPANS {
                    let streams =
                        std::array::from_fn(|bin| u8::from(bin >= first) + u8::from(bin >= second));
                    assert!(found <= sum_of_roots(&flow, &streams) * (1.0 + 1e-9));
                }
            }
        }
    }
}
