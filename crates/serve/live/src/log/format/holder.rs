//! The page that says which start of a server holds a set.
//!
//! For: a server whose devices another one has taken, from another host or by another name, where
//! no lock of the system is met. Must never know: locks. It is the last page of the place of the
//! first superblock, and says nothing that a log needs.

use super::{PAGE, SUPERBLOCK_BYTES, SetId, begin, open, seal};

const MAGIC: &[u8; 8] = b"CWholder";
/// The byte of a device at which the page stands.
pub const HOLDER_OFFSET: u64 = (SUPERBLOCK_BYTES - PAGE) as u64;

/// A start of a server that holds a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The set.
    pub set: SetId,
    /// A random number of the start.
    pub start: u128,
    /// The host that it runs on; 0 if that is not known.
    pub host: u128,
    /// The file system of its first device there.
    pub file_system: u64,
    /// The file of its first device in that.
    pub file: u64,
}

impl Holder {
    /// Its page.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = begin(MAGIC);
        for number in [self.set.0, self.start, self.host] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.file_system.to_le_bytes());
        bytes.extend_from_slice(&self.file.to_le_bytes());
        seal(bytes)
    }

    /// The holder of a page, if it is one.
    pub fn decode(page: &[u8]) -> Option<Holder> {
        let mut fields = open(page, MAGIC)?;
        let mut number = || Some(u128::from(fields.u64()?) | u128::from(fields.u64()?) << 64);
        let (set, start, host) = (SetId(number()?), number()?, number()?);
        Some(Holder { set, start, host, file_system: fields.u64()?, file: fields.u64()? })
    }

    /// Whether another start had the same file open on the same host: that one has ended, because
    /// this one has got the lock of the file.
    pub fn has_lock_of(&self, before: &Holder) -> bool {
        self.host != 0
            && self.host == before.host
            && self.file_system == before.file_system
            && self.file == before.file
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_back_and_damage_says_nothing() {
        let holder =
            Holder { set: SetId(3), start: 1 << 100, host: 5 << 70, file_system: 7, file: 9 };
        let mut page = holder.encode();
        assert_eq!((page.len(), Holder::decode(&page)), (PAGE, Some(holder)));
        page[40] ^= 1;
        assert_eq!(Holder::decode(&page), None);
        assert_eq!(Holder::decode(&[0; PAGE]), None);
    }

    #[test]
    fn only_the_same_file_on_a_known_host_has_the_same_lock() {
        let own = Holder { set: SetId(3), start: 1, host: 5, file_system: 7, file: 9 };
        assert!(own.has_lock_of(&Holder { start: 2, ..own }));
        for other in
            [Holder { host: 6, ..own }, Holder { file: 8, ..own }, Holder { file_system: 8, ..own }]
        {
            assert!(!own.has_lock_of(&other), "{other:?}");
        }
        let unknown = Holder { host: 0, ..own };
        assert!(!unknown.has_lock_of(&unknown));
    }
}
