//! Metadata of pages in flash, with some of it in memory.
//!
//! For: which meta page a write needs, and whether it is read from flash. Must never know: what the
//! metadata says. Units: pages, meta pages. Source: Shiro, section III-D.

use super::meta_cache::MetaCache;
use super::pages::{STAMP_BYTES, STATE_BYTES};
use super::settings::ShiroSettings;
use crate::{Block, Geometry};

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
