//! The translation layer: host writes in, programs, moves and erases out.
//!
//! Invariants (audited): each mapped page has one valid copy; pages written = valid + invalid per
//! superblock. On a drive of fixed size at least one superblock is always free. `reserve_blocks`
//! are free when a host page is placed.
//!
//! Reclaim: victims are chosen, emptied and erased. A victim's valid
//! pages always find room: one superblock is free, and pages join another stream when their own
//! would need one more.
//!
//! The superblocks that streams write to, and those that are free for them.
//!
//! How many pages a drive holds, and how many of them are of no use. Invariants (audited by `ftl`):
//! stored pages are those in superblocks, valid or not; garbage is what is invalid in sealed
//! superblocks.
//!
//! A page of metadata that some superblocks hold beside the others. Units are pages per superblock.
//!
//! A drive that begins filled. Schemes are notified of every filled superblock when it is sealed,
//! and of no page. What they learn from single writes begins with the first write after.
//!
//! The audit of every invariant is slow: it looks at every page.

use crate::geometry::{STREAM_LIMIT, Space};
use crate::layer::{Address, Sink};
use crate::mapping::{FillRule, Lazy, Mapping, Table, UNMAPPED};
use crate::reclaim::{Named, Round};
use crate::separation::{
    HostRequest, Invalidated, MovedPage, Registered, Separation, Stream, VictimSource, Write,
};
use crate::superblocks::{SuperblockState, Superblocks};
use crate::{Block, FtlCounts, FtlError, Geometry, NEVER};
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;

/// Pages whose entries are loaded together ahead of their writes.
const TOUCH_AHEAD: usize = 64;

/// A drive under one separation, its mapping in one kind of table.
pub struct Ftl<S, M = Mapping> {
    geometry: Geometry,
    separation: S,
    reclaim: Named,
    mapping: M,
    blocks: Superblocks,
    heads: WriteHeads,
    trigger: Trigger,
    /// Pages written by the host.
    clock: u64,
    occupancy: Occupancy,
    counts: FtlCounts,
    /// Valid pages of the victim at hand, with their offsets.
    moving: Vec<(u32, u32)>,
}

impl<S: Separation> Ftl<S> {
    /// An empty drive. Errors: limits of the geometry, no room beside the data.
    pub fn new(geometry: Geometry, separation: S, reclaim: Named) -> Result<Ftl<S>, FtlError>
    where
        S: Registered,
    {
        Ftl::with_name(geometry, separation, S::ENTRY.name, reclaim)
    }

    /// As [`Ftl::new`], for a separation outside the registry; `name` is for messages.
    pub fn with_name(
        geometry: Geometry,
        separation: S,
        name: &'static str,
        reclaim: Named,
    ) -> Result<Ftl<S>, FtlError> {
        Ftl::on_table(geometry, separation, name, reclaim)
    }

    /// Bytes of mapping, superblocks and reclaim; those of the separation are not counted.
    pub fn held_bytes(&self) -> usize {
        let lists = self.heads.held_bytes() + self.moving.capacity() * size_of::<(u32, u32)>();
        let reclaim = self.reclaim.policy.held_bytes();
        size_of::<Ftl<S>>() + self.mapping.held_bytes() + self.blocks.held_bytes() + reclaim + lists
    }
}

impl<S: Separation, M: Table> Ftl<S, M> {
    /// An empty drive whose mapping is kept in a table of kind `M`.
    fn on_table(
        geometry: Geometry,
        mut separation: S,
        name: &'static str,
        mut reclaim: Named,
    ) -> Result<Ftl<S, M>, FtlError> {
        separation.on_reclaim(&reclaim);
        let streams = separation.streams();
        if streams == 0 || streams > STREAM_LIMIT {
            let (separation, found, limit) = (name, streams, STREAM_LIMIT);
            return Err(FtlError::Streams { separation, found, limit });
        }
        let (meta_pages, meta_part) = (separation.meta_pages(), separation.meta_part());
        geometry.check(streams, meta_pages + u32::from(meta_part > 0.0))?;
        let data_pages = geometry.block_pages - meta_pages;
        reclaim.policy.prepare(data_pages);
        let trigger = Trigger::new(&geometry, streams, meta_pages);
        let count = match geometry.space {
            Space::Fixed { blocks, .. } => blocks,
            Space::GarbageShare { .. } => 0,
        };
        let mut ftl = Ftl {
            mapping: M::new(geometry.logical_pages, geometry.address_bits()),
            blocks: Superblocks::new(data_pages, reclaim.policy.order(trigger.min_invalid())),
            geometry,
            separation,
            reclaim,
            heads: WriteHeads::new(streams, meta_part),
            trigger,
            clock: 0,
            occupancy: Occupancy::default(),
            counts: FtlCounts::default(),
            moving: Vec::new(),
        };
        for _ in 0..count {
            let block = ftl.grow();
            ftl.heads.release(block);
        }
        if let Trigger::GarbageShare { .. } = trigger {
            (0..streams).for_each(|stream| ftl.open(Stream(stream as u8)));
        }
        Ok(ftl)
    }

    /// Announces a request of the host to the separation; its pages follow with [`Ftl::write`].
    #[inline(always)]
    pub fn begin(&mut self, request: &HostRequest) {
        self.separation.on_request(request, self.clock);
    }

    /// Writes one page of a request. `lifetime` is for separations that need the future
    /// ([`NEVER`] otherwise). Errors: a page beyond the end; a drive that reclaim cannot free.
    #[inline(always)]
    pub fn write<K: Sink>(
        &mut self,
        page: u32,
        lifetime: u32,
        sink: &mut K,
    ) -> Result<(), FtlError> {
        match self.trigger {
            Trigger::Reserve { blocks } if self.heads.free() < blocks => {
                self.free_superblocks(blocks, sink)?;
            }
            Trigger::GarbageShare { max_blocks, .. }
                if self.blocks.len() > max_blocks && self.heads.free() == 0 =>
            {
                self.clean_one(sink);
            }
            _ => {}
        }
        let old = self.mapping.address_of(page)?;
        self.clock += 1;
        self.counts.user_pages += 1;
        let rewrite = old != UNMAPPED;
        if rewrite {
            self.invalidate(page, old, false);
        }
        let (clock, live_pages) = (self.clock, self.occupancy.live());
        let write = Write { page, clock, rewrite, live_pages, lifetime };
        let stream = self.separation.place_user(&write);
        if S::READS_META && self.separation.meta_read() && rewrite {
            self.counts.meta_reads += 1;
            sink.read_meta(self.mapping.split(old));
        }
        if S::PREDICTS
            && let Some(waits) = self.separation.predicted()
        {
            sink.predict(page, waits);
        }
        self.occupancy.write(rewrite);
        let address = self.append(stream, page, sink);
        sink.program(page, self.mapping.split(address));
        Ok(())
    }

    /// Ends a request. Space that is limited by its share of garbage is reclaimed here.
    #[inline(always)]
    pub fn end<K: Sink>(&mut self, sink: &mut K) {
        if let Trigger::GarbageShare { share, .. } = self.trigger
            && self.occupancy.garbage_share() > share
        {
            self.clean_one(sink);
        }
    }

    /// Writes pages, each a request of its own, at full speed: the entries of the next pages are
    /// loaded together ahead of their writes. `lifetimes` is empty or as long as `pages`. Errors:
    /// as [`Ftl::write`]; the pages before the one at fault are written.
    pub fn write_each<K: Sink>(
        &mut self,
        pages: &[u32],
        lifetimes: &[u32],
        sink: &mut K,
    ) -> Result<(), FtlError> {
        for (index, chunk) in pages.chunks(TOUCH_AHEAD).enumerate() {
            let mut touched = 0_u32;
            for page in chunk {
                touched = touched.wrapping_add(self.mapping.touch(*page));
                touched = touched.wrapping_add(self.separation.touch(*page));
            }
            black_box(touched);
            for (offset, page) in chunk.iter().enumerate() {
                let lifetime = lifetimes.get(index * TOUCH_AHEAD + offset).copied();
                self.begin(&HostRequest { first_page: *page, pages: 1, write: true });
                self.write(*page, lifetime.unwrap_or(NEVER), sink)?;
                self.end(sink);
            }
        }
        Ok(())
    }

    /// Writes one request of several pages. Errors: as [`Ftl::write`]; nothing is written if the
    /// request passes the end of the drive.
    pub fn write_request<K: Sink>(
        &mut self,
        first_page: u32,
        pages: u32,
        sink: &mut K,
    ) -> Result<(), FtlError> {
        let range = self.range(first_page, pages)?;
        self.begin(&HostRequest { first_page, pages, write: true });
        for page in range {
            self.write(page, NEVER, sink)?;
        }
        self.end(sink);
        Ok(())
    }

    /// Forgets pages that the host no longer needs. Errors: a page beyond the end.
    pub fn trim(&mut self, first_page: u32, pages: u32) -> Result<(), FtlError> {
        for page in self.range(first_page, pages)? {
            let old = self.mapping.address_of(page)?;
            if old != UNMAPPED {
                self.forget(page, old);
                self.counts.trimmed_pages += 1;
            }
        }
        Ok(())
    }

    /// A page that lies at an address no longer holds data.
    fn forget(&mut self, page: u32, old: u32) {
        self.invalidate(page, old, true);
        self.mapping.unmap(page);
        self.occupancy.unmap();
    }

    fn range(&self, first_page: u32, pages: u32) -> Result<std::ops::Range<u32>, FtlError> {
        let end = u64::from(first_page) + u64::from(pages);
        if end <= u64::from(self.mapping.pages()) {
            Ok(first_page..end as u32)
        } else {
            Err(self.mapping.beyond_end(end - 1))
        }
    }

    /// Counts the old copy of a page as invalid.
    #[inline(always)]
    fn invalidate(&mut self, page: u32, old: u32, trimmed: bool) {
        let Address { block, offset } = self.mapping.split(old);
        let sealed = self.blocks.invalidate(block);
        self.occupancy.invalidate(sealed);
        if S::WATCHES_INVALIDATION || trimmed {
            let (block, clock) = (&self.blocks.get(block), self.clock);
            self.separation.on_invalidate(&Invalidated { page, offset, block, clock, trimmed });
        }
    }

    /// Puts a page at the end of a stream and returns the address.
    #[inline(always)]
    fn append<K: Sink>(&mut self, stream: Stream, page: u32, sink: &mut K) -> u32 {
        let (address, last) = loop {
            match self.heads.take(stream) {
                Some(taken) => break taken,
                None => self.open(self.heads.stream(stream)),
            }
        };
        self.mapping.place(page, address);
        if last {
            self.seal(self.heads.stream(stream), sink);
        }
        address
    }

    #[cold]
    #[inline(never)]
    fn open(&mut self, stream: Stream) {
        let block = self.heads.take_free().unwrap_or_else(|| self.grow());
        self.blocks.open(block, stream, self.clock);
        self.heads.open(stream, self.mapping.first(block), self.blocks.data_pages());
    }

    #[cold]
    #[inline(never)]
    fn seal<K: Sink>(&mut self, stream: Stream, sink: &mut K) {
        let Address { block, offset } = self.mapping.split(self.heads.close(stream));
        // A page of metadata in the place of data is invalid from the start.
        let extra = self.blocks.data_pages().saturating_sub(offset + 1);
        self.blocks.waste(block, extra);
        self.occupancy.store(extra);
        self.blocks.seal(block, self.clock);
        self.occupancy.seal(self.blocks.invalid(block));
        for offset in offset + 1..self.geometry.block_pages {
            self.counts.meta_pages += 1;
            sink.program_meta(Address { block, offset });
        }
        self.separation.on_seal(&self.blocks.get(block));
        if let Trigger::GarbageShare { .. } = self.trigger {
            self.open(stream);
        }
    }

    /// Adds a superblock.
    fn grow(&mut self) -> u32 {
        self.mapping.grow();
        self.blocks.grow()
    }

    /// What the drive has done so far.
    pub fn counts(&self) -> FtlCounts {
        self.counts
    }

    /// Pages written by the host so far.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// The size of the drive.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Logical pages that hold data.
    pub fn mapped_pages(&self) -> u32 {
        self.occupancy.mapped()
    }

    /// Free superblocks.
    pub fn free_blocks(&self) -> u32 {
        self.heads.free()
    }

    /// The superblocks, to look at (wear, classes).
    pub fn blocks(&self) -> &Superblocks {
        &self.blocks
    }

    /// The separation, to look at.
    pub fn separation(&self) -> &S {
        &self.separation
    }

    /// The separation, to be given a model or asked for a dataset between writes.
    pub fn separation_mut(&mut self) -> &mut S {
        &mut self.separation
    }

    /// Where a page lies; nothing if it holds no data. Errors: a page beyond the end.
    pub fn locate(&self, page: u32) -> Result<Option<Address>, FtlError> {
        let address = self.mapping.address_of(page)?;
        Ok(Some(address)
            .filter(|address| *address != UNMAPPED)
            .map(|address| self.mapping.split(address)))
    }

    /// Starts to load what [`Ftl::locate`] of a page reads of its table first.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        self.mapping.prefetch(page);
    }

    /// Cleans until so many superblocks are free.
    #[cold]
    #[inline(never)]
    fn free_superblocks<K: Sink>(&mut self, reserve: u32, sink: &mut K) -> Result<(), FtlError> {
        let limit = self.blocks.len().saturating_mul(8).saturating_add(64);
        let mut rounds = 0;
        while self.heads.free() < reserve {
            if rounds == limit || !self.clean_one(sink) {
                let (free, reclaim) = (self.heads.free(), self.reclaim.name);
                return Err(FtlError::Full { free, reserve, reclaim, rounds });
            }
            rounds += 1;
        }
        Ok(())
    }

    /// Work of idle time: cleans at most `max_blocks` superblocks while fewer are free than the
    /// background watermark; returns how many it cleaned. Superblocks without an invalid page are
    /// left alone. Nothing is done in space that is limited by its share of garbage.
    pub fn clean_idle<K: Sink>(&mut self, max_blocks: u32, sink: &mut K) -> u32 {
        let Space::Fixed { idle_blocks, .. } = self.geometry.space else { return 0 };
        let mut cleaned = 0;
        while cleaned < max_blocks
            && self.heads.free() < idle_blocks
            && self.occupancy.garbage() > 0
            && self.clean_one(sink)
        {
            cleaned += 1;
        }
        cleaned
    }

    /// Empties and erases a superblock of the caller's choice, as wear levelling does. False, and
    /// nothing is done, if it is not sealed or no superblock is free to take its pages.
    pub fn clean<K: Sink>(&mut self, block: u32, sink: &mut K) -> bool {
        let able = self.blocks.is_sealed(block) && self.heads.free() > 0;
        if able {
            self.empty(block, sink);
        }
        able
    }

    /// Empties and erases one victim; false if there is none.
    #[cold]
    #[inline(never)]
    fn clean_one<K: Sink>(&mut self, sink: &mut K) -> bool {
        match self.choose() {
            Some(victim) => {
                self.empty(victim, sink);
                true
            }
            None => false,
        }
    }

    fn choose(&mut self) -> Option<u32> {
        let free = self.heads.free();
        let streams = match self.separation.choose_victim(&mut self.blocks, free, self.clock) {
            VictimSource::Block(block) if self.blocks.is_sealed(block) => return Some(block),
            VictimSource::Among(streams) => streams,
            VictimSource::Any | VictimSource::Block(_) => u64::MAX,
        };
        self.blocks.settle();
        let round = Round {
            blocks: &self.blocks,
            clock: self.clock,
            streams,
            min_invalid: self.trigger.min_invalid(),
            short_lived: self.separation.short_lived(),
        };
        let found = self.reclaim.policy.choose(&round);
        if found.is_some() || streams == u64::MAX {
            return found;
        }
        self.reclaim.policy.choose(&Round { streams: u64::MAX, ..round })
    }

    /// Forgets the valid pages of a sealed superblock that are not to be kept.
    fn drop_pages<K: Sink>(&mut self, victim: u32, sink: &mut K) {
        let mut valid = std::mem::take(&mut self.moving);
        self.mapping.gather(victim, self.blocks.get(victim).pages, &mut valid);
        for (page, offset) in &valid {
            if !sink.keep(*page, Address { block: victim, offset: *offset }) {
                self.forget(*page, self.mapping.first(victim) + offset);
                self.counts.dropped_pages += 1;
            }
        }
        self.moving = valid;
    }

    /// Moves the valid pages of a sealed superblock, in the order of offsets, and erases it.
    fn empty<K: Sink>(&mut self, victim: u32, sink: &mut K) {
        if K::MAY_DROP {
            self.drop_pages(victim, sink);
        }
        let block = self.blocks.get(victim);
        self.separation.on_collect(&block, self.clock);
        self.blocks.withdraw(victim);
        let mut moving = std::mem::take(&mut self.moving);
        self.mapping.gather(victim, block.pages, &mut moving);
        for (page, offset) in &moving {
            self.relocate(&block, *page, *offset, sink);
        }
        self.counts.moved_pages += moving.len() as u64;
        self.counts.collections += 1;
        self.counts.reclaimed_pages += u64::from(block.invalid);
        self.occupancy.erase(block.invalid);
        self.moving = moving;
        self.blocks.erase(victim);
        self.heads.release(victim);
        sink.erase(victim);
        self.separation.on_erase(&block, self.clock);
    }

    #[inline(always)]
    fn relocate<K: Sink>(&mut self, victim: &Block, page: u32, offset: u32, sink: &mut K) {
        let moved = MovedPage { page, offset, victim, clock: self.clock };
        let mut stream = self.separation.place_moved(&moved);
        if self.heads.is_stuck(stream) {
            stream = self.stream_with_space(stream);
        }
        let address = self.append(stream, page, sink);
        sink.relocate(page, Address { block: victim.id, offset }, self.mapping.split(address));
    }

    /// A stream whose superblock has space, for a page that would need a superblock when none is
    /// free. The highest stream is taken: its pages are expected to stay longest. Space without end
    /// needs no such help.
    #[cold]
    #[inline(never)]
    fn stream_with_space(&mut self, wanted: Stream) -> Stream {
        if let Trigger::GarbageShare { .. } = self.trigger {
            return wanted;
        }
        let Some(stream) = self.heads.last_with_space() else { return wanted };
        self.counts.misplaced_pages += 1;
        stream
    }

    /// Checks every invariant. The error says which one is broken and how.
    pub fn audit(&self) -> Result<(), String> {
        self.blocks.audit()?;
        self.separation.audit()?;
        let stored = self.audit_blocks()?;
        let counted = &self.occupancy;
        if stored != counted.stored() {
            return Err(format!("{stored} pages are stored, {} are counted", counted.stored()));
        }
        let mut mapped = 0;
        for page in 0..self.mapping.pages() {
            let address = self.mapping.address_of(page).map_err(|error| error.to_string())?;
            if address == UNMAPPED {
                continue;
            }
            mapped += 1;
            if self.mapping.page_at(address) != page {
                let Address { block, offset } = self.mapping.split(address);
                return Err(format!("page {page} maps to {block}:{offset}, which is another's"));
            }
        }
        if mapped != counted.mapped() {
            return Err(format!("{mapped} pages are mapped, {} are counted", counted.mapped()));
        }
        let free = self.heads.free();
        if let Trigger::Reserve { .. } = self.trigger
            && free == 0
        {
            return Err("no superblock is free".to_owned());
        }
        Ok(())
    }

    /// Checks states and counts of superblocks; returns the pages they store.
    fn audit_blocks(&self) -> Result<u64, String> {
        let (mut stored, mut garbage, mut free) = (0, 0, 0);
        for id in 0..self.blocks.len() {
            let block = self.blocks.get(id);
            let state = self.blocks.state(id);
            let written = match state {
                SuperblockState::Free => 0,
                SuperblockState::Sealed => block.pages,
                SuperblockState::Open => {
                    let first = self.mapping.first(id);
                    let next = self.heads.next_before(block.stream, first + block.pages);
                    let none = || format!("superblock {id} is open, no stream writes to it");
                    next.ok_or_else(none)? - first
                }
            };
            let valid = self.mapping.valid_in(id, written);
            if valid + block.invalid != written {
                let invalid = block.invalid;
                return Err(format!("superblock {id}: {valid} + {invalid} of {written} pages"));
            }
            stored += u64::from(written);
            garbage += if state == SuperblockState::Sealed { u64::from(block.invalid) } else { 0 };
            free += u32::from(state == SuperblockState::Free);
        }
        if garbage != self.occupancy.garbage() {
            let counted = self.occupancy.garbage();
            return Err(format!("{garbage} pages of garbage, {counted} counted"));
        }
        if free != self.heads.free() {
            return Err(format!("{free} superblocks are free, {} are listed", self.heads.free()));
        }
        Ok(stored)
    }
}

/// What starts reclaim.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trigger {
    /// Fewer free superblocks than this.
    Reserve { blocks: u32 },
    /// More garbage than a share of all pages, or more superblocks than that needs.
    GarbageShare { share: f64, max_blocks: u32, min_invalid: u32 },
}

impl Trigger {
    /// Of a drive with so many streams, whose superblocks hold so many pages of metadata.
    fn new(geometry: &Geometry, streams: u32, meta_pages: u32) -> Trigger {
        match geometry.space {
            Space::Fixed { reserve_blocks, .. } => Trigger::Reserve { blocks: reserve_blocks },
            Space::GarbageShare { share } => {
                let data_pages = geometry.block_pages - meta_pages;
                let min_invalid = ((share * f64::from(data_pages)).ceil() as u32).max(1);
                let max_blocks = geometry.max_blocks(share, streams, meta_pages) as u32;
                Trigger::GarbageShare { share, max_blocks, min_invalid }
            }
        }
    }

    /// Fewest invalid pages of a victim.
    fn min_invalid(self) -> u32 {
        match self {
            Trigger::Reserve { .. } => 0,
            Trigger::GarbageShare { min_invalid, .. } => min_invalid,
        }
    }
}

/// The open superblock of a stream: addresses left to write.
#[derive(Clone, Copy, Debug, Default)]
struct OpenSuperblock {
    next: u32,
    end: u32,
}

/// Where streams write, and free superblocks.
#[derive(Clone, Debug)]
struct WriteHeads {
    heads: Vec<OpenSuperblock>,
    /// The one free for longest first.
    free: VecDeque<u32>,
    extra_meta: ExtraMetaPage,
}

impl WriteHeads {
    /// No superblock is open or free. `extra_meta` of all hold one page of metadata more.
    fn new(streams: u32, extra_meta: f64) -> WriteHeads {
        WriteHeads {
            heads: vec![OpenSuperblock::default(); streams as usize],
            free: VecDeque::new(),
            extra_meta: ExtraMetaPage::new(extra_meta),
        }
    }

    /// Bytes of both lists.
    fn held_bytes(&self) -> usize {
        size_of_val(self.heads.as_slice()) + self.free.capacity() * size_of::<u32>()
    }

    /// How many streams there are.
    fn streams(&self) -> u32 {
        self.heads.len() as u32
    }

    /// The stream meant: the last one for a number beyond it.
    #[inline(always)]
    fn stream(&self, wanted: Stream) -> Stream {
        Stream(wanted.0.min((self.heads.len() - 1) as u8))
    }

    /// Free superblocks.
    #[inline(always)]
    fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// A superblock is free from now on.
    fn release(&mut self, block: u32) {
        self.free.push_back(block);
    }

    /// Takes the superblock that has been free for longest.
    fn take_free(&mut self) -> Option<u32> {
        self.free.pop_front()
    }

    /// Whether the stream meant needs a superblock before its next page, and none is free.
    #[inline(always)]
    fn is_stuck(&self, wanted: Stream) -> bool {
        let head = self.heads[wanted.index().min(self.heads.len() - 1)];
        head.next == head.end && self.free.is_empty()
    }

    /// The next address of the stream meant, and whether it is the last of its superblock; nothing
    /// if it needs a superblock first.
    #[inline(always)]
    fn take(&mut self, wanted: Stream) -> Option<(u32, bool)> {
        let last = self.heads.len() - 1;
        let head = &mut self.heads[wanted.index().min(last)];
        if head.next == head.end {
            return None;
        }
        let address = head.next;
        head.next = address + 1;
        Some((address, address + 1 == head.end))
    }

    /// A stream writes to so many addresses of a new superblock, less one where the superblock
    /// holds a page of metadata more.
    fn open(&mut self, stream: Stream, first: u32, pages: u32) {
        let end = first + pages - u32::from(self.extra_meta.take_due());
        self.heads[stream.index()] = OpenSuperblock { next: first, end };
    }

    /// A stream writes to the rest of a superblock that was filled in part.
    fn go_on(&mut self, stream: Stream, next: u32, end: u32) {
        self.heads[stream.index()] = OpenSuperblock { next, end };
    }

    /// A stream has filled its superblock; the last address.
    fn close(&mut self, stream: Stream) -> u32 {
        std::mem::take(&mut self.heads[stream.index()]).end - 1
    }

    /// The highest stream that needs no superblock.
    fn last_with_space(&self) -> Option<Stream> {
        let stream = self.heads.iter().rposition(|head| head.next != head.end)?;
        Some(Stream(stream as u8))
    }

    /// The next address of a stream, if it writes to the superblock that ends at `end`.
    fn next_before(&self, stream: Stream, end: u32) -> Option<u32> {
        let head = self.heads[stream.index()];
        let extra = !self.extra_meta.never() && head.end + 1 == end;
        (head.end == end || extra).then_some(head.next)
    }
}
/// Counts of pages, and what becomes of them.
#[derive(Clone, Copy, Debug, Default)]
struct Occupancy {
    mapped: u32,
    stored: u64,
    garbage: u64,
}

impl Occupancy {
    /// The host wrote a page; `rewrite` where it held data before.
    #[inline(always)]
    fn write(&mut self, rewrite: bool) {
        self.mapped += u32::from(!rewrite);
        self.stored += 1;
    }

    /// A logical page no longer holds data.
    fn unmap(&mut self) {
        self.mapped -= 1;
    }

    /// A page became invalid; `sealed` where its superblock is.
    #[inline(always)]
    fn invalidate(&mut self, sealed: bool) {
        self.garbage += u64::from(sealed);
    }

    /// An open superblock takes pages without data of the host.
    fn store(&mut self, pages: u32) {
        self.stored += u64::from(pages);
    }

    /// A superblock is sealed: its invalid pages are garbage from now on.
    fn seal(&mut self, invalid: u32) {
        self.garbage += u64::from(invalid);
    }

    /// A superblock is erased; its valid pages have moved.
    fn erase(&mut self, invalid: u32) {
        self.garbage -= u64::from(invalid);
        self.stored -= u64::from(invalid);
    }

    /// So many logical pages hold data from the start.
    fn fill(&mut self, mapped: u32) {
        self.mapped = mapped;
    }

    fn mapped(&self) -> u32 {
        self.mapped
    }

    fn stored(&self) -> u64 {
        self.stored
    }

    fn garbage(&self) -> u64 {
        self.garbage
    }

    /// Stored pages that are not garbage.
    #[inline(always)]
    fn live(&self) -> u64 {
        self.stored - self.garbage
    }

    /// Garbage among the stored pages.
    #[inline(always)]
    fn garbage_share(&self) -> f64 {
        self.garbage as f64 / self.stored as f64
    }
}
/// Superblocks among all that hold one page of metadata more, in turn.
#[derive(Clone, Copy, Debug)]
struct ExtraMetaPage {
    /// Of all superblocks, from 0 to below 1.
    share: f64,
    /// How much of a page is due.
    due: f64,
}

impl ExtraMetaPage {
    /// Such a page in this share of all superblocks.
    fn new(share: f64) -> ExtraMetaPage {
        ExtraMetaPage { share, due: 0.0 }
    }

    /// Whether the superblock that is opened now holds one; asked once for each.
    fn take_due(&mut self) -> bool {
        self.due += self.share;
        let holds = self.due >= 1.0;
        self.due -= f64::from(u8::from(holds));
        holds
    }

    /// Whether no superblock ever holds one.
    fn never(&self) -> bool {
        self.share == 0.0
    }
}

impl<S: Separation> Ftl<S, Lazy> {
    /// A drive of fixed size whose first logical pages lie where `fill` puts them, all on the first
    /// stream. Its open superblock has `skipped` pages without data, so that drives that share a
    /// rule do not clean in step. Errors: as [`Ftl::new`]; more superblocks or pages than the drive
    /// has beside the open ones and one that is free, superblocks of another size.
    pub fn filled(
        geometry: Geometry,
        separation: S,
        reclaim: Named,
        fill: &Arc<FillRule>,
        skipped: u32,
    ) -> Result<Ftl<S, Lazy>, FtlError>
    where
        S: Registered,
    {
        let mut ftl: Ftl<S, Lazy> = Ftl::on_table(geometry, separation, S::ENTRY.name, reclaim)?;
        let (blocks, free) = (fill.blocks(), ftl.heads.free());
        let max = free.saturating_sub(ftl.heads.streams() + 1);
        let block_pages = ftl.blocks.data_pages();
        for (what, found, low, high) in [
            ("filled superblocks", blocks, 0, max),
            ("filled pages", fill.pages(), 0, geometry.logical_pages),
            ("data pages in a filled superblock", fill.block_pages(), block_pages, block_pages),
        ] {
            if !(low..=high).contains(&found) {
                let (found, expected) = (u64::from(found), format!("{low}..={high}"));
                return Err(FtlError::Geometry { what, found, expected });
            }
        }
        for block in 0..blocks {
            ftl.heads.take_free();
            let invalid = block_pages - fill.valid(block).min(block_pages);
            ftl.blocks.open(block, Stream(0), ftl.clock);
            ftl.clock += u64::from(block_pages);
            ftl.blocks.waste(block, invalid);
            ftl.blocks.seal(block, ftl.clock);
            ftl.occupancy.store(block_pages);
            ftl.occupancy.seal(invalid);
            ftl.separation.on_seal(&ftl.blocks.get(block));
        }
        ftl.occupancy.fill(fill.pages());
        ftl.mapping.fill(Arc::clone(fill));
        let skipped = skipped.min(block_pages - 1);
        if skipped > 0
            && let Some(block) = ftl.heads.take_free()
        {
            ftl.blocks.open(block, Stream(0), ftl.clock);
            ftl.blocks.waste(block, skipped);
            ftl.occupancy.store(skipped);
            let first = ftl.mapping.first(block);
            ftl.heads.go_on(Stream(0), first + skipped, first + block_pages);
        }
        Ok(ftl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_victim_holds_the_share_of_garbage_at_least() {
        let space = Space::GarbageShare { share: 0.15 };
        let geometry = Geometry { logical_pages: 1024, block_pages: 64, space };
        // 0.15 of the 62 pages without metadata is 9.3.
        let trigger = Trigger::new(&geometry, 2, 2);
        assert_eq!(trigger.min_invalid(), 10);
        assert_eq!(Trigger::Reserve { blocks: 3 }.min_invalid(), 0);
    }

    #[test]
    fn a_stream_fills_one_superblock_after_the_other() {
        let mut heads = WriteHeads::new(2, 0.5);
        let stream = heads.stream(Stream(9));
        assert_eq!((stream, heads.streams(), heads.last_with_space()), (Stream(1), 2, None));
        [4, 7].into_iter().for_each(|block| heads.release(block));
        assert_eq!((heads.take_free(), heads.free()), (Some(4), 1));
        assert_eq!((heads.take(stream), heads.is_stuck(stream)), (None, false));
        heads.open(stream, 40, 2);
        assert_eq!(heads.last_with_space(), Some(stream));
        assert_eq!(
            (heads.take(stream), heads.take(Stream(9))),
            (Some((40, false)), Some((41, true)))
        );
        assert_eq!((heads.close(stream), heads.last_with_space()), (41, None));
        heads.open(stream, 70, 2);
        assert_eq!(heads.next_before(stream, 72), Some(70), "its last page is of metadata");
        assert_eq!(heads.next_before(stream, 73), None);
        assert_eq!((heads.take(stream), heads.close(stream)), (Some((70, true)), 70));
        heads.go_on(Stream(0), 81, 82);
        assert_eq!((heads.take(Stream(0)), heads.take(Stream(0))), (Some((81, true)), None));
    }

    #[test]
    fn counts_follow_a_superblock_from_its_first_page_to_its_erase() {
        let mut pages = Occupancy::default();
        pages.write(false);
        pages.write(true);
        pages.invalidate(false);
        assert_eq!((pages.mapped(), pages.stored(), pages.garbage()), (1, 2, 0));
        // One of four pages holds metadata.
        pages.store(2);
        pages.seal(2);
        pages.invalidate(true);
        pages.unmap();
        assert_eq!((pages.mapped(), pages.live(), pages.garbage_share()), (0, 1, 0.75));
        pages.erase(3);
        assert_eq!((pages.stored(), pages.garbage()), (1, 0));
    }

    #[test]
    fn a_quarter_of_superblocks_is_every_fourth() {
        let mut extra = ExtraMetaPage::new(0.25);
        let due: Vec<bool> = (0..8).map(|_| extra.take_due()).collect();
        assert_eq!(due, [false, false, false, true, false, false, false, true]);
        assert!(ExtraMetaPage::new(0.0).never() && !extra.never());
    }
}
