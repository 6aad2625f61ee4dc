//! MiDAS: the search for a group configuration (GCS).
//!
//! For: number and sizes of groups with the least predicted write amplification. Must never know:
//! superblocks at hand, pages. Units: superblocks. Source: MiDAS (FAST'24), section 4.5, and the
//! order of steps of its simulator. First comes the hot group. Up to eight cuts of the last group
//! follow, each at its best size, then four rounds over all sizes in turn. The simulator runs it in
//! a thread whose result arrives at any time; here it is one call.

use super::chain::{Chain, ChainPrediction, Hot, MAX_GROUPS};
use super::hot_filter::HotMeasure;

/// The hot group may take fewer than so many superblocks.
const HOT_LIMIT: u32 = 30;
/// What a larger hot group must gain in write amplification.
const HOT_GAIN: f64 = 0.05;
/// Cuts of the last group.
const CUTS: usize = MAX_GROUPS - 2;
/// Superblocks that the last group keeps.
const LAST_KEEPS: u32 = 50;
/// Rounds over all sizes.
const ROUNDS: u32 = 4;
/// Where the hot group is worse than this it is modelled as measured: its share of valid pages...
const GOOD_VALID: f64 = 0.1;
/// ...and its share of host writes.
const GOOD_TRAFFIC: f64 = 0.15;
/// What is taken for measured when no hot superblock was collected.
const UNMEASURED: HotMeasure = HotMeasure { traffic: 0.01, valid: 0.05, blocks: 1.0 };

/// Groups and what they are expected to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Superblocks of each group, the hot one first, open ones included.
    pub sizes: Vec<u32>,
    /// Expected share of valid pages in each group's victims.
    pub valid: Vec<f64>,
    /// Expected flash pages written per host page.
    pub write_amplification: f64,
}

/// The best so far.
#[derive(Clone, Debug)]
struct BestCut {
    hot: Hot,
    /// Groups 1, 2, ..., the last.
    sizes: Vec<u32>,
    prediction: ChainPrediction,
}

impl BestCut {
    fn amplification(&self) -> f64 {
        self.prediction.write_amplification
    }
}

/// The best configuration of `blocks` superblocks; nothing if the model holds for none with at
/// least two groups beside the hot one.
pub fn search(chain: &Chain, measure: Option<HotMeasure>, blocks: u32) -> Option<Configuration> {
    let measure = measure.unwrap_or(UNMEASURED);
    let measured = measure.valid > GOOD_VALID || measure.traffic < GOOD_TRAFFIC;
    let first = if measured {
        let HotMeasure { traffic, valid, .. } = measure;
        let hot = Hot::Measured { traffic, valid, blocks: measure.blocks as u32 };
        let sizes = vec![blocks.checked_sub(hot.blocks())?];
        BestCut { prediction: chain.predict(hot, &sizes)?, hot, sizes }
    } else {
        hot_alone(chain, blocks)?
    };
    let mut best = cut_last(chain, first);
    for _ in 0..ROUNDS {
        if !measured {
            resize_hot(chain, &mut best);
        }
        resize_groups(chain, &mut best);
    }
    (best.sizes.len() > 1).then(|| {
        let groups = best.sizes.len();
        let sizes = std::iter::once(best.hot.blocks()).chain(best.sizes.iter().copied());
        let valid = &best.prediction.valid[..groups];
        let write_amplification = best.amplification();
        Configuration {
            sizes: sizes.collect(),
            valid: std::iter::once(0.0).chain(valid.iter().copied()).collect(),
            write_amplification,
        }
    })
}

/// The hot group beside one other: larger while that gains enough. The pages it holds count from
/// the next step on.
fn hot_alone(chain: &Chain, blocks: u32) -> Option<BestCut> {
    let mut best: Option<BestCut> = None;
    let mut reached = 0;
    for size in 1..HOT_LIMIT {
        if size <= reached {
            continue;
        }
        let Some(hot) = Hot::of_size(&chain.distribution, size) else { break };
        reached = hot.blocks();
        let sizes = vec![blocks.saturating_sub(reached)];
        let Some(prediction) = chain.predict(hot, &sizes) else { break };
        let found = BestCut { hot, sizes, prediction };
        let gains = |best: &BestCut| found.amplification() < best.amplification() - HOT_GAIN;
        if !best.as_ref().is_none_or(gains) {
            break;
        }
        best = Some(found);
    }
    best.map(|best| BestCut { hot: holding(best.hot), ..best })
}

/// The same hot group, its valid pages taken from the last group's.
fn holding(hot: Hot) -> Hot {
    match hot {
        Hot::Ideal { units, blocks, .. } => Hot::Ideal { units, blocks, held: true },
        Hot::Measured { .. } => hot,
    }
}

/// Cuts the last group again and again, each time at the best size; returns the best of all.
fn cut_last(chain: &Chain, first: BestCut) -> BestCut {
    let mut best = first.clone();
    let mut limit = first.sizes[0].saturating_sub(LAST_KEEPS);
    let mut base = first.sizes;
    for _ in 0..CUTS {
        let mut level: Option<BestCut> = None;
        let queue = base.len() - 1;
        let mut sizes = base.clone();
        sizes.push(base[queue]);
        for size in 1..limit {
            sizes[queue] = size;
            sizes[queue + 1] = base[queue].saturating_sub(size);
            let Some(prediction) = chain.predict(best.hot, &sizes) else { continue };
            let better = |level: &BestCut| prediction.write_amplification < level.amplification();
            if level.as_ref().is_none_or(better) {
                level = Some(BestCut { hot: best.hot, sizes: sizes.clone(), prediction });
            }
        }
        let Some(level) = level else { break };
        limit -= level.sizes[queue];
        base = level.sizes.clone();
        if level.amplification() < best.amplification() {
            best = level;
        }
    }
    best
}

/// Tries every size of the hot group, the last group giving or taking.
fn resize_hot(chain: &Chain, best: &mut BestCut) {
    let mut sizes = best.sizes.clone();
    let last = sizes.len() - 1;
    let both = sizes[last] + best.hot.blocks();
    let mut reached = 0;
    for size in 1..HOT_LIMIT {
        if size <= reached {
            continue;
        }
        let Some(hot) = Hot::of_size(&chain.distribution, size) else { return };
        reached = hot.blocks();
        sizes[last] = both.saturating_sub(reached);
        let Some(prediction) = chain.predict(hot, &sizes) else { return };
        if prediction.write_amplification < best.amplification() {
            *best = BestCut { hot: holding(hot), sizes: sizes.clone(), prediction };
        }
    }
}

/// Tries every size of each group in turn, the last group giving or taking, and of one more group
/// while that gains.
fn resize_groups(chain: &Chain, best: &mut BestCut) {
    for group in 0..CUTS {
        let mut sizes = best.sizes.clone();
        let adds = group + 1 >= sizes.len();
        if adds {
            sizes.push(sizes[group]);
        } else {
            let last = sizes.len() - 1;
            sizes[last] += sizes[group];
        }
        let last = sizes.len() - 1;
        let both = sizes[last];
        let mut gained = false;
        for size in 1..both.saturating_sub(LAST_KEEPS) {
            sizes[group] = size;
            sizes[last] = both - size;
            let Some(prediction) = chain.predict(best.hot, &sizes) else { break };
            if prediction.write_amplification < best.amplification() {
                *best = BestCut { hot: best.hot, sizes: sizes.clone(), prediction };
                gained = true;
            }
        }
        if !gained && group + 1 >= best.sizes.len() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chain::tests::chain;
    use super::*;

    const GOOD: HotMeasure = HotMeasure { traffic: 0.5, valid: 0.01, blocks: 3.0 };

    #[test]
    fn no_pair_of_groups_beats_what_is_found() {
        let chain = chain();
        let found = search(&chain, Some(GOOD), 160).unwrap();
        assert_eq!(found.sizes.iter().sum::<u32>(), 160, "{found:?}");
        let hot = (1..HOT_LIMIT).find_map(|size| {
            let hot = Hot::of_size(&chain.distribution, size)?;
            (hot.blocks() == found.sizes[0]).then(|| holding(hot))
        });
        let left = 160 - found.sizes[0];
        for size in 1..left {
            let pair = chain.predict(hot.unwrap(), &[size, left - size]);
            let least = pair.map_or(f64::MAX, |pair| pair.write_amplification);
            assert!(found.write_amplification <= least + 1e-9, "{size}: {least} {found:?}");
        }
    }

    #[test]
    fn a_poor_hot_group_is_taken_as_measured() {
        let poor = HotMeasure { traffic: 0.3, valid: 0.15, blocks: 4.0 };
        let found = search(&chain(), Some(poor), 160).unwrap();
        assert_eq!((found.sizes[0], found.sizes.iter().sum::<u32>()), (4, 160));
        assert!(found.write_amplification > 1.0 + 0.3 * 0.15);
    }

    #[test]
    fn drives_without_room_for_queues_have_no_configuration() {
        assert_eq!(search(&chain(), Some(GOOD), 50), None);
        assert_eq!(search(&chain(), None, 0), None);
    }
}
