//! Reuse distances of written pages.
//!
//! Source: MLCache (Liu et al., ICCAD 2020) as replicated in ANN-for-MLCache: ten bins over a
//! window of 32,768 pages written, the last for longer distances and first writes. The source does
//! not define its reuse distance. Here it is the stack distance of a tenant's writes among
//! themselves: one more than the distinct pages written since the last write of this page. A write
//! buffer of that many pages that keeps the latest writes would have held the page. Nine bins of
//! equal width cover distances up to the window. Memory: the last 32,768 pages of each tenant. A
//! page that falls out of them counts as a first write, so that the bound changes no bin.

use crate::StackDistance;
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, BlockKey, TenantId, VolumeKeys};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

/// Bins of a histogram.
pub const BINS: usize = 10;
/// The longest distance outside the last bin.
pub const WINDOW: u32 = 32_768;

/// The last bin.
const BEYOND: usize = BINS - 1;
/// The end of the list of pages; no page.
const END: u32 = 0;

/// The latest pages that one tenant has written.
#[derive(Clone, Debug, Default, SnapshotValue)]
struct WriteHistory {
    /// By page number, from 1.
    stack: StackDistance,
    numbers: HashMap<BlockKey, u32, FixedState>,
    /// By number: the page, and the numbers written before and after it.
    pages: Vec<(BlockKey, [u32; 2])>,
    /// Numbers of pages that were trimmed.
    free: Vec<u32>,
    bins: [u32; BINS],
}

/// Histograms of the interval under way, per tenant.
#[derive(Clone, Debug, Snapshot)]
pub struct ReuseMeter {
    tenants: Vec<WriteHistory>,
    #[snapshot(settings)]
    window: u32,
}

impl WriteHistory {
    fn new() -> WriteHistory {
        WriteHistory { pages: vec![(BlockKey::default(), [END; 2])], ..WriteHistory::default() }
    }

    fn write(&mut self, page: BlockKey, window: u32) {
        let bin = match self.numbers.get(&page).copied() {
            Some(number) => {
                self.unlink(number);
                self.link_newest(number);
                let distance = self.stack.access(BlockId(number), true).unwrap_or(window);
                (u64::from(distance - 1) * BEYOND as u64 / u64::from(window)) as usize
            }
            None => {
                let number = self.number(page, window);
                self.link_newest(number);
                self.stack.access(BlockId(number), true);
                BEYOND
            }
        };
        let count = &mut self.bins[bin.min(BEYOND)];
        *count = count.saturating_add(1);
    }

    /// Assigns a number to a page; a full window drops the oldest page.
    fn number(&mut self, page: BlockKey, window: u32) -> u32 {
        if self.numbers.len() >= window as usize {
            let [_, oldest] = self.pages[END as usize].1;
            self.drop(self.pages[oldest as usize].0);
        }
        let number = self.free.pop().unwrap_or(self.pages.len() as u32);
        if number as usize == self.pages.len() {
            self.pages.push((page, [END; 2]));
        }
        self.pages[number as usize].0 = page;
        self.numbers.insert(page, number);
        number
    }

    fn drop(&mut self, page: BlockKey) {
        if let Some(number) = self.numbers.remove(&page) {
            self.unlink(number);
            self.stack.forget(BlockId(number));
            self.free.push(number);
        }
    }

    fn unlink(&mut self, number: u32) {
        let [older, newer] = self.pages[number as usize].1;
        self.pages[older as usize].1[1] = newer;
        self.pages[newer as usize].1[0] = older;
    }

    /// The end's older neighbour is the newest page, its newer one the oldest: a circle.
    fn link_newest(&mut self, number: u32) {
        let [newest, _] = self.pages[END as usize].1;
        self.pages[number as usize].1 = [newest, END];
        self.pages[newest as usize].1[1] = number;
        self.pages[END as usize].1[0] = number;
    }
}

impl ReuseMeter {
    /// A meter of `tenants` tenants without writes.
    pub fn new(tenants: usize) -> ReuseMeter {
        ReuseMeter::with_window(tenants, WINDOW)
    }

    /// A meter with another window; at least one page.
    pub fn with_window(tenants: usize, window: u32) -> ReuseMeter {
        ReuseMeter { tenants: vec![WriteHistory::new(); tenants], window: window.max(1) }
    }

    /// Counts a write to one page; an unknown tenant is ignored.
    pub fn write(&mut self, tenant: TenantId, page: BlockKey) {
        if let Some(written) = self.tenants.get_mut(tenant.index()) {
            written.write(page, self.window);
        }
    }

    /// Forgets a trimmed page: its next write is a first write.
    pub fn trim(&mut self, tenant: TenantId, page: BlockKey) {
        if let Some(written) = self.tenants.get_mut(tenant.index()) {
            written.drop(page);
        }
    }

    /// Forgets the trimmed pages of a range of a tenant's volume. Costs the smaller of the range
    /// and the window.
    pub fn trim_range(&mut self, tenant: TenantId, volume: VolumeKeys, numbers: Range<u64>) {
        let Some(written) = self.tenants.get_mut(tenant.index()) else { return };
        if numbers.end.saturating_sub(numbers.start) <= written.numbers.len() as u64 {
            numbers.for_each(|number| written.drop(volume.key(number)));
        } else {
            let held = written.numbers.keys();
            let trimmed = held.filter(|key| numbers.contains(&volume.number(**key)));
            let mut trimmed: Vec<BlockKey> = trimmed.copied().collect();
            trimmed.sort_unstable_by_key(|key| volume.number(*key));
            trimmed.into_iter().for_each(|key| written.drop(key));
        }
    }

    /// Returns each tenant's histogram since the last call and resets the counts; the written pages
    /// stay known.
    pub fn take(&mut self) -> Vec<[u32; BINS]> {
        self.tenants.iter_mut().map(|written| std::mem::take(&mut written.bins)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TENANT: TenantId = TenantId(0);

    fn bins(pairs: &[(usize, u32)]) -> [u32; BINS] {
        let mut bins = [0; BINS];
        pairs.iter().for_each(|(bin, count)| bins[*bin] += count);
        bins
    }

    #[test]
    fn a_histogram_by_hand() {
        let mut meter = ReuseMeter::with_window(2, 18);
        for page in [1, 1, 2, 3, 1] {
            meter.write(TENANT, BlockKey(page));
        }
        meter.write(TenantId(1), BlockKey(1));
        // Three first writes; 1 again at once (distance 1), and again after 2 and 3 (distance 3).
        // Two distances share a bin.
        let expected = [bins(&[(9, 3), (0, 1), (1, 1)]), bins(&[(9, 1)])];
        assert_eq!(meter.take(), expected);
        meter.write(TENANT, BlockKey(2));
        assert_eq!(meter.take()[0], bins(&[(1, 1)]), "what was written before stays known");
        meter.trim(TENANT, BlockKey(3));
        meter.write(TENANT, BlockKey(3));
        meter.write(TENANT, BlockKey(1));
        assert_eq!(meter.take()[0], bins(&[(9, 1), (1, 1)]));
    }

    #[test]
    fn memory_does_not_grow_with_the_pages_written() {
        let mut meter = ReuseMeter::with_window(1, 100);
        (0..10_000).for_each(|page| meter.write(TENANT, BlockKey(page)));
        let written = &meter.tenants[0];
        assert_eq!((written.numbers.len(), written.pages.len()), (100, 101));
        assert_eq!(written.stack.distinct(), 100);
        assert_eq!(meter.take()[0], bins(&[(9, 10_000)]));
    }

    #[test]
    fn a_trimmed_range_is_its_pages_whichever_side_is_looked_at() {
        let volume = VolumeKeys::new(TENANT, 0);
        let mut whole = ReuseMeter::with_window(1, 50);
        (0..30).for_each(|page| whole.write(TENANT, volume.key(page)));
        let mut by_pages = whole.clone();
        whole.trim_range(TENANT, volume, 10..1 << 50);
        (10..30).for_each(|page| by_pages.trim(TENANT, volume.key(page)));
        whole.trim_range(TENANT, volume, 3..5);
        (3..5).for_each(|page| by_pages.trim(TENANT, volume.key(page)));
        whole.trim_range(TenantId(7), volume, 0..1 << 50);
        for meter in [&mut whole, &mut by_pages] {
            meter.take();
            (0..30).for_each(|page| meter.write(TENANT, volume.key(page)));
        }
        assert_eq!(whole.tenants[0].pages, by_pages.tenants[0].pages);
        assert_eq!(whole.take()[0][BEYOND], 22, "eight pages are still known");
    }

    /// Pages by their last write, the latest first.
    fn model(events: &[(u64, bool)], window: usize) -> [u32; BINS] {
        let mut order: Vec<u64> = Vec::new();
        let mut bins = [0; BINS];
        for (page, trim) in events {
            let place = order.iter().position(|other| other == page);
            order.retain(|other| other != page);
            if *trim {
                continue;
            }
            order.insert(0, *page);
            match place {
                Some(before) if before < window => bins[before * BEYOND / window] += 1,
                _ => bins[BEYOND] += 1,
            }
        }
        bins
    }

    proptest! {
        #[test]
        fn it_counts_as_the_model_does(
            events in prop::collection::vec((0_u64..60, prop::bool::weighted(0.1)), 0..400),
            cut in 0_usize..400,
        ) {
            // Without trims the window forgets nothing that the model would find.
            let writes: Vec<_> = events.iter().copied().filter(|event| !event.1).collect();
            for (events, window) in [(&writes, 25), (&events, 60)] {
                let mut meter = ReuseMeter::with_window(1, window);
                let mut sum = [0; BINS];
                for (index, (page, trim)) in events.iter().enumerate() {
                    if index == cut {
                        meter.take()[0].iter().zip(&mut sum).for_each(|(new, sum)| *sum += new);
                    }
                    match trim {
                        true => meter.trim(TENANT, BlockKey(*page)),
                        false => meter.write(TENANT, BlockKey(*page)),
                    }
                }
                meter.take()[0].iter().zip(&mut sum).for_each(|(new, sum)| *sum += new);
                prop_assert_eq!(sum, model(events, window as usize));
            }
        }
    }
}
