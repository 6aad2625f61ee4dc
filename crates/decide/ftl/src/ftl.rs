//! The translation layer: host writes in, programs, moves and erases out.
//!
//! For: the path of one host write, open superblocks, trim, counters. Must never know: what a
//! scheme thinks (it asks), what flash costs (it tells a [`Sink`]). Units: pages. Invariants
//! (audited): each mapped page has one valid copy; pages written = valid + invalid per superblock.
//! On a drive of fixed size at least one superblock is always free. `reserve_blocks` are free when
//! a host page is placed. Reclaim stands in `ftl/collect.rs`, the audit in `ftl/audit.rs`.

mod audit;
mod collect;
mod extra_meta;
mod fill;
mod occupancy;
mod trigger;
mod write_heads;

use crate::blocks::Superblocks;
use crate::geometry::{STREAM_LIMIT, Space};
use crate::mapping::{Mapping, Table, UNMAPPED};
use crate::reclaim::Named;
use crate::separation::{HostRequest, Invalidated, Registered, Separation, Stream, Write};
use crate::sink::{Address, Sink};
use crate::{FtlCounts, FtlError, Geometry, NEVER};
use occupancy::Occupancy;
use std::hint::black_box;
use trigger::Trigger;
use write_heads::WriteHeads;

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
}
