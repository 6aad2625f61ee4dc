//! The memory of a guest, as far as its front end shares it.
//!
//! The guest changes it at any time, also while it is read: what is looked at is copied once and
//! looked at in the copy. The process that shares it is trusted not to make its files shorter.

use super::message::MemoryRegion;
use crate::io::IoError;
use crate::io::shared::map_file;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestRegionMmap};

/// A region that is mapped.
#[derive(Debug)]
struct MappedRegion {
    region: MemoryRegion,
    mapping: Arc<GuestRegionMmap>,
}

/// A guest's memory; see the top of the file.
#[derive(Debug, Default)]
pub struct SharedMemory {
    regions: Vec<MappedRegion>,
    map: Option<GuestMemoryMmap>,
}

impl SharedMemory {
    /// These regions are all that there are. Errors: one cannot be mapped, or they overlap; nothing
    /// is mapped then.
    pub fn set(&mut self, regions: Vec<(MemoryRegion, OwnedFd)>) -> Result<(), IoError> {
        *self = SharedMemory::default();
        let mut others = SharedMemory::default();
        for (region, file) in regions {
            others.add(region, file)?;
        }
        *self = others;
        Ok(())
    }

    /// One more region. Errors: it cannot be mapped, or overlaps another; nothing changes then.
    pub fn add(&mut self, region: MemoryRegion, file: OwnedFd) -> Result<(), IoError> {
        if region.user.checked_add(region.bytes).is_none() {
            return Err(IoError::INVALID);
        }
        let mapping = map_file(file, region.offset, region.bytes)?;
        let mapping = GuestRegionMmap::new(mapping, GuestAddress(region.guest));
        let mapping = Arc::new(mapping.ok_or(IoError::INVALID)?);
        let map = match &self.map {
            Some(map) => map.insert_region(mapping.clone()),
            None => GuestMemoryMmap::from_arc_regions(vec![mapping.clone()]),
        };
        self.map = Some(map.map_err(|_| IoError::INVALID)?);
        self.regions.push(MappedRegion { region, mapping });
        Ok(())
    }

    /// A region goes. Errors: there is none such.
    pub fn remove(&mut self, region: MemoryRegion) -> Result<(), IoError> {
        let is_meant = |found: &MappedRegion| {
            let MemoryRegion { guest, bytes, user, .. } = found.region;
            (guest, bytes, user) == (region.guest, region.bytes, region.user)
        };
        let place = self.regions.iter().position(is_meant).ok_or(IoError::INVALID)?;
        self.regions.remove(place);
        let mut left: Vec<_> = self.regions.iter().map(|found| found.mapping.clone()).collect();
        left.sort_by_key(|mapping| vm_memory::GuestMemoryRegion::start_addr(&**mapping));
        self.map = GuestMemoryMmap::from_arc_regions(left).ok();
        Ok(())
    }

    /// Regions that there are.
    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    /// Where the guest has what its front end has at `user`, if all `bytes` bytes are in one
    /// region.
    pub fn guest_address(&self, user: u64, bytes: u64) -> Option<u64> {
        let end = user.checked_add(bytes)?;
        let is_inside = |found: &&MappedRegion| {
            found.region.user <= user && end <= found.region.user + found.region.bytes
        };
        let MemoryRegion { guest, user: first, .. } = self.regions.iter().find(is_inside)?.region;
        Some(user - first + guest)
    }

    /// Whether the guest has shared a range.
    pub fn has(&self, guest: u64, bytes: u64) -> bool {
        let (map, bytes) = (self.map.as_ref(), usize::try_from(bytes));
        map.zip(bytes.ok()).is_some_and(|(map, bytes)| {
            bytes == 0 || GuestMemoryBackend::check_range(map, GuestAddress(guest), bytes)
        })
    }

    fn map(&self) -> Result<&GuestMemoryMmap, IoError> {
        self.map.as_ref().ok_or(IoError::INVALID)
    }

    /// Copies bytes of the guest. Errors: it has not shared them.
    pub fn read(&self, guest: u64, into: &mut [u8]) -> Result<(), IoError> {
        self.map()?.read_slice(into, GuestAddress(guest)).map_err(|_| IoError::INVALID)
    }

    /// Gives bytes to the guest. Errors: it has not shared the place.
    pub fn write(&self, guest: u64, bytes: &[u8]) -> Result<(), IoError> {
        self.map()?.write_slice(bytes, GuestAddress(guest)).map_err(|_| IoError::INVALID)
    }

    /// Reads a number that the guest may just write. What it wrote before is read as it is then.
    pub fn load(&self, guest: u64) -> Result<u16, IoError> {
        let found = self.map()?.load(GuestAddress(guest), Ordering::Acquire);
        found.map(u16::from_le).map_err(|_| IoError::INVALID)
    }

    /// Writes a number that the guest may just read. Before it the guest sees what was written
    /// before.
    pub fn store(&self, guest: u64, number: u16) -> Result<(), IoError> {
        let stored = self.map()?.store(number.to_le(), GuestAddress(guest), Ordering::Release);
        stored.map_err(|_| IoError::INVALID)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    fn memory(bytes: u64) -> OwnedFd {
        let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, bytes).unwrap();
        file
    }

    fn region(guest: u64, bytes: u64, user: u64) -> MemoryRegion {
        MemoryRegion { guest, bytes, user, offset: 0 }
    }

    #[test]
    fn regions_are_read_written_and_told_apart() {
        let mut shared = SharedMemory::default();
        shared.add(region(0x10000, 0x2000, 0x7000_0000), memory(0x2000)).unwrap();
        shared.add(region(0, 0x1000, 0x9000_0000), memory(0x1000)).unwrap();
        shared.write(0x10ff0, &[7; 32]).unwrap();
        let mut found = [0; 32];
        shared.read(0x10ff0, &mut found).unwrap();
        assert_eq!(found, [7; 32]);
        assert!(shared.read(0xff0, &mut found).is_err(), "it ends between regions");
        assert_eq!(shared.guest_address(0x7000_0010, 8), Some(0x10010));
        assert_eq!(shared.guest_address(0x7000_1ffc, 8), None);
        assert_eq!(shared.guest_address(u64::MAX, 8), None);
        assert!(shared.has(0, 0x1000) && !shared.has(0, 0x1001) && !shared.has(u64::MAX, 2));
        assert!(shared.add(region(0x11000, 0x1000, 0), memory(0x1000)).is_err(), "they overlap");
        shared.remove(region(0, 0x1000, 0x9000_0000)).unwrap();
        assert!(!shared.has(0, 1) && shared.has(0x10000, 0x2000) && shared.regions() == 1);
    }

    #[test]
    fn what_a_file_does_not_have_is_not_mapped() {
        let mut shared = SharedMemory::default();
        assert!(shared.add(region(0, 0x2000, 0), memory(0x1000)).is_err());
        assert!(shared.add(region(0, 0, 0), memory(0x1000)).is_err());
        assert!(shared.add(region(u64::MAX - 0xfff, 0x1001, 0), memory(0x2000)).is_err());
        assert!(shared.add(region(0, 0x1000, u64::MAX), memory(0x1000)).is_err());
        let offset = MemoryRegion { offset: u64::MAX, ..region(0, 0x1000, 0) };
        assert!(shared.add(offset, memory(0x1000)).is_err());
        let (pipe, _) = rustix::pipe::pipe().unwrap();
        assert!(shared.add(region(0, 0x1000, 0), pipe).is_err());
        assert_eq!(shared.regions(), 0);
    }
}
