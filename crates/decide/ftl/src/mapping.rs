//! Logical page to physical page and back.
//!
//! For: the seam [`Table`] and its plain form, two `u32` arrays. Must never know: superblocks'
//! states, streams. A physical page is valid if and only if its logical page maps back to it, so no
//! bitmap is kept. Units: pages; an address is `superblock << bits | offset`. Memory: 4 bytes per
//! logical and per physical page; `lazy` keeps a drive that was filled at once in less.

pub mod lazy;
mod sparse;

use crate::FtlError;
use crate::sink::Address;
use cachewright_memory::prefetch;

/// The address of a page that is not mapped.
pub const UNMAPPED: u32 = u32::MAX;

/// Both directions of a mapping. Only [`Table::address_of`] may be asked for a page beyond the end.
pub trait Table: Send {
    /// Nothing is mapped, no superblocks.
    fn new(logical_pages: u32, bits: u32) -> Self;
    /// Adds one superblock of physical pages.
    fn grow(&mut self);
    /// Logical pages.
    fn pages(&self) -> u32;
    /// Bits of an address that count pages within a superblock.
    fn bits(&self) -> u32;
    /// The address of a logical page, or [`UNMAPPED`]; that also beyond the end.
    fn touch(&self, page: u32) -> u32;
    /// Starts to load what [`Table::touch`] of a page reads first.
    fn prefetch(&self, page: u32);
    /// The page last written to an address, or [`UNMAPPED`].
    fn page_at(&self, address: u32) -> u32;
    /// Maps a page to an address.
    fn place(&mut self, page: u32, address: u32);
    /// Unmaps a page.
    fn unmap(&mut self, page: u32);

    /// The address of a logical page, or [`UNMAPPED`]. Errors: a page beyond the end.
    #[inline(always)]
    fn address_of(&self, page: u32) -> Result<u32, FtlError> {
        if page < self.pages() { Ok(self.touch(page)) } else { Err(self.beyond_end(page.into())) }
    }

    /// The refusal of a page that the drive does not have.
    #[cold]
    fn beyond_end(&self, page: u64) -> FtlError {
        FtlError::BeyondEnd { page, pages: self.pages() }
    }

    /// Superblock and offset of an address.
    #[inline(always)]
    fn split(&self, address: u32) -> Address {
        Address { block: address >> self.bits(), offset: address & ((1 << self.bits()) - 1) }
    }

    /// The first address of a superblock.
    #[inline(always)]
    fn first(&self, block: u32) -> u32 {
        block << self.bits()
    }

    /// Valid pages among the first `pages` of a superblock.
    fn valid_in(&self, block: u32, pages: u32) -> u32 {
        let first = self.first(block);
        let addresses = first..first + pages;
        addresses.filter(|address| self.touch(self.page_at(*address)) == *address).count() as u32
    }

    /// Writes the valid pages among the first `pages` of a superblock to `valid`, with their
    /// offsets, in the order of offsets.
    fn gather(&self, block: u32, pages: u32, valid: &mut Vec<(u32, u32)>) {
        let first = self.first(block);
        valid.clear();
        for offset in 0..pages {
            let page = self.page_at(first + offset);
            if self.touch(page) == first + offset {
                valid.push((page, offset));
            }
        }
    }
}

/// Two arrays.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Physical address of each logical page.
    forward: Vec<u32>,
    /// Logical page last written to each physical page.
    back: Vec<u32>,
    bits: u32,
}

impl Mapping {
    /// Bytes of both arrays.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of_val(self.forward.as_slice()) + size_of_val(self.back.as_slice())
    }
}

impl Table for Mapping {
    fn new(logical_pages: u32, bits: u32) -> Mapping {
        Mapping { forward: vec![UNMAPPED; logical_pages as usize], back: Vec::new(), bits }
    }

    fn grow(&mut self) {
        self.back.resize(self.back.len() + (1 << self.bits), UNMAPPED);
    }

    #[inline(always)]
    fn pages(&self) -> u32 {
        self.forward.len() as u32
    }

    #[inline(always)]
    fn bits(&self) -> u32 {
        self.bits
    }

    #[inline(always)]
    fn touch(&self, page: u32) -> u32 {
        self.forward.get(page as usize).copied().unwrap_or(UNMAPPED)
    }

    #[inline(always)]
    fn prefetch(&self, page: u32) {
        prefetch(&self.forward, page as usize);
    }

    #[inline(always)]
    fn page_at(&self, address: u32) -> u32 {
        self.back.get(address as usize).copied().unwrap_or(UNMAPPED)
    }

    #[inline(always)]
    fn place(&mut self, page: u32, address: u32) {
        self.back[address as usize] = page;
        self.forward[page as usize] = address;
    }

    #[inline(always)]
    fn unmap(&mut self, page: u32) {
        self.forward[page as usize] = UNMAPPED;
    }

    #[inline(always)]
    fn address_of(&self, page: u32) -> Result<u32, FtlError> {
        match self.forward.get(page as usize) {
            Some(address) => Ok(*address),
            None => Err(self.beyond_end(u64::from(page))),
        }
    }

    /// The loads do not wait for each other, and nothing branches on what they find.
    fn gather(&self, block: u32, pages: u32, valid: &mut Vec<(u32, u32)>) {
        let first = self.first(block);
        valid.resize(pages as usize, (0, 0));
        let mut count = 0;
        let written = &self.back[first as usize..(first + pages) as usize];
        for (offset, page) in (0..).zip(written) {
            valid[count] = (*page, offset);
            count += usize::from(self.touch(*page) == first + offset);
        }
        valid.truncate(count);
    }
}
