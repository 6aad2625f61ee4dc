//! What Shiro keeps of each logical page: 36 bytes.
//!
//! Source: Shiro, section III-D. The class shares its 4 bytes with the time, which leaves 30 bits.
//! A lifetime is known modulo 2^30 host page writes (16 TiB of 16 KiB pages).
//!
//! What Shiro knows of one page write, and its form as inputs of the model. Units are pages and
//! requests; "recent" means counters that are halved at every window. Memory: 4 bytes per chunk of
//! 1 MiB.
//!
//! Metadata of pages in flash, with some of it in memory. Units are pages, meta pages. Source:
//! Shiro, section III-D.
//!
//! The cache of meta pages in RAM. Units are meta pages. Source: Shiro, section III-D: least
//! recently used, 1 % of the drive's meta pages. The prototype's red-black tree is a table by
//! number here: the same answers in constant time.

use super::ShiroSettings;
use crate::{Block, Geometry, HostRequest};
use std::collections::VecDeque;

/// Bytes of hidden state per page.
pub const STATE_BYTES: usize = 32;
/// Bytes of write time and class per page.
const STAMP_BYTES: usize = 4;
const TIME_BITS: u32 = 30;
const TIME_MASK: u32 = (1 << TIME_BITS) - 1;
/// Never written, or trimmed.
const ABSENT: u32 = 3;

/// What the classifier said of a page write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifetimeClass {
    /// Overwritten soon.
    Short,
    /// Overwritten later.
    Long,
    /// Not predicted: a first write, or no model yet.
    Unseen,
}

impl LifetimeClass {
    /// The index of its stream and of its bin in the agent's table.
    pub fn index(self) -> u8 {
        match self {
            LifetimeClass::Short => 0,
            LifetimeClass::Long => 1,
            LifetimeClass::Unseen => 2,
        }
    }
}

/// State and stamp of every page.
#[derive(Clone, Debug)]
pub struct Pages {
    states: Vec<[i8; STATE_BYTES]>,
    stamps: Vec<u32>,
}

impl Pages {
    /// Pages never written.
    pub fn new(pages: u32) -> Pages {
        Pages {
            states: vec![[0; STATE_BYTES]; pages as usize],
            stamps: vec![ABSENT << TIME_BITS; pages as usize],
        }
    }

    /// Host page writes since the last write of a page, if it holds data.
    #[inline]
    pub fn age(&self, page: u32, clock: u64) -> Option<u32> {
        let stamp = self.stamps.get(page as usize)?;
        let age = (clock as u32).wrapping_sub(*stamp) & TIME_MASK;
        (stamp >> TIME_BITS != ABSENT).then_some(age)
    }

    /// The class given at the last write.
    #[inline]
    pub fn class(&self, page: u32) -> LifetimeClass {
        match self.stamps.get(page as usize).map(|stamp| stamp >> TIME_BITS) {
            Some(0) => LifetimeClass::Short,
            Some(1) => LifetimeClass::Long,
            _ => LifetimeClass::Unseen,
        }
    }

    /// A page was written and classified.
    #[inline]
    pub fn stamp(&mut self, page: u32, clock: u64, class: LifetimeClass) {
        if let Some(stamp) = self.stamps.get_mut(page as usize) {
            *stamp = (clock as u32 & TIME_MASK) | u32::from(class.index()) << TIME_BITS;
        }
    }

    /// A page holds nothing any more.
    pub fn forget(&mut self, page: u32) {
        if let Some(stamp) = self.stamps.get_mut(page as usize) {
            *stamp = ABSENT << TIME_BITS;
        }
        if let Some(state) = self.states.get_mut(page as usize) {
            *state = [0; STATE_BYTES];
        }
    }

    /// The hidden state after the last write of a page.
    #[inline]
    pub fn state(&mut self, page: u32) -> Option<&mut [i8; STATE_BYTES]> {
        self.states.get_mut(page as usize)
    }

    /// Loads a page's entries ahead of their use.
    #[inline(always)]
    pub fn touch(&self, page: u32) -> u32 {
        let state = self.states.get(page as usize).map_or(0, |state| state[0]);
        let stamp = self.stamps.get(page as usize).copied().unwrap_or(0);
        stamp.wrapping_add(u32::from(state.cast_unsigned()))
    }
}

/// Bytes of the larger area whose requests are counted (AutoStream, SYSTOR'17, uses 1 to 2 MiB).
const CHUNK_BYTES: u32 = 1 << 20;
/// Requests looked back on for a sequential run (paper, section III-B).
const RUN_REQUESTS: usize = 32;
/// Consecutive bytes that make a request sequential (paper, section III-B).
const RUN_BYTES: u64 = 128 << 10;
/// Hex digits per feature: lifetime, length, sequential, chunk writes, chunk reads, write share.
const DIGITS: [usize; 6] = [8, 3, 1, 4, 4, 4];
/// Digits of all features.
pub const HEX_INPUTS: usize = 24;

/// The features of one page write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Pages the host wrote between the last two writes of this page; 0 if there was one.
    pub previous_lifetime: u32,
    /// Pages of the request.
    pub request_pages: u32,
    /// Whether the request ends a run of 128 KiB within the last 32 writes.
    pub sequential: bool,
    /// Recent write requests to the page's chunk.
    pub chunk_writes: u16,
    /// Recent read requests to the page's chunk.
    pub chunk_reads: u16,
    /// Writes among recent requests, 65535 for all.
    pub write_share: u16,
}

impl Features {
    /// The hex digits of all features, each from 0 to 15, in the order of [`Encoding::Hex`].
    #[inline]
    pub fn hex_digits(&self) -> [u8; HEX_INPUTS] {
        let length = self.request_pages.min(0xFFF);
        let sequential = u32::from(self.sequential);
        let writes = u64::from(self.chunk_writes);
        let low = u64::from(self.previous_lifetime)
            | u64::from(length | sequential << 12) << 32
            | writes << 48;
        let high = u32::from(self.chunk_reads) | u32::from(self.write_share) << 16;
        let mut digits = [0; HEX_INPUTS];
        let (first, last) = digits.split_at_mut(16);
        first.iter_mut().enumerate().for_each(|(i, digit)| *digit = (low >> (4 * i) & 15) as u8);
        last.iter_mut().enumerate().for_each(|(i, digit)| *digit = (high >> (4 * i) & 15) as u8);
        digits
    }
}

/// How features become inputs in `[0, 1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Each hex digit, divided by 15, is an input, the lowest digit first; 24 inputs. A feature
    /// beyond its digits becomes their highest number.
    Hex,
    /// log2(1 + feature), divided by the bits of its digits; 6 inputs.
    Log,
}

impl Encoding {
    /// Inputs of the model.
    pub fn inputs(self) -> usize {
        match self {
            Encoding::Hex => DIGITS.iter().sum(),
            Encoding::Log => DIGITS.len(),
        }
    }

    /// A name per input, in order.
    pub fn names(self) -> Vec<String> {
        let features = [
            "previous_lifetime",
            "request_pages",
            "sequential",
            "chunk_writes",
            "chunk_reads",
            "write_share",
        ];
        match self {
            Encoding::Log => features.map(str::to_owned).to_vec(),
            Encoding::Hex => (features.iter().zip(DIGITS))
                .flat_map(|(name, digits)| (0..digits).map(move |i| format!("{name}.{i}")))
                .collect(),
        }
    }

    /// Appends the inputs of one write.
    #[inline]
    pub fn append(self, features: &Features, inputs: &mut Vec<f32>) {
        let numbers = [
            features.previous_lifetime,
            features.request_pages,
            u32::from(features.sequential),
            u32::from(features.chunk_writes),
            u32::from(features.chunk_reads),
            u32::from(features.write_share),
        ];
        for (number, digits) in numbers.into_iter().zip(DIGITS) {
            let max = (1_u64 << (4 * digits)) - 1;
            let number = u64::from(number).min(max);
            match self {
                Encoding::Hex => {
                    let digit = |i: usize| (number >> (4 * i) & 15) as f32 / 15.0;
                    inputs.extend((0..digits).map(digit));
                }
                Encoding::Log => inputs.push(log2(number + 1) / (4 * digits) as f32),
            }
        }
    }
}

/// log2 by its whole part and a straight line between powers of two: the same bits everywhere.
fn log2(number: u64) -> f32 {
    let whole = 63 - number.leading_zeros();
    whole as f32 + (number as f32 / (1_u64 << whole) as f32 - 1.0)
}

/// Recent requests to one chunk.
#[derive(Clone, Copy, Debug, Default)]
struct ChunkCounters {
    writes: u16,
    reads: u16,
}

/// Keeps what the features need of the requests seen so far.
#[derive(Clone, Debug)]
pub struct Tracker {
    page_bytes: u32,
    chunk_pages: u32,
    chunks: Vec<ChunkCounters>,
    /// First page and end of the last writes, newest last.
    runs: VecDeque<(u32, u32)>,
    reads: u32,
    writes: u32,
    request: Features,
}

impl Tracker {
    /// Nothing seen; `pages` of `page_bytes` each.
    pub fn new(pages: u32, page_bytes: u32) -> Tracker {
        let chunk_pages = (CHUNK_BYTES / page_bytes.max(1)).max(1);
        Tracker {
            page_bytes,
            chunk_pages,
            chunks: vec![ChunkCounters::default(); pages.div_ceil(chunk_pages) as usize],
            runs: VecDeque::with_capacity(RUN_REQUESTS + 1),
            reads: 0,
            writes: 0,
            request: Features::default(),
        }
    }

    /// A request begins.
    pub fn on_request(&mut self, request: &HostRequest) {
        let &HostRequest { first_page, pages, write } = request;
        let end = first_page.saturating_add(pages);
        let first_chunk = (first_page / self.chunk_pages) as usize;
        let end_chunk = (end.div_ceil(self.chunk_pages) as usize).min(self.chunks.len());
        for chunk in self.chunks.get_mut(first_chunk..end_chunk).unwrap_or_default() {
            let counter = if write { &mut chunk.writes } else { &mut chunk.reads };
            *counter = counter.saturating_add(1);
        }
        if !write {
            self.reads = self.reads.saturating_add(1);
            return;
        }
        self.writes = self.writes.saturating_add(1);
        self.runs.push_back((first_page, end));
        if self.runs.len() > RUN_REQUESTS + 1 {
            self.runs.pop_front();
        }
        let all = u64::from(self.reads) + u64::from(self.writes);
        self.request = Features {
            request_pages: pages,
            sequential: self.run_bytes() >= RUN_BYTES,
            write_share: (u64::from(self.writes) * 65535 / all) as u16,
            ..Features::default()
        };
    }

    /// Bytes of the run that the newest write ends.
    fn run_bytes(&self) -> u64 {
        let (mut pages, mut next) = (0_u64, None);
        for &(first, end) in self.runs.iter().rev() {
            if next.is_some_and(|next| next != end) {
                break;
            }
            pages += u64::from(end - first);
            next = Some(first);
        }
        pages * u64::from(self.page_bytes)
    }

    /// The features of a page of the request at hand.
    #[inline]
    pub fn features(&self, page: u32, previous_lifetime: u32) -> Features {
        let chunk = self.chunks.get((page / self.chunk_pages) as usize);
        let ChunkCounters { writes, reads } = chunk.copied().unwrap_or_default();
        Features { previous_lifetime, chunk_writes: writes, chunk_reads: reads, ..self.request }
    }

    /// A window ends: what was recent counts half.
    pub fn halve(&mut self) {
        for chunk in &mut self.chunks {
            chunk.writes /= 2;
            chunk.reads /= 2;
        }
        self.reads /= 2;
        self.writes /= 2;
    }
}

/// Bytes of metadata per page with a state, as published.
const ENTRY_BYTES: usize = STAMP_BYTES + STATE_BYTES;

/// Bytes of metadata per page: stamp, and state unless each write is judged alone.
pub fn entry_bytes(settings: &ShiroSettings) -> usize {
    STAMP_BYTES + if settings.series_steps == 1 { 0 } else { STATE_BYTES }
}

/// The metadata of a drive.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// Pages of a superblock that hold metadata, on average.
    block_pages: f64,
    /// Data pages whose entries lie together in flash, and such units of a superblock.
    entries: u32,
    units: u32,
    cache: MetaCache,
    /// Meta page of the copy being overwritten, unless it is still in memory.
    wanted: Option<u32>,
    missed: bool,
}

impl Metadata {
    /// Nothing in memory.
    pub fn new(geometry: &Geometry, settings: &ShiroSettings) -> Metadata {
        let share = settings.meta_share * entry_bytes(settings) as f64 / ENTRY_BYTES as f64;
        let entries = if share > 0.0 { (1.0 / share) as u32 } else { u32::MAX };
        let units = geometry.block_pages.div_ceil(entries);
        let block_pages = f64::from(geometry.block_pages);
        let logical = f64::from(geometry.logical_pages);
        let superblocks = logical * (1.0 + geometry.over_provisioning()) / block_pages;
        let all = superblocks * f64::from(units);
        Metadata {
            block_pages: share * block_pages,
            entries,
            units,
            cache: MetaCache::new((all * settings.meta_cache_share) as u32, all as u32),
            wanted: None,
            missed: false,
        }
    }

    /// Whether metadata lies in flash; otherwise all of it is in memory.
    pub fn is_in_flash(&self) -> bool {
        self.block_pages > 0.0
    }

    /// Pages of a superblock that hold metadata, on average.
    pub fn block_pages(&self) -> f64 {
        self.block_pages
    }

    /// A copy at a place of a superblock is overwritten: the write that follows needs its entry.
    pub fn overwrite(&mut self, block: &Block, offset: u32) {
        if block.sealed {
            let first = block.id.saturating_mul(self.units);
            self.wanted = Some(first.saturating_add(offset / self.entries));
        } else {
            // The entries of an open superblock are in memory until its tail is programmed.
            self.cache.hits += 1;
        }
    }

    /// A write takes the entry that it needs.
    pub fn look_up(&mut self) {
        let wanted = self.wanted.take().filter(|_| self.is_in_flash());
        self.missed = wanted.is_some_and(|meta| !self.cache.look_up(meta));
    }

    /// Whether the last write read its entry from flash; true once.
    pub fn take_missed(&mut self) -> bool {
        std::mem::take(&mut self.missed)
    }

    /// A superblock is erased, with its metadata.
    pub fn erase(&mut self, block: u32) {
        let first = block.saturating_mul(self.units);
        (0..self.units).for_each(|meta| self.cache.forget(first.saturating_add(meta)));
    }

    /// Entries that were in memory, and those read from flash.
    pub fn look_ups(&self) -> (u64, u64) {
        (self.cache.hits, self.cache.misses)
    }

    /// Checks the cache. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.cache.audit()
    }
}
/// No slot.
const NONE: u32 = u32::MAX;

/// Slot of a list from the least to the most recently used.
#[derive(Clone, Copy, Debug)]
struct MetaSlot {
    page: u32,
    older: u32,
    newer: u32,
}

/// Least recently used meta pages leave first.
#[derive(Clone, Debug)]
struct MetaCache {
    slots: Vec<MetaSlot>,
    free: Vec<u32>,
    /// Slot per meta page.
    slot_of: Vec<u32>,
    oldest: u32,
    newest: u32,
    /// Look-ups that found their page in RAM.
    pub hits: u64,
    /// Look-ups that read flash.
    pub misses: u64,
}

impl MetaCache {
    /// An empty cache of `capacity` (at least one) out of `pages` meta pages.
    pub fn new(capacity: u32, pages: u32) -> MetaCache {
        let capacity = capacity.clamp(1, NONE - 1);
        MetaCache {
            slots: Vec::new(),
            free: (0..capacity).rev().collect(),
            slot_of: vec![NONE; pages as usize],
            oldest: NONE,
            newest: NONE,
            hits: 0,
            misses: 0,
        }
    }

    /// Looks a meta page up, reading it if needed; whether it was in RAM.
    pub fn look_up(&mut self, page: u32) -> bool {
        let index = page as usize;
        if index >= self.slot_of.len() {
            self.slot_of.resize(index + 1, NONE);
        }
        let slot = self.slot_of[index];
        if slot != NONE {
            self.hits += 1;
            self.unlink(slot);
            self.link_newest(slot);
            return true;
        }
        self.misses += 1;
        if self.free.is_empty() {
            let oldest = self.oldest;
            self.release(oldest);
        }
        if let Some(slot) = self.free.pop() {
            let fresh = MetaSlot { page, older: NONE, newer: NONE };
            match self.slots.get_mut(slot as usize) {
                Some(place) => *place = fresh,
                None => self.slots.push(fresh),
            }
            self.slot_of[index] = slot;
            self.link_newest(slot);
        }
        false
    }

    /// Drops a meta page whose superblock was erased.
    pub fn forget(&mut self, page: u32) {
        let slot = self.slot_of.get(page as usize).copied().unwrap_or(NONE);
        if slot != NONE {
            self.release(slot);
        }
    }

    fn release(&mut self, slot: u32) {
        self.unlink(slot);
        self.slot_of[self.slots[slot as usize].page as usize] = NONE;
        self.free.push(slot);
    }

    fn link_newest(&mut self, slot: u32) {
        self.slots[slot as usize].older = self.newest;
        self.slots[slot as usize].newer = NONE;
        match self.slots.get_mut(self.newest as usize) {
            Some(last) => last.newer = slot,
            None => self.oldest = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let MetaSlot { older, newer, .. } = self.slots[slot as usize];
        match self.slots.get_mut(older as usize) {
            Some(neighbour) => neighbour.newer = newer,
            None => self.oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(neighbour) => neighbour.older = older,
            None => self.newest = older,
        }
    }

    /// Checks that list, table and free slots agree.
    pub fn audit(&self) -> Result<(), String> {
        let (mut slot, mut count) = (self.oldest, 0);
        while slot != NONE && count <= self.slots.len() {
            let page = self.slots[slot as usize].page;
            if self.slot_of[page as usize] != slot {
                return Err(format!("meta page {page} is listed in slot {slot}, not in the table"));
            }
            (slot, count) = (self.slots[slot as usize].newer, count + 1);
        }
        let known = self.slot_of.iter().filter(|slot| **slot != NONE).count();
        if known == count { Ok(()) } else { Err(format!("{known} meta pages, {count} listed")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_holds_time_and_class() {
        let mut pages = Pages::new(4);
        assert_eq!((pages.age(1, 9), pages.class(1)), (None, LifetimeClass::Unseen));
        for class in [LifetimeClass::Short, LifetimeClass::Long, LifetimeClass::Unseen] {
            pages.stamp(1, 100, class);
            assert_eq!((pages.age(1, 107), pages.class(1)), (Some(7), class));
        }
        let late = (1_u64 << 34) - 2;
        pages.stamp(2, late, LifetimeClass::Long);
        assert_eq!(pages.age(2, late + 5), Some(5), "the clock passes 30 bits");
        pages.forget(1);
        assert_eq!(pages.age(1, 107), None);
        assert_eq!(size_of::<[i8; STATE_BYTES]>() + STAMP_BYTES, 36);
    }

    fn write(first_page: u32, pages: u32) -> HostRequest {
        HostRequest { first_page, pages, write: true }
    }

    #[test]
    fn hex_digits_stand_lowest_first_and_saturate() {
        let features = Features {
            previous_lifetime: 0x1A2F,
            request_pages: 5000,
            sequential: true,
            chunk_writes: 16,
            chunk_reads: 0,
            write_share: 0xF01C,
        };
        let mut inputs = Vec::new();
        Encoding::Hex.append(&features, &mut inputs);
        let digits: Vec<u32> = inputs.iter().map(|x| (x * 15.0).round() as u32).collect();
        let lifetime = [15, 2, 10, 1, 0, 0, 0, 0];
        assert_eq!(digits[..8], lifetime);
        assert_eq!(digits[8..], [15, 15, 15, 1, 0, 1, 0, 0, 0, 0, 0, 0, 12, 1, 0, 15]);
        assert_eq!(inputs.len(), Encoding::Hex.inputs());
        assert_eq!(Encoding::Hex.names().len(), HEX_INPUTS);
        assert_eq!(features.hex_digits().map(u32::from)[..], digits[..]);
    }

    #[test]
    fn logarithms_lie_between_0_and_1() {
        let features = Features { previous_lifetime: u32::MAX, ..Features::default() };
        let mut inputs = Vec::new();
        Encoding::Log.append(&features, &mut inputs);
        assert_eq!(inputs.len(), 6);
        assert!((inputs[0] - 1.0).abs() < 1e-6 && inputs[1] == 0.0);
        assert_eq!([1, 2, 3, 4].map(log2), [0.0, 1.0, 1.5, 2.0]);
    }

    #[test]
    fn a_run_needs_128_kib_within_its_requests() {
        let mut tracker = Tracker::new(1 << 16, 4096);
        for first in (0..31).chain([100, 31]) {
            tracker.on_request(&write(first, 1));
            assert!(!tracker.features(first, 0).sequential, "{first}");
        }
        (200..231).for_each(|first| tracker.on_request(&write(first, 1)));
        assert!(!tracker.features(230, 0).sequential, "31 pages are 124 KiB");
        tracker.on_request(&write(231, 1));
        assert!(tracker.features(231, 0).sequential, "32 pages are 128 KiB");
    }

    #[test]
    fn chunks_count_requests_and_forget_by_halves() {
        let mut tracker = Tracker::new(1024, 4096);
        (0..4).for_each(|_| tracker.on_request(&write(255, 2)));
        tracker.on_request(&HostRequest { first_page: 256, pages: 1, write: false });
        let (low, high) = (tracker.features(0, 7), tracker.features(256, 7));
        assert_eq!((low.chunk_writes, low.chunk_reads), (4, 0));
        assert_eq!((high.chunk_writes, high.chunk_reads), (4, 1));
        assert_eq!((low.previous_lifetime, low.request_pages), (7, 2));
        tracker.halve();
        assert_eq!(tracker.features(256, 7).chunk_writes, 2);
        tracker.on_request(&write(0, 1));
        assert_eq!(tracker.features(0, 7).write_share, 65535, "2 + 1 writes, 0 reads");
    }

    #[test]
    fn the_least_recently_used_page_leaves() {
        let mut cache = MetaCache::new(2, 4);
        assert_eq!(
            [0, 1, 0, 2, 0, 1].map(|page| cache.look_up(page)),
            [false, false, true, false, true, false]
        );
        assert_eq!((cache.hits, cache.misses), (2, 4));
        cache.forget(0);
        cache.forget(3);
        assert!(!cache.look_up(0), "it was erased");
        assert!(cache.look_up(1));
        assert!(!cache.look_up(9), "the drive may grow");
        assert_eq!(cache.audit(), Ok(()));
    }

    #[test]
    fn it_agrees_with_a_plain_list() {
        let (mut cache, mut plain) = (MetaCache::new(7, 40), Vec::new());
        let mut rng = cachewright_types::Seed(4).rng();
        for _ in 0..5000 {
            let page = rng.below(40).min(rng.below(40)) as u32;
            if rng.below(20) == 0 {
                cache.forget(page);
                plain.retain(|known| *known != page);
                continue;
            }
            let found = plain.contains(&page);
            plain.retain(|known| *known != page);
            plain.push(page);
            if plain.len() > 7 {
                plain.remove(0);
            }
            assert_eq!(cache.look_up(page), found);
        }
        assert_eq!(cache.audit(), Ok(()));
    }
}
