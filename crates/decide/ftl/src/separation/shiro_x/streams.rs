//! Which placements share a stream.
//!
//! For: cutting the range of residual lifetimes into streams, by how many pages are placed with
//! each, and the ways of doing so. Must never know: pages, cells. Units: pages placed; residual
//! lifetimes are bins of half octaves of host page writes. Design of Cachewright.
//!
//! Theory: pages that are placed F at a time and live R on average fill F R pages of space. With
//! little spare space, a stream whose share of it is s costs about F (F R) / 2 s moves. The best
//! shares are as sqrt(F F R). All moves together are as the square of the sum of these roots. So
//! the cut with the least sum of roots is sought, exactly, over all cuts of the range.

use super::history::{SPANS, span_start};
use crate::separation::Stream;

/// Streams that the widest way needs.
pub const STREAMS: u8 = 8;
/// How much the placements of a window count for, of those of the window after it.
const KEEP: f64 = 0.8;

/// Where pages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Written by the host.
    Host,
    /// Moved by reclaim.
    Moved,
}

/// A way of dividing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPlan {
    /// So many streams for pages of the host, so many others for moved ones.
    Apart(u8, u8),
    /// So many streams for both.
    Shared(u8),
}

impl StreamPlan {
    /// Streams in use.
    pub fn streams(self) -> u8 {
        match self {
            StreamPlan::Apart(host, moved) => host + moved,
            StreamPlan::Shared(all) => all,
        }
    }
}

/// Streams by side and residual lifetime, cut anew at each window's end.
#[derive(Clone, Debug)]
pub struct StreamDivision {
    way: StreamPlan,
    streams: [[u8; SPANS]; 2],
    /// Pages placed of late.
    flows: [LifeFlow; 2],
    /// Streams with a superblock that is open.
    open: [bool; STREAMS as usize],
    /// Streams that are open from an earlier way and not in use.
    left: Vec<Stream>,
}

impl StreamDivision {
    /// Nothing placed yet: one stream for each side.
    pub fn new(way: StreamPlan) -> StreamDivision {
        let moved = match way {
            StreamPlan::Apart(host, _) => host,
            StreamPlan::Shared(all) => all - 1,
        };
        StreamDivision {
            way,
            streams: [[0; SPANS], [moved; SPANS]],
            flows: [[0.0; SPANS]; 2],
            open: [false; STREAMS as usize],
            left: Vec::new(),
        }
    }

    /// The stream of a page that is placed now. Superblocks left open by an earlier way are filled
    /// up with the moved pages that live longest, lest they take space for nothing.
    #[inline(always)]
    pub fn place(&mut self, side: Side, residual: usize) -> Stream {
        self.flows[side as usize][residual] += 1.0;
        let stream = self.streams[side as usize][residual];
        if side == Side::Moved
            && stream + 1 == self.way.streams()
            && let Some(left) = self.left.last()
        {
            return *left;
        }
        self.open[usize::from(stream)] = true;
        Stream(stream)
    }

    /// A superblock of a stream is full.
    pub fn sealed(&mut self, stream: Stream) {
        if let Some(open) = self.open.get_mut(stream.index()) {
            *open = false;
        }
        self.left.retain(|left| *left != stream);
    }

    /// Cuts streams by what was placed of late.
    pub fn cut(&mut self) {
        let [host, moved] = &self.flows;
        self.streams = match self.way {
            StreamPlan::Apart(own, others) => [
                cut(host, usize::from(own)),
                cut(moved, usize::from(others)).map(|stream| stream + own),
            ],
            StreamPlan::Shared(all) => {
                let both = std::array::from_fn(|bin| host[bin] + moved[bin]);
                [cut(&both, usize::from(all)); 2]
            }
        };
        self.flows.as_flattened_mut().iter_mut().for_each(|pages| *pages *= KEEP);
    }

    /// Divides in this way from the next cut on, which is to follow at once.
    pub fn follow(&mut self, way: StreamPlan) {
        if way != self.way {
            self.way = way;
            let unused = (way.streams()..STREAMS).filter(|stream| self.open[usize::from(*stream)]);
            self.left = unused.map(Stream).collect();
        }
    }

    /// The way followed.
    pub fn way(&self) -> StreamPlan {
        self.way
    }
}

/// Pages placed per bin of residual lifetimes.
pub type LifeFlow = [f64; SPANS];

/// The stream of each bin, from 0; at most `count` streams in the order of lifetimes.
pub fn cut(flow: &LifeFlow, count: usize) -> [u8; SPANS] {
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
    let mut min_cost = vec![[(f64::INFINITY, 0); SPANS + 1]; count + 1];
    min_cost[0][0].0 = 0.0;
    for used in 1..=count {
        for to in 0..=SPANS {
            for from in 0..=to {
                let sum = min_cost[used - 1][from].0 + root(from, to);
                if sum < min_cost[used][to].0 {
                    min_cost[used][to] = (sum, from);
                }
            }
        }
    }
    let mut streams = [0; SPANS];
    let mut to = SPANS;
    for used in (1..=count).rev() {
        let from = min_cost[used][to].1;
        streams[from..to].fill(used as u8 - 1);
        to = from;
    }
    streams
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

    fn sum_of_roots(flow: &LifeFlow, streams: &[u8; SPANS]) -> f64 {
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

    /// From three streams each to two each: stream 5 is open and takes the coldest moved pages
    /// until it is full; stream 4 was filled before.
    #[test]
    fn what_a_way_leaves_open_is_filled_up() {
        let mut division = StreamDivision::new(StreamPlan::Apart(3, 3));
        (division.flows[1][10], division.flows[1][20], division.flows[1][30]) = (1.0, 1.0, 1.0);
        division.cut();
        assert_eq!([10, 20, 30].map(|bin| division.place(Side::Moved, bin).0), [3, 4, 5]);
        division.sealed(Stream(4));
        division.follow(StreamPlan::Apart(2, 2));
        division.cut();
        assert_eq!([10, 30].map(|bin| division.place(Side::Moved, bin).0), [2, 5]);
        assert!(division.place(Side::Host, 30).0 < 2);
        division.sealed(Stream(5));
        assert_eq!(division.place(Side::Moved, 30), Stream(3));
        assert_eq!(division.way().streams(), 4);
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
