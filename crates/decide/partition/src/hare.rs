//! `hare`: tenants trade cache for the read rate and bandwidth of their backing device, until no
//! trade raises the throughput of all.
//!
//! Source: Ye et al., Cache-Centric Multi-Resource Allocation for Storage Services (FAST 2026,
//! pages 675-690): harvest, then redistribute. Where the paper leaves something open, its public
//! code decides (chenhao-ye/hopperkv, `hopperkv/alloc/engine`). Units: blocks, and blocks per
//! second.
//!
//! A tenant has a share, by weight, of the cache and of three rates: reads and writes of the
//! backing device, and bandwidth. A read that hits crosses the link to the client; one that misses
//! takes a read and crosses the link to the backing device as well; a write takes a write and
//! crosses both links, cached or not. The share gives the tenant a throughput. What it does not
//! take of a rate at that throughput is idle and is lent.
//!
//! *Harvest*: the rate of which the least is idle, for what is taken of it, is the bottleneck. One
//! tenant gets a granule of cache and returns what it no longer takes of the bottleneck; another
//! gives the granule and is paid what it takes in addition. Both keep their throughput. The trade
//! with the largest profit is made, as long as it raises the throughput that the idle rates allow.
//! Cache cannot replace writes, so trading ends where they are the bottleneck.
//!
//! *Redistribute*: idle rates go to tenants in proportion to what they take. The throughput of
//! every tenant rises by the same ratio, so that none is worse off than with its share.
//!
//! Departures:
//! - Only quotas of the cache leave this module: divisions carry blocks, and `max_iops` and
//!   `max_bandwidth` of a tenant cap requests of clients, not what passes to the backing device.
//!   [`Allocation::rates`] says what tenants would be given. That no tenant is worse off holds
//!   where these rates are enforced.
//! - Reads and writes are counted in blocks. DynamoDB, under the paper's first system, counts units
//!   of 4 KiB and 1 KiB. A write takes a write where a write-back cache would take none.
//! - The paper's granule of 4 MiB is a 512th of the share of 2 GiB in its experiments, and is that
//!   part of any share here.
//! - Reads have a curve of their own, where the code applies one miss ratio to all requests.
//! - If one tenant is both the best to get a granule and the best to give one, the best pair of two
//!   tenants trades. The code takes the second best to give. On 3,000 random markets of two to six
//!   tenants the code gives the same resources as this module with its rule; with ours 137 differ,
//!   all with curves that are not convex, and 131 of these gain more.
//! - The code divides only when all tenants have sent requests. Here an idle tenant keeps its
//!   share, and the others trade.
//! - Quotas take effect at once. The code can move them in steps as caches fill, with rates that
//!   are raised meanwhile.

use crate::history::KNOTS;
use crate::registry::{Entry, Need, Registered};
use crate::{CacheDivision, Partitioner, TenantView, share};
use cachewright_curve::Curve;
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{Seed, declare};
use std::cmp::Reverse;
use std::collections::VecDeque;

declare! {
    /// Settings of `hare`.
    pub struct HareSettings {
        /// what a tenant of mean weight may read from its backing device per second; only the
        /// proportion of the three rates counts
        read_rate: f64 = 1000.0, "blocks/s", 0.001 ..= 1e12;
        /// what a tenant of mean weight may write to its backing device per second
        write_rate: f64 = 1000.0, "blocks/s", 0.001 ..= 1e12;
        /// what a tenant of mean weight may transfer per second, to clients and to its backing
        /// device together; 12,800 blocks of 4 KiB are 50 MiB
        bandwidth: f64 = 12800.0, "blocks/s", 0.001 ..= 1e12;
        /// granules of an equal share of the cache; a trade moves one, and a tenant keeps one
        granules: u32 = 512, "granules", 1 ..= 65536;
        /// smallest rise of the throughput, as a part of that with shares, for which a trade is
        /// made
        min_gain: f64 = 0.0001, "ratio", 1e-9 ..= 1.0;
        /// miss ratio that is added to curves, against their errors where few requests miss
        margin: f64 = 0.01, "ratio", 0.0 ..= 1.0;
        /// latest intervals that demands are measured over
        window: u32 = 1, "intervals", 1 ..= 100;
    }
}

/// The most trades of one division.
const MAX_TRADES: u32 = 10_000;

/// What a tenant has, or takes, of the rates, in blocks per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Reads from the backing device.
    pub reads: f64,
    /// Writes to the backing device.
    pub writes: f64,
    /// Transfers to clients and to the backing device together.
    pub bandwidth: f64,
}

/// One of the rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource {
    Reads,
    Bandwidth,
    Writes,
}

impl Rates {
    fn of(&self, resource: Resource) -> f64 {
        match resource {
            Resource::Reads => self.reads,
            Resource::Writes => self.writes,
            Resource::Bandwidth => self.bandwidth,
        }
    }

    fn map(&self, change: impl Fn(Resource, f64) -> f64) -> Rates {
        Rates {
            reads: change(Resource::Reads, self.reads),
            writes: change(Resource::Writes, self.writes),
            bandwidth: change(Resource::Bandwidth, self.bandwidth),
        }
    }

    fn times(&self, factor: f64) -> Rates {
        self.map(|_, rate| rate * factor)
    }

    fn sum(rates: impl Iterator<Item = Rates>) -> Rates {
        rates.fold(Rates::default(), |sum, own| sum.map(|resource, rate| rate + own.of(resource)))
    }

    /// The resource that allows the least for each unit of `demand`, and how many units it allows;
    /// a resource of which nothing is demanded allows any number.
    fn tightest(&self, demand: &Rates) -> (Resource, f64) {
        // Among equals reads are first and writes are last, which trades do not save.
        let mut tightest = (Resource::Reads, f64::INFINITY);
        for resource in [Resource::Reads, Resource::Bandwidth, Resource::Writes] {
            let units = self.of(resource) / demand.of(resource);
            if units < tightest.1 {
                tightest = (resource, units);
            }
        }
        tightest
    }
}

/// What a tenant's accesses take of the rates, by the blocks that it has.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct Demand {
    /// Misses of reads by cache size, and writes, in each of the latest intervals.
    intervals: VecDeque<(Curve, u64)>,
    reads: u64,
    writes: u64,
}

impl Demand {
    /// Adds an interval, and forgets the earliest beyond the last `window`.
    pub fn learn(&mut self, reads: &Curve, writes: u64, window: u32) {
        self.intervals.push_back((reads.resampled(KNOTS), writes));
        while self.intervals.len() > window as usize {
            self.intervals.pop_front();
        }
        self.reads = self.intervals.iter().map(|(reads, _)| reads.accesses()).sum();
        self.writes = self.intervals.iter().map(|(_, writes)| writes).sum();
    }

    /// Whether the tenant sent nothing.
    fn is_idle(&self) -> bool {
        self.reads + self.writes == 0
    }

    /// Rates for one block access per second with `blocks` of cache.
    fn per_access(&self, blocks: u32, margin: f64) -> Rates {
        let (reads, writes) = (self.reads as f64, self.writes as f64);
        let misses: f64 = self.intervals.iter().map(|(curve, _)| curve.misses(blocks)).sum();
        let missed = (misses + margin * reads).min(reads);
        let accesses = reads + writes;
        Rates {
            reads: missed / accesses,
            writes: writes / accesses,
            bandwidth: 1.0 + (missed + writes) / accesses,
        }
    }
}

/// What a tenant has without trades, and what it does with it.
#[derive(Clone, Copy, Debug)]
pub struct Share<'a> {
    /// Its blocks.
    pub blocks: u32,
    /// Its rates, each above 0.
    pub rates: Rates,
    /// What its accesses take; there are some.
    pub demand: &'a Demand,
}

/// Resources after trades.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// The blocks of each tenant.
    pub blocks: Vec<u32>,
    /// The rates of each tenant.
    pub rates: Vec<Rates>,
    /// How much higher the throughput of each tenant is than with its share, at least: 0.5 is half
    /// as much again.
    pub gain: f64,
}

/// The terms of trades.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Blocks that a trade moves, and that each tenant keeps; at least 1.
    pub granule_blocks: u32,
    /// Smallest rise of the throughput for which a trade is made.
    pub min_gain: f64,
    /// Miss ratio that is added to curves.
    pub margin: f64,
}

impl Allocation {
    /// Harvests from tenants that hold `shares`, and redistributes. Blocks and rates add up to
    /// those of the shares. Cost: O(tenants log tenants) per trade, at most 10,000 trades.
    pub fn traded(shares: &[Share<'_>], terms: Terms) -> Allocation {
        let all = Rates::sum(shares.iter().map(|share| share.rates));
        let mut traders: Vec<Trader> =
            shares.iter().map(|share| Trader::new(share, terms)).collect();
        let mut taken = Rates::sum(traders.iter().map(|trader| trader.takes));
        for _ in 0..MAX_TRADES {
            let (bottleneck, throughput) = all.tightest(&taken);
            let Some(trade) = best_trade(&traders, bottleneck) else { break };
            let after = taken.map(|resource, rate| rate + trade.takes.of(resource));
            if all.tightest(&after).1 - throughput < terms.min_gain {
                break;
            }
            let (more, less) = (traders[trade.buyer].blocks, traders[trade.seller].blocks);
            traders[trade.buyer].holds(more + terms.granule_blocks);
            traders[trade.seller].holds(less - terms.granule_blocks);
            taken = Rates::sum(traders.iter().map(|trader| trader.takes));
        }
        let equal = 1.0 / shares.len().max(1) as f64;
        let own = |trader: &Trader| {
            all.map(|resource, rate| {
                let sum = taken.of(resource);
                rate * if sum > 0.0 { trader.takes.of(resource) / sum } else { equal }
            })
        };
        Allocation {
            blocks: traders.iter().map(|trader| trader.blocks).collect(),
            rates: traders.iter().map(own).collect(),
            gain: if shares.is_empty() { 0.0 } else { all.tightest(&taken).1 - 1.0 },
        }
    }
}

/// A tenant that trades, at the throughput that its share allows.
struct Trader<'a> {
    demand: &'a Demand,
    terms: Terms,
    /// Accesses per second.
    throughput: f64,
    blocks: u32,
    /// The rates that it takes with its blocks.
    takes: Rates,
    /// Those with a granule more.
    buys: Rates,
    /// Those with a granule less; nothing where it would keep less than one.
    sells: Option<Rates>,
}

impl<'a> Trader<'a> {
    fn new(share: &Share<'a>, terms: Terms) -> Trader<'a> {
        let Share { blocks, rates, demand } = *share;
        let (_, throughput) = rates.tightest(&demand.per_access(blocks, terms.margin));
        let (takes, buys, sells) = (Rates::default(), Rates::default(), None);
        let mut trader = Trader { demand, terms, throughput, blocks, takes, buys, sells };
        trader.holds(blocks);
        trader
    }

    /// The tenant has `blocks` from now on.
    fn holds(&mut self, blocks: u32) {
        let granule = self.terms.granule_blocks;
        let takes =
            |blocks| self.demand.per_access(blocks, self.terms.margin).times(self.throughput);
        let left = blocks.checked_sub(granule).filter(|left| *left >= granule);
        let sells = left.map(takes);
        (self.takes, self.buys) = (takes(blocks), takes(blocks.saturating_add(granule)));
        (self.blocks, self.sells) = (blocks, sells);
    }

    /// What it takes more of a rate with a granule more; negative where that saves some.
    fn with_more(&self, resource: Resource) -> f64 {
        self.buys.of(resource) - self.takes.of(resource)
    }

    /// What it takes more of a rate with a granule less; nothing where it sells none.
    fn with_less(&self, resource: Resource) -> Option<f64> {
        self.sells.map(|sells| sells.of(resource) - self.takes.of(resource))
    }
}

/// A granule that changes hands.
struct Trade {
    buyer: usize,
    seller: usize,
    /// What both together take more of the rates afterwards; negative where that saves some.
    takes: Rates,
}

/// The trade of two tenants that saves most of the bottleneck. Nothing where no tenant can give a
/// granule, and where cache cannot replace the bottleneck. Among equals the tenant with most blocks
/// gives and the one with fewest gets, so that places hardly matter.
fn best_trade(traders: &[Trader<'_>], bottleneck: Resource) -> Option<Trade> {
    if bottleneck == Resource::Writes {
        return None;
    }
    let asks = |(place, trader): (usize, &Trader<'_>)| {
        trader.with_less(bottleneck).map(|asks| (asks, Reverse(trader.blocks), place))
    };
    let mut sellers: Vec<(f64, Reverse<u32>, usize)> =
        traders.iter().enumerate().filter_map(asks).collect();
    sellers.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let costs = |(buyer, trader): (usize, &Trader<'_>)| {
        let (asks, _, seller) = sellers.iter().find(|(_, _, seller)| *seller != buyer)?;
        Some((trader.with_more(bottleneck) + asks, trader.blocks, buyer, *seller))
    };
    let pairs = traders.iter().enumerate().filter_map(costs);
    let (_, _, buyer, seller) =
        pairs.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)))?;
    let takes = traders[buyer].takes.map(|resource, _| {
        traders[buyer].with_more(resource) + traders[seller].with_less(resource).unwrap_or(0.0)
    });
    Some(Trade { buyer, seller, takes })
}

/// Cache that is traded for rates.
#[derive(Clone, Debug, Snapshot)]
pub struct Hare {
    #[snapshot(settings)]
    settings: HareSettings,
    demands: Vec<Demand>,
}

impl Registered for Hare {
    type Settings = HareSettings;
    const ENTRY: Entry = Entry {
        name: "hare",
        doc: "cache traded for read rate and bandwidth; no tenant below its share's throughput",
        source: "Ye et al., HARE (FAST 2026)",
        needs: &[Need::Interval, Need::Curve],
    };

    fn new(settings: &HareSettings, tenants: usize, _: Seed) -> Self {
        Hare { settings: settings.clone(), demands: vec![Demand::default(); tenants] }
    }
}

impl Hare {
    /// Blocks of a granule, at least 1.
    fn granule_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        (total_blocks / tenants.max(1) as u32 / self.settings.granules).max(1)
    }

    fn learn(&mut self, tenants: &[TenantView]) {
        self.demands.resize(tenants.len(), Demand::default());
        for (demand, tenant) in self.demands.iter_mut().zip(tenants) {
            if let Some(curves) = tenant.signals.curves {
                demand.learn(&curves.reads, curves.writes.accesses(), self.settings.window);
            }
        }
    }

    /// Blocks of each tenant by weight; nothing for absent ones, unless all are.
    fn shares(&self, tenants: &[TenantView], total_blocks: u32) -> Vec<u32> {
        let all_absent = tenants.iter().all(|tenant| tenant.absent);
        let here = |tenant: &usize| all_absent || !tenants[*tenant].absent;
        let open: Vec<usize> = (0..tenants.len()).filter(here).collect();
        let weights: Vec<f64> = open.iter().map(|tenant| tenants[*tenant].facts.weight).collect();
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        let mut shares = vec![0; tenants.len()];
        for (tenant, blocks) in
            open.iter().zip(share::proportional_above(total_blocks, &weights, floor))
        {
            shares[*tenant] = blocks;
        }
        shares
    }
}

impl Partitioner for Hare {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        self.learn(tenants);
        let mut quotas = self.shares(tenants, total_blocks);
        // A tenant without weight has no rates to pay with.
        let trades = |tenant: &usize| {
            let view = &tenants[*tenant];
            !view.absent && view.facts.weight > 0.0 && !self.demands[*tenant].is_idle()
        };
        let active: Vec<usize> = (0..tenants.len()).filter(trades).collect();
        let weight = |tenant: &usize| tenants[*tenant].facts.weight;
        let mean_weight = active.iter().map(weight).sum::<f64>() / active.len().max(1) as f64;
        let HareSettings { read_rate: reads, write_rate: writes, bandwidth, .. } = self.settings;
        let share = |tenant: &usize| Share {
            blocks: quotas[*tenant],
            rates: Rates { reads, writes, bandwidth }.times(weight(tenant) / mean_weight),
            demand: &self.demands[*tenant],
        };
        let shares: Vec<Share<'_>> = active.iter().map(share).collect();
        let terms = Terms {
            granule_blocks: self.granule_blocks(tenants.len(), total_blocks),
            min_gain: self.settings.min_gain,
            margin: self.settings.margin,
        };
        let traded = Allocation::traded(&shares, terms);
        for (tenant, blocks) in active.iter().zip(traded.blocks) {
            quotas[*tenant] = blocks;
        }
        CacheDivision::PerTenant(quotas)
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        let granule = self.granule_blocks(tenants, total_blocks);
        share::feasible_floor(granule, tenants, total_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TenantConstants;
    use cachewright_curve::signal::TenantSignals;
    use cachewright_curve::{Curves, Provenance};
    use proptest::prelude::*;

    fn curve(knots: &[(u32, f64)], accesses: u64) -> Curve {
        Curve::from_knots(knots.iter().copied(), accesses, Provenance::Exact)
    }

    fn demand(knots: &[(u32, f64)], reads: u64, writes: u64) -> Demand {
        let mut demand = Demand::default();
        demand.learn(&curve(knots, reads), writes, 1);
        demand
    }

    fn terms(granule_blocks: u32) -> Terms {
        Terms { granule_blocks, min_gain: 1e-6, margin: 0.0 }
    }

    /// Reads and writes of 100 per second, and more bandwidth than they need.
    fn hundred(demand: &Demand) -> Share<'_> {
        let rates = Rates { reads: 100.0, writes: 100.0, bandwidth: 1e6 };
        Share { blocks: 10, rates, demand }
    }

    fn throughput(rates: &Rates, blocks: u32, demand: &Demand, margin: f64) -> f64 {
        rates.tightest(&demand.per_access(blocks, margin)).1
    }

    fn assert_near(found: f64, expected: f64) {
        let gap = (found - expected).abs();
        assert!(gap <= 1e-9 * expected.abs().max(1.0), "{found}, expected {expected}");
    }

    /// 20 blocks and 200 reads per second, half for each of two tenants that only read.
    ///
    /// The first misses half of its reads in 10 blocks and a twentieth less with each block more:
    /// 100 reads per second allow 200 accesses per second, and a block more returns 10 reads. The
    /// second misses 0.8 in any size down to 2 blocks, and 0.9 in one: 125 accesses per second, and
    /// blocks are free down to 2. The next would ask for 12.5 reads, which is more than 10.
    ///
    /// | trades | blocks | reads taken | of 200, the throughput that they allow |
    /// |---|---|---|---|
    /// | 0 | 10, 10 | 100 + 100 | 1 |
    /// | 1 | 11, 9 | 90 + 100 | 1.053 |
    /// | 8 | 18, 2 | 20 + 100 | 1.667 |
    #[test]
    fn two_tenants_worked_by_hand() {
        let falling = demand(&[(20, 0.0)], 1000, 0);
        let flat = demand(&[(1, 900.0), (2, 800.0)], 1000, 0);
        let traded = Allocation::traded(&[hundred(&falling), hundred(&flat)], terms(1));
        assert_eq!(traded.blocks, [18, 2]);
        assert_near(traded.gain, 2.0 / 3.0);
        assert_near(traded.rates[0].reads, 200.0 / 6.0);
        assert_near(traded.rates[1].reads, 1000.0 / 6.0);
        assert_near(throughput(&traded.rates[0], 18, &falling, 0.0), 200.0 * 5.0 / 3.0);
        assert_near(throughput(&traded.rates[1], 2, &flat, 0.0), 125.0 * 5.0 / 3.0);
    }

    /// 30 blocks, 300 reads and 300 writes per second, a third for each.
    ///
    /// The first misses 0.5 in 10 blocks and 0.04 less with each more, down to 0.1 in 20: 200
    /// accesses per second, and a block returns 8 reads. The second misses 0.8 in any size. The
    /// third only writes: 100 accesses per second. Its 100 reads are idle, as are 200 writes of the
    /// others. Blocks of the second and the third are free; the one with more gives first.
    ///
    /// | trades | blocks | reads taken of 300 | writes taken of 300 |
    /// |---|---|---|---|
    /// | 0 | 10, 10, 10 | 100 + 100 + 0: allows 1.5 | 100: allows 3 |
    /// | 2 | 12, 9, 9 | 84 + 100 + 0: allows 1.630 | as before |
    /// | 10 | 20, 5, 5 | 20 + 100 + 0: allows 2.5 | as before |
    ///
    /// Beyond 20 blocks nothing is returned. The throughput of all is 2.5 times as high: the first
    /// has 50 of the 300 reads, the second 250, and the writer 300 writes.
    #[test]
    fn three_tenants_worked_by_hand() {
        let falling = demand(&[(10, 500.0), (20, 100.0)], 1000, 0);
        let flat = demand(&[(1, 800.0)], 1000, 0);
        let writer = demand(&[], 0, 1000);
        let shares = [hundred(&falling), hundred(&flat), hundred(&writer)];
        let traded = Allocation::traded(&shares, terms(1));
        assert_eq!(traded.blocks, [20, 5, 5]);
        assert_near(traded.gain, 1.5);
        let reads = traded.rates.iter().map(|rates| rates.reads).collect::<Vec<f64>>();
        let writes = traded.rates.iter().map(|rates| rates.writes).collect::<Vec<f64>>();
        [50.0, 250.0, 0.0].iter().zip(reads).for_each(|(expected, found)| {
            assert_near(found, *expected);
        });
        assert_eq!(writes, [0.0, 0.0, 300.0]);
    }

    /// What the paper's public code answers to three tenants with curves of five sizes, weights of
    /// 1, 2 and 1, and a miss ratio of 0.01 added: bandwidth is the bottleneck, and 15 granules
    /// move.
    #[test]
    fn the_public_code_gives_the_same() {
        let knots: [[(u32, f64); 5]; 3] = [
            [(4, 800.0), (20, 600.0), (40, 450.0), (80, 200.0), (120, 100.0)],
            [(4, 450.0), (20, 300.0), (40, 150.0), (80, 100.0), (120, 90.0)],
            [(4, 990.0), (20, 900.0), (40, 850.0), (80, 700.0), (120, 300.0)],
        ];
        let demands =
            [demand(&knots[0], 900, 100), demand(&knots[1], 500, 500), demand(&knots[2], 1000, 20)];
        let base = Rates { reads: 400.0, writes: 300.0, bandwidth: 1000.0 };
        let shares = [
            Share { blocks: 40, rates: base, demand: &demands[0] },
            Share { blocks: 80, rates: base.times(2.0), demand: &demands[1] },
            Share { blocks: 40, rates: base, demand: &demands[2] },
        ];
        let terms = Terms { granule_blocks: 4, min_gain: 1e-4, margin: 0.01 };
        let traded = Allocation::traded(&shares, terms);
        assert_eq!(traded.blocks, [100, 40, 20]);
        let expected = [
            [229.431060, 114.296347, 872.918775],
            [418.421650, 1069.128025, 2146.710417],
            [952.147290, 16.575628, 980.370808],
        ];
        for (rates, expected) in traded.rates.iter().zip(expected) {
            let found = [rates.reads, rates.writes, rates.bandwidth];
            found.iter().zip(expected).for_each(|(found, expected)| {
                assert!((found - expected).abs() < 1e-5, "{found}, expected {expected}");
            });
        }
        assert!((traded.gain - 0.080921660).abs() < 1e-8, "{}", traded.gain);
    }

    /// A tenth of all accesses of both are writes, of which each has 100 per second: 1000 accesses
    /// per second. A granule would save reads of the first, of which there are enough.
    #[test]
    fn where_writes_are_the_bottleneck_no_block_is_traded() {
        let falling = demand(&[(20, 0.0)], 90, 10);
        let flat = demand(&[(1, 9.0)], 90, 10);
        let rates = Rates { reads: 1000.0, writes: 100.0, bandwidth: 1e6 };
        let share = |demand| Share { blocks: 10, rates, demand };
        let traded = Allocation::traded(&[share(&falling), share(&flat)], terms(1));
        assert_eq!((traded.blocks, traded.gain), (vec![10, 10], 0.0));
    }

    /// Two tenants that only read, each with 10 blocks and 150 transfers per second. The first
    /// misses half: 1.5 transfers per access, 100 accesses per second, and a block more returns 5
    /// transfers. The second misses half in any size down to 2 blocks, and all in one, which would
    /// ask for 50. At 18 and 2 blocks 110 and 150 transfers of 300 are taken.
    #[test]
    fn bandwidth_is_traded_where_it_is_the_bottleneck() {
        let falling = demand(&[(20, 0.0)], 1000, 0);
        let flat = demand(&[(1, 1000.0), (2, 500.0)], 1000, 0);
        let rates = Rates { reads: 1e6, writes: 1.0, bandwidth: 150.0 };
        let share = |demand| Share { blocks: 10, rates, demand };
        let traded = Allocation::traded(&[share(&falling), share(&flat)], terms(1));
        assert_eq!(traded.blocks, [18, 2]);
        assert_near(traded.gain, 300.0 / 260.0 - 1.0);
    }

    fn facts(weight: f64) -> TenantConstants {
        TenantConstants { weight, ..TenantConstants::default() }
    }

    /// A tenant that reads `all`.
    fn reader(knots: &[(u32, f64)], accesses: u64) -> Curves {
        let all = curve(knots, accesses);
        Curves { all: all.clone(), reads: all, writes: curve(&[], 0) }
    }

    fn view<'a>(facts: &'a TenantConstants, curves: &'a Curves) -> TenantView<'a> {
        let signals = TenantSignals { curves: Some(curves), ..TenantSignals::default() };
        TenantView { facts, accesses: curves.all.accesses(), signals, ..TenantView::default() }
    }

    fn quotas(scheme: &mut Hare, views: &[TenantView], total: u32) -> Vec<u32> {
        match scheme.divide(views, total) {
            CacheDivision::PerTenant(quotas) => quotas,
            other => panic!("quotas of its own for each, not {other:?}"),
        }
    }

    #[test]
    fn shares_follow_weights_and_idle_tenants_keep_theirs() {
        let (light, heavy) = (facts(1.0), facts(2.0));
        let (falling, flat, none) =
            (reader(&[(1000, 0.0)], 1000), reader(&[(1, 900.0)], 1000), reader(&[], 0));
        let mut scheme = Hare::new(&HareSettings::default(), 3, Seed(1));
        let unmeasured =
            [&heavy, &light, &light].map(|facts| TenantView { facts, ..TenantView::default() });
        assert_eq!(quotas(&mut scheme, &unmeasured, 800), [400, 200, 200]);
        let views = [view(&heavy, &falling), view(&light, &flat), view(&light, &none)];
        assert_eq!(quotas(&mut scheme, &views, 800), [599, 1, 200], "the idle one has its share");
        let gone = TenantView { absent: true, ..view(&light, &none) };
        let views = [view(&light, &falling), view(&light, &flat), gone];
        assert_eq!(quotas(&mut scheme, &views, 800), [799, 1, 0], "the absent one has none");
        let views = [view(&heavy, &none), view(&light, &flat), view(&light, &none)];
        assert_eq!(quotas(&mut scheme, &views, 800), [400, 200, 200], "one alone cannot trade");
    }

    #[test]
    fn demands_are_those_of_the_latest_intervals() {
        let equal = facts(1.0);
        let (falling, flat) = (reader(&[(1000, 0.0)], 1000), reader(&[(1, 900.0)], 1000));
        let settings = HareSettings { window: 2, ..HareSettings::default() };
        let mut scheme = Hare::new(&settings, 2, Seed(1));
        let there = [view(&equal, &falling), view(&equal, &flat)];
        let back = [view(&equal, &flat), view(&equal, &falling)];
        assert_eq!(quotas(&mut scheme, &there, 600), [599, 1]);
        assert_eq!(quotas(&mut scheme, &back, 600), [300, 300], "both did the same in two");
        assert_eq!(quotas(&mut scheme, &back, 600), [1, 599]);
    }

    /// Tenants of random curves, loads and shares.
    #[derive(Clone, Debug)]
    struct Market {
        tenants: Vec<(Demand, u32, Rates)>,
        terms: Terms,
    }

    impl Market {
        fn shares(&self) -> Vec<Share<'_>> {
            self.tenants
                .iter()
                .map(|(demand, blocks, rates)| Share { blocks: *blocks, rates: *rates, demand })
                .collect()
        }
    }

    /// A curve of reads: misses at 0 to 24 blocks, convex or in any order.
    fn load(convex: bool) -> impl Strategy<Value = Demand> {
        let falls = prop::collection::vec(0.0_f64..1.0, 24);
        (falls, 0_u64..1000, 0_u64..1000, 0.0_f64..1.0).prop_map(
            move |(mut falls, reads, writes, hit)| {
                if convex {
                    falls.sort_by(|a, b| b.total_cmp(a));
                }
                let (reads, sum) = (reads + 1, falls.iter().sum::<f64>().max(1e-9));
                let mut misses = reads as f64;
                let knots: Vec<(u32, f64)> = falls
                    .iter()
                    .enumerate()
                    .map(|(size, fall)| {
                        misses -= fall / sum * hit * reads as f64;
                        (size as u32 + 1, misses)
                    })
                    .collect();
                demand(&knots, reads, writes)
            },
        )
    }

    fn market(tenants: std::ops::Range<usize>, convex: bool) -> impl Strategy<Value = Market> {
        let rate = || 1.0_f64..1000.0;
        let rates = (rate(), rate(), rate());
        let rates = rates.prop_map(|(reads, writes, bandwidth)| Rates { reads, writes, bandwidth });
        let tenant = (load(convex), 0_u32..8, rates);
        let margin = prop_oneof![Just(0.0), 0.0_f64..0.1];
        (prop::collection::vec(tenant, tenants), 1_u32..3, margin).prop_map(
            |(tenants, granule_blocks, margin)| Market {
                tenants,
                terms: Terms { granule_blocks, min_gain: 1e-4, margin },
            },
        )
    }

    /// The trades as the paper tells them: each tenant holds rates, pays a part of them for a
    /// granule and is paid for one, and what no tenant holds is in a pool. Every pair is tried at
    /// every step.
    fn slow(market: &Market) -> (Vec<u32>, Vec<[f64; 3]>) {
        let Terms { granule_blocks: granule, min_gain, margin } = market.terms;
        let each = |rates: Rates| [rates.reads, rates.bandwidth, rates.writes];
        let needs =
            |tenant: usize, blocks: u32| each(market.tenants[tenant].0.per_access(blocks, margin));
        let tenants = market.tenants.len();
        let mut blocks: Vec<u32> = market.tenants.iter().map(|tenant| tenant.1).collect();
        let mut held: Vec<[f64; 3]> = market.tenants.iter().map(|tenant| each(tenant.2)).collect();
        let all = [0, 1, 2].map(|resource| held.iter().map(|own| own[resource]).sum::<f64>());
        let mut pool = [0.0; 3];
        for tenant in 0..tenants {
            let needs = needs(tenant, blocks[tenant]);
            let least = (0..3)
                .filter(|resource| needs[*resource] > 0.0)
                .map(|resource| held[tenant][resource] / needs[resource])
                .fold(f64::INFINITY, f64::min);
            for resource in 0..3 {
                pool[resource] += held[tenant][resource] - least * needs[resource];
                held[tenant][resource] = least * needs[resource];
            }
        }
        let ratio = |pool: &[f64; 3], resource: usize| {
            let taken = all[resource] - pool[resource];
            if taken > 1e-12 * all[resource] { pool[resource] / taken } else { f64::INFINITY }
        };
        let least = |pool: &[f64; 3]| (0..3).map(|r| ratio(pool, r)).fold(f64::INFINITY, f64::min);
        loop {
            let now = least(&pool);
            let Some(bottleneck) = (0..3).find(|r| ratio(&pool, *r) == now) else { break };
            // What the tenant's rates become at the same throughput in another size.
            let becomes = |tenant: usize, size: u32, resource: usize| {
                let (was, is) = (needs(tenant, blocks[tenant]), needs(tenant, size));
                if was[resource] > 0.0 {
                    held[tenant][resource] * is[resource] / was[resource]
                } else {
                    0.0
                }
            };
            let mut best: Option<(f64, usize, usize)> = None;
            for buyer in 0..tenants {
                for seller in (0..tenants).filter(|seller| *seller != buyer) {
                    if blocks[seller] < 2 * granule {
                        continue;
                    }
                    let returned = held[buyer][bottleneck]
                        - becomes(buyer, blocks[buyer] + granule, bottleneck);
                    let paid = becomes(seller, blocks[seller] - granule, bottleneck)
                        - held[seller][bottleneck];
                    let profit = returned - paid;
                    // Of pairs that are worth the same, the tenant with fewest blocks gets, and the
                    // one with most gives.
                    let is_better = best.is_none_or(|(most, gets, gives)| {
                        let more = match gets == buyer {
                            true => blocks[seller] > blocks[gives],
                            false => blocks[buyer] < blocks[gets],
                        };
                        profit > most || (profit == most && more)
                    });
                    if is_better {
                        best = Some((profit, buyer, seller));
                    }
                }
            }
            let Some((_, buyer, seller)) = best.filter(|_| bottleneck != 2) else { break };
            let (more, less) = (blocks[buyer] + granule, blocks[seller] - granule);
            let bought = [0, 1, 2].map(|resource| becomes(buyer, more, resource));
            let sold = [0, 1, 2].map(|resource| becomes(seller, less, resource));
            let after =
                [0, 1, 2].map(|r| pool[r] + held[buyer][r] - bought[r] + held[seller][r] - sold[r]);
            if least(&after) - now < min_gain {
                break;
            }
            (held[buyer], held[seller], pool) = (bought, sold, after);
            (blocks[buyer], blocks[seller]) = (more, less);
        }
        (blocks, held)
    }

    proptest! {
        #[test]
        fn a_slow_market_of_all_pairs_trades_the_same(market in market(2..6, false)) {
            let traded = Allocation::traded(&market.shares(), market.terms);
            let (blocks, held) = slow(&market);
            prop_assert_eq!(&traded.blocks, &blocks);
            // What each holds after all its trades still allows the throughput of its share.
            for (((demand, share, rates), blocks), held) in
                market.tenants.iter().zip(&blocks).zip(held)
            {
                let margin = market.terms.margin;
                let held = Rates { reads: held[0], bandwidth: held[1], writes: held[2] };
                let before = throughput(rates, *share, demand, margin);
                let after = throughput(&held, *blocks, demand, margin);
                prop_assert!((after - before).abs() <= 1e-6 * before, "{after}, {before}");
            }
        }

        #[test]
        fn resources_add_up_and_no_tenant_is_worse_off(market in market(1..6, false)) {
            let (shares, terms) = (market.shares(), market.terms);
            let traded = Allocation::traded(&shares, terms);
            let blocks = shares.iter().map(|share| share.blocks).sum::<u32>();
            prop_assert_eq!(traded.blocks.iter().sum::<u32>(), blocks);
            let all = Rates::sum(shares.iter().map(|share| share.rates));
            let given = Rates::sum(traded.rates.iter().copied());
            for resource in [Resource::Reads, Resource::Bandwidth, Resource::Writes] {
                let gap = (all.of(resource) - given.of(resource)).abs();
                prop_assert!(gap <= 1e-9 * all.of(resource), "{all:?} {given:?}");
            }
            prop_assert!(traded.gain >= -1e-12, "{}", traded.gain);
            for ((share, blocks), rates) in shares.iter().zip(&traded.blocks).zip(&traded.rates) {
                prop_assert!(*blocks >= share.blocks.min(terms.granule_blocks));
                let before = throughput(&share.rates, share.blocks, share.demand, terms.margin);
                let after = throughput(rates, *blocks, share.demand, terms.margin);
                let least = before * (1.0 + traded.gain);
                prop_assert!(after >= least * (1.0 - 1e-9), "{after}, at least {least}");
            }
        }

        /// Every division of a few blocks is tried: where reads alone are short and curves are
        /// convex, no division saves more of them.
        #[test]
        fn no_division_of_convex_curves_takes_fewer_reads(
            market in market(2..4, true),
        ) {
            let mut market = market;
            market.terms = Terms { granule_blocks: 1, min_gain: 1e-9, margin: 0.0 };
            for (_, _, rates) in &mut market.tenants {
                *rates = Rates { reads: rates.reads, writes: 1e9, bandwidth: 1e9 };
            }
            let shares = market.shares();
            let traded = Allocation::traded(&shares, market.terms);
            let speeds: Vec<f64> = shares
                .iter()
                .map(|share| throughput(&share.rates, share.blocks, share.demand, 0.0))
                .collect();
            let taken = |blocks: &[u32]| {
                let each = shares.iter().zip(&speeds).zip(blocks);
                each.map(|((share, speed), blocks)| {
                    speed * share.demand.per_access(*blocks, 0.0).reads
                }).sum::<f64>()
            };
            let least: Vec<u32> = shares.iter().map(|share| share.blocks.min(1)).collect();
            let total: u32 = shares.iter().map(|share| share.blocks).sum();
            let fewest = divisions(total, &least)
                .iter()
                .map(|blocks| taken(blocks))
                .fold(f64::INFINITY, f64::min);
            let found = taken(&traded.blocks);
            prop_assert!(found <= fewest * (1.0 + 1e-6), "{found}, {fewest} is possible");
        }

        #[test]
        fn no_trade_of_two_tenants_is_left(market in market(2..6, false)) {
            let mut market = market;
            for (_, _, rates) in &mut market.tenants {
                *rates = Rates { reads: rates.reads, writes: 1e9, bandwidth: 1e9 };
            }
            let Terms { granule_blocks: granule, min_gain, .. } = market.terms;
            let (shares, terms) = (market.shares(), market.terms);
            let traded = Allocation::traded(&shares, terms);
            let all: f64 = shares.iter().map(|share| share.rates.reads).sum();
            let taken = |blocks: &[u32]| {
                let each = shares.iter().zip(blocks);
                each.map(|(share, blocks)| {
                    let speed = throughput(&share.rates, share.blocks, share.demand, terms.margin);
                    speed * share.demand.per_access(*blocks, terms.margin).reads
                }).sum::<f64>()
            };
            let now = all / taken(&traded.blocks);
            for buyer in 0..shares.len() {
                for seller in (0..shares.len()).filter(|seller| *seller != buyer) {
                    let mut blocks = traded.blocks.clone();
                    if blocks[seller] >= 2 * granule {
                        blocks[seller] -= granule;
                        blocks[buyer] += granule;
                        let after = all / taken(&blocks);
                        prop_assert!(after - now < min_gain * 1.001, "{buyer} from {seller}");
                    }
                }
            }
        }
    }

    /// All divisions of so many blocks, each tenant with at least its own `least`.
    fn divisions(total: u32, least: &[u32]) -> Vec<Vec<u32>> {
        let Some((own, others)) = least.split_first() else {
            return if total == 0 { vec![Vec::new()] } else { Vec::new() };
        };
        let with = |blocks: u32| {
            let rest = divisions(total - blocks, others).into_iter();
            rest.map(move |rest| [vec![blocks], rest].concat())
        };
        (*own..=total).flat_map(with).collect()
    }
}
