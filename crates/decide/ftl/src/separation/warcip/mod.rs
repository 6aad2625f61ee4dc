//! WARCIP: pages whose rewrite intervals are alike share a superblock, by clustering as they come.
//!
//! For: lifetimes that vary little within a superblock, without hints of the host. Must never know:
//! hosts, other schemes. Source: Yang, Pei and Yang, WARCIP (SYSTOR 2019), as far as its abstract
//! and slides are public: the rewrite interval of a page, a clustering in the manner of k-means
//! that fits itself to the load, merges and splits of clusters, a bounded number of streams. Units:
//! host page writes. Memory: 4 bytes per page.
//!
//! A page goes to the cluster whose centre is nearest to its last rewrite interval. Ours, because
//! the slides do not say or we cannot read it: intervals are compared by their logarithm
//! (`logarithmic`), as variances of raw intervals see the longest only; centres move once per
//! window and not per superblock; a first write joins the longest cluster; a moved page sinks to
//! the next longer cluster, or to that of its age if it is longer still.

pub mod clusters;

use super::{MovedPage, Registered, Separation, Stream, Write};
use crate::{Entry, Geometry};
use cachewright_types::Seed;
use clusters::Clusters;

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

#[cfg(test)]
mod tests {
    use super::super::fixtures::{geometry, moved, write};
    use super::*;
    use crate::Block;

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
}
