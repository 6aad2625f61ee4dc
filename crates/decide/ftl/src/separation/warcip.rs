//! WARCIP: pages whose rewrite intervals are alike share a superblock, by clustering as they come.
//!
//! Source: Yang, Pei and Yang, WARCIP (SYSTOR 2019), as far as its abstract and slides are public:
//! the rewrite interval of a page, a clustering in the manner of k-means that fits itself to the
//! load, merges and splits of clusters, a bounded number of streams. Units: host page writes.
//! Memory: 4 bytes per page.
//!
//! A page goes to the cluster whose centre is nearest to its last rewrite interval. Ours, because
//! the slides do not say or we cannot read it: intervals are compared by their logarithm
//! (`logarithmic`), as variances of raw intervals see the longest only; centres move once per
//! window and not per superblock; a first write joins the longest cluster; a moved page sinks to
//! the next longer cluster, or to that of its age if it is longer still.
//!
//! Clusters of numbers that come one by one: k-means a window at a time, with merges and splits. A
//! window's numbers go to the nearest centre. At its end centres become means (Lloyd, IEEE Trans.
//! Information Theory 1982). Then the two neighbours that lose least by it become one, and the
//! cluster with the largest spread becomes two, if that lowers the sum of squares.

use super::{MovedPage, Registered, Separation, Stream, Write};
use crate::{Entry, Geometry};
use cachewright_types::Seed;

cachewright_types::declare! {
    /// Settings of `warcip`.
    pub struct WarcipSettings {
        /// clusters of rewrite intervals, a stream each
        clusters: u32 = 6, "clusters", 2 ..= 64;
        /// rewrites after which centres move, as a share of the logical pages
        window: f64 = 0.25, "ratio", 0.0001 ..= 100.0;
        /// compare the logarithms of intervals, not intervals
        logarithmic: bool = true, "";
    }
}

/// Clusters of rewrite intervals.
#[derive(Clone, Debug)]
pub struct Warcip {
    clusters: Clusters,
    logarithmic: bool,
    /// Rewrites of a window.
    window: u64,
    /// Rewrites of the window under way.
    seen: u64,
    /// The clock at each page's last write, modulo 2^32.
    last: Vec<u32>,
}

impl Registered for Warcip {
    type Settings = WarcipSettings;
    const ENTRY: Entry = Entry {
        name: "warcip",
        doc: "pages of like rewrite intervals share a superblock, by clusters that follow the load",
        source: "Yang, Pei and Yang, WARCIP (SYSTOR 2019), abstract and slides",
        needs: &[],
    };

    fn new(geometry: &Geometry, settings: &WarcipSettings, _: Seed) -> Self {
        let pages = f64::from(geometry.logical_pages);
        let parts = f64::from(settings.clusters.max(2) - 1);
        // From a superblock to four drive writes, in equal ratios.
        let low = f64::from(geometry.block_pages).clamp(1.0, pages);
        let ratio = (4.0 * pages / low).powf(1.0 / parts);
        let interval = |cluster: u32| low * ratio.powf(f64::from(cluster));
        let logarithmic = settings.logarithmic;
        let centres = (0..settings.clusters).map(|cluster| scaled(interval(cluster), logarithmic));
        Warcip {
            clusters: Clusters::new(centres),
            logarithmic,
            window: (settings.window * pages).ceil().max(1.0) as u64,
            seen: 0,
            last: vec![0; geometry.logical_pages as usize],
        }
    }
}

/// An interval on the scale on which intervals are compared.
fn scaled(interval: f64, logarithmic: bool) -> f64 {
    if logarithmic { interval.max(1.0).log2() } else { interval }
}

impl Warcip {
    /// Writes since a page's last one, on the scale of the clusters.
    fn age(&self, page: u32, clock: u64) -> f64 {
        let interval = (clock as u32).wrapping_sub(self.last[page as usize]);
        scaled(f64::from(interval), self.logarithmic)
    }
}

impl Separation for Warcip {
    fn streams(&self) -> u32 {
        self.clusters.last() as u32 + 1
    }

    fn place_user(&mut self, write: &Write) -> Stream {
        let rank = if write.rewrite {
            let interval = self.age(write.page, write.clock);
            let rank = self.clusters.nearest(interval);
            self.clusters.learn(rank, interval);
            self.seen += 1;
            rank
        } else {
            self.clusters.last()
        };
        let stream = Stream(self.clusters.number(rank));
        self.last[write.page as usize] = write.clock as u32;
        if self.seen >= self.window {
            self.clusters.end_window();
            self.seen = 0;
        }
        stream
    }

    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        let longer = self.clusters.rank(moved.victim.stream.0) + 1;
        let aged = self.clusters.nearest(self.age(moved.page, moved.clock));
        Stream(self.clusters.number(longer.max(aged).min(self.clusters.last())))
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        4.0
    }

    #[inline(always)]
    fn touch(&self, page: u32) -> u32 {
        self.last.get(page as usize).copied().unwrap_or(0)
    }
}
/// What the split of a cluster at its mean saves of its sum of squares, at least: 64 % of a normal
/// distribution, 75 % of a uniform one.
const SPLIT_SAVES: f64 = 0.5;

/// One cluster and the numbers of the window under way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cluster {
    centre: f64,
    count: f64,
    sum: f64,
    squares: f64,
}

impl Cluster {
    /// The sum of squared distances of the window's numbers to their mean.
    fn spread(&self) -> f64 {
        if self.count > 0.0 {
            (self.squares - self.sum * self.sum / self.count).max(0.0)
        } else {
            0.0
        }
    }

    /// By how much the sum of squares grows if both become one.
    fn merge_cost(&self, other: &Cluster) -> f64 {
        let both = self.count + other.count;
        let distance = self.centre - other.centre;
        if both > 0.0 { self.count * other.count / both * distance * distance } else { 0.0 }
    }
}

/// Clusters in a fixed number. A cluster keeps its number while its centre moves.
#[derive(Clone, Debug)]
struct Clusters {
    each: Vec<Cluster>,
    /// Numbers of the clusters, ascending by centre.
    order: Vec<u8>,
}

impl Clusters {
    /// Clusters with these centres, at most 64.
    pub fn new(centres: impl IntoIterator<Item = f64>) -> Clusters {
        let each: Vec<Cluster> = centres
            .into_iter()
            .take(64)
            .map(|centre| Cluster { centre, ..Cluster::default() })
            .collect();
        let mut clusters = Clusters { order: (0..each.len() as u8).collect(), each };
        clusters.sort();
        clusters
    }

    fn sort(&mut self) {
        let each = &self.each;
        let centre = |number: &u8| each[usize::from(*number)].centre;
        self.order.sort_by(|a, b| centre(a).total_cmp(&centre(b)).then(a.cmp(b)));
    }

    fn ranked(&self, rank: usize) -> &Cluster {
        &self.each[usize::from(self.order[rank])]
    }

    /// The rank of the nearest centre, 0 for the smallest; the smaller of two that are as near.
    pub fn nearest(&self, value: f64) -> usize {
        let above =
            self.order.partition_point(|number| self.each[usize::from(*number)].centre < value);
        let last = self.order.len() - 1;
        if above == 0 || above > last {
            return above.min(last);
        }
        let (below, next) = (self.ranked(above - 1).centre, self.ranked(above).centre);
        if value - below <= next - value { above - 1 } else { above }
    }

    /// The largest rank.
    pub fn last(&self) -> usize {
        self.order.len() - 1
    }

    /// The number of the cluster of a rank.
    pub fn number(&self, rank: usize) -> u8 {
        self.order[rank]
    }

    /// The rank of a cluster; that of the largest for a number that there is not.
    pub fn rank(&self, number: u8) -> usize {
        self.order.iter().position(|own| *own == number).unwrap_or(self.last())
    }

    /// Counts a number for the cluster of a rank.
    pub fn learn(&mut self, rank: usize, value: f64) {
        let cluster = &mut self.each[usize::from(self.order[rank])];
        cluster.count += 1.0;
        cluster.sum += value;
        cluster.squares += value * value;
    }

    /// Ends a window: centres move to means, then one merge and one split if they gain. Clusters
    /// without a number keep their centre.
    pub fn end_window(&mut self) {
        for cluster in self.each.iter_mut().filter(|cluster| cluster.count > 0.0) {
            cluster.centre = cluster.sum / cluster.count;
        }
        self.sort();
        self.exchange();
        self.each.iter_mut().for_each(|cluster| {
            *cluster = Cluster { centre: cluster.centre, ..Cluster::default() };
        });
        self.sort();
    }

    /// The cheapest merge of neighbours and the most useful split of another, if both gain.
    fn exchange(&mut self) {
        let cost = |rank: &usize| self.ranked(*rank).merge_cost(self.ranked(rank + 1));
        let pair = (0..self.last()).min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let Some(pair) = pair else { return };
        let widest = (0..self.order.len())
            .filter(|rank| *rank != pair && *rank != pair + 1)
            .max_by(|a, b| self.ranked(*a).spread().total_cmp(&self.ranked(*b).spread()));
        let Some(widest) = widest else { return };
        let split = *self.ranked(widest);
        if cost(&pair) >= SPLIT_SAVES * split.spread() {
            return;
        }
        let (kept, freed) = (*self.ranked(pair), *self.ranked(pair + 1));
        let both = kept.count + freed.count;
        let merged = match both > 0.0 {
            true => (kept.centre * kept.count + freed.centre * freed.count) / both,
            false => kept.centre,
        };
        let deviation = (split.spread() / split.count).sqrt();
        let mut set = |rank: usize, centre: f64| {
            self.each[usize::from(self.order[rank])].centre = centre;
        };
        set(pair, merged);
        set(pair + 1, split.centre + deviation);
        set(widest, split.centre - deviation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Block;
    use crate::separation::fixtures::{geometry, moved, write};
    use proptest::prelude::*;

    /// 1024 pages, 64 to a superblock; centres of three clusters at 64, 512 and 4096 writes.
    fn three(window: f64) -> Warcip {
        let settings = WarcipSettings { clusters: 3, window, ..WarcipSettings::default() };
        Warcip::new(&geometry(), &settings, Seed(0))
    }

    #[test]
    fn a_page_joins_the_cluster_of_its_last_interval() {
        let mut scheme = three(100.0);
        let first = Write { rewrite: false, ..write(7, 1) };
        assert_eq!(scheme.place_user(&first), Stream(2), "no interval yet: the longest");
        // 64 to 512 meet at 181, 512 to 4096 at 1448.
        let mut clock = 1;
        for (interval, stream) in [(3, 0), (181, 0), (182, 1), (1448, 1), (1449, 2), (90_000, 2)] {
            clock += interval;
            assert_eq!(scheme.place_user(&write(7, clock)), Stream(stream), "{interval}");
        }
        let settings = WarcipSettings { logarithmic: false, clusters: 3, window: 100.0 };
        let mut linear = Warcip::new(&geometry(), &settings, Seed(0));
        linear.place_user(&first);
        assert_eq!(linear.place_user(&write(7, 290)), Stream(1), "288 is half way, 289 beyond");
    }

    #[test]
    fn a_moved_page_sinks_by_one_or_to_its_age() {
        let mut scheme = three(100.0);
        scheme.place_user(&write(7, 1000));
        let victim = |stream| Block { stream: Stream(stream), ..Block::default() };
        let at = |clock, stream| scheme.clone().place_moved(&moved(7, &victim(stream), clock)).0;
        assert_eq!((at(1010, 0), at(1010, 1), at(1010, 2)), (1, 2, 2));
        assert_eq!(at(9000, 0), 2, "8000 writes old");
    }

    #[test]
    fn centres_follow_the_load() {
        // Windows of 8 rewrites; 16 pages come back after 16 writes each.
        let mut scheme = three(8.0 / 1024.0);
        let rank = |scheme: &Warcip| scheme.clusters.nearest(scaled(100.0, true));
        assert_eq!(rank(&scheme), 0, "64 and 512 meet at 181");
        let mut clock = 100;
        for _ in 0..40 {
            for page in 0..16 {
                clock += 1;
                scheme.place_user(&write(page, clock));
            }
        }
        assert_eq!(rank(&scheme), 1, "16 and 512 meet at 91");
    }

    fn centres(clusters: &Clusters) -> Vec<f64> {
        (0..=clusters.last()).map(|rank| clusters.ranked(rank).centre).collect()
    }

    fn feed(clusters: &mut Clusters, values: &[f64]) {
        for value in values {
            clusters.learn(clusters.nearest(*value), *value);
        }
        clusters.end_window();
    }

    #[test]
    fn centres_move_to_the_means_of_what_is_nearest() {
        let mut clusters = Clusters::new([10.0, 0.0]);
        assert_eq!((clusters.number(0), clusters.rank(0)), (1, 1), "numbers stay");
        assert_eq!((clusters.nearest(5.0), clusters.nearest(5.1)), (0, 1));
        feed(&mut clusters, &[1.0, 2.0, 3.0, 8.0, 12.0]);
        assert_eq!(centres(&clusters), [2.0, 10.0]);
    }

    #[test]
    fn near_neighbours_merge_for_a_wide_cluster_that_splits() {
        // 1 and 2 cost half a square to merge; 90 and 110 have a spread of 200.
        let mut clusters = Clusters::new([1.0, 2.0, 100.0]);
        feed(&mut clusters, &[1.0, 2.0, 90.0, 110.0]);
        assert_eq!(centres(&clusters), [1.5, 90.0, 110.0]);
        // Nothing is wide any more.
        feed(&mut clusters, &[1.0, 2.0, 90.0, 110.0]);
        assert_eq!(centres(&clusters), [1.5, 90.0, 110.0]);
    }

    /// Clusters that keep every number of the window, and search all centres.
    struct Slow(Vec<(f64, Vec<f64>)>);

    impl Slow {
        fn nearest(&self, value: f64) -> usize {
            let far = |cluster: &(f64, Vec<f64>)| (cluster.0 - value).abs();
            let key = |index: &usize| (far(&self.0[*index]), self.0[*index].0, *index);
            let smaller = |a: &usize, b: &usize| key(a).partial_cmp(&key(b)).unwrap();
            (0..self.0.len()).min_by(smaller).unwrap()
        }
    }

    proptest! {
        #[test]
        fn windows_are_those_of_a_list_of_numbers(
            start in prop::collection::btree_set(0_u32..1000, 1..7),
            values in prop::collection::vec(0_u32..1000, 1..80),
        ) {
            let start: Vec<f64> = start.into_iter().map(f64::from).collect();
            let mut clusters = Clusters::new(start.clone());
            let mut slow = Slow(start.into_iter().map(|centre| (centre, Vec::new())).collect());
            for value in values.into_iter().map(f64::from) {
                let rank = clusters.nearest(value);
                let near = slow.nearest(value);
                prop_assert_eq!(usize::from(clusters.number(rank)), near);
                clusters.learn(rank, value);
                slow.0[near].1.push(value);
            }
            // Before a merge: the means, and the sum of squares around them.
            for (number, (centre, own)) in slow.0.iter().enumerate() {
                let cluster = clusters.each[number];
                let count = own.len() as f64;
                let mean = own.iter().sum::<f64>() / count;
                let spread: f64 = own.iter().map(|value| (value - mean).powi(2)).sum();
                prop_assert_eq!(cluster.count, count);
                prop_assert!(own.is_empty() || (cluster.spread() - spread).abs() < 1e-3);
                prop_assert!(!own.is_empty() || cluster.centre == *centre);
            }
            clusters.end_window();
            let sorted = centres(&clusters);
            prop_assert!(sorted.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }
}
