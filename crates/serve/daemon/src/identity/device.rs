//! What a backing device is known by, and what it was left with.
//!
//! For: telling another device from the one whose blocks the cache holds, and a device that was
//! written from one that was not. Must never know: the log, what a difference leads to. Units:
//! bytes. Only facts that both sides have are compared: a kernel that says less proves nothing.
//!
//! The number of the device that a file lies on, and the sequence number of a block device
//! (`diskseq`), are no facts here: both may change at a boot, while the device stays.

use cachewright_live::io::open::{DeviceFacts, FileFacts, FileTime};
use cachewright_live::io::{ALIGNMENT, FileId, Io, IoError, batch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where the system lists block devices by their numbers.
const BLOCK_DEVICES: &str = "/sys/dev/block";
/// Bytes at either end of a device that file systems and partition tables change.
const END_BYTES: u64 = 1 << 20;

/// What is known of a device that stays as long as it is the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceName {
    /// The number of a file in its file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inode: Option<u64>,
    /// When a file was made: seconds since 1970, and nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    born: Option<(i64, u32)>,
    /// What the system says of a block device: serial numbers, names for the whole world, numbers
    /// of partitions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    block: BTreeMap<String, String>,
}

impl DeviceName {
    /// That of an open file or block device.
    pub fn known_by(facts: &DeviceFacts) -> DeviceName {
        match *facts {
            DeviceFacts::File(FileFacts { inode, born, .. }) => {
                DeviceName { inode, born: born.map(pair), block: BTreeMap::new() }
            }
            DeviceFacts::Block { major, minor } => {
                let listed = Path::new(BLOCK_DEVICES).join(format!("{major}:{minor}"));
                DeviceName { block: block_names(&listed), ..DeviceName::default() }
            }
        }
    }

    /// Why it is another device than that of `before`, as far as what is known of both proves it.
    pub fn differs_from(&self, before: &DeviceName) -> Option<String> {
        if !self.block.is_empty() && before.inode.is_some() {
            return Some("it is a block device, and was a file".to_owned());
        }
        if self.inode.is_some() && !before.block.is_empty() {
            return Some("it is a file, and was a block device".to_owned());
        }
        if let (Some(now), Some(then)) = (self.inode, before.inode)
            && now != then
        {
            return Some(format!("its inode is {now}, and was {then}"));
        }
        if let (Some(now), Some(then)) = (self.born, before.born)
            && now != then
        {
            return Some("its inode was given to a file that was made later".to_owned());
        }
        let differs = |(key, now): (&String, &String)| {
            let then = before.block.get(key).filter(|then| *then != now)?;
            Some(format!("its {key} is `{now}`, and was `{then}`"))
        };
        self.block.iter().find_map(differs)
    }

    /// Whether it is surely the device of `other`.
    pub fn is(&self, other: &DeviceName) -> bool {
        let known = self.inode.is_some() || !self.block.is_empty();
        known && self == other
    }
}

/// What a device was left with by a server that ended in order: nothing writes to it from then on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftDevice {
    bytes: u64,
    /// When a file's content and its attributes last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified: Option<(i64, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<(i64, u32)>,
    /// Checksums (CRC-32C) of its first and its last bytes.
    first: u32,
    last: u32,
}

impl LeftDevice {
    /// What a device holds now. Errors: it cannot be read.
    pub fn look(
        io: &mut impl Io,
        file: FileId,
        facts: &DeviceFacts,
    ) -> Result<LeftDevice, IoError> {
        let bytes = io.file_bytes(file);
        let [first, last] = ends(io, file, bytes)?;
        let (modified, changed) = match facts {
            DeviceFacts::File(facts) => (facts.modified.map(pair), facts.changed.map(pair)),
            DeviceFacts::Block { .. } => (None, None),
        };
        Ok(LeftDevice { bytes, modified, changed, first, last })
    }

    /// Why the device was written to since it was left. Errors: it cannot be read.
    pub fn written(
        &self,
        io: &mut impl Io,
        file: FileId,
        facts: &DeviceFacts,
    ) -> Result<Option<String>, IoError> {
        let bytes = io.file_bytes(file);
        let has_grown = bytes > self.bytes;
        if let DeviceFacts::File(facts) = facts
            && !has_grown
        {
            // To grow a file changes its times, and nothing tells that from a write: its ends and
            // the sample must do.
            let later = |now: Option<FileTime>, then: Option<(i64, u32)>| {
                now.map(pair).zip(then).is_some_and(|(now, then)| now != then)
            };
            if later(facts.modified, self.modified) {
                return Ok(Some("its time of modification has changed".to_owned()));
            }
            if later(facts.changed, self.changed) {
                return Ok(Some("its time of change has changed".to_owned()));
            }
        }
        // The end that counts is that of before, also where the device has grown.
        let [first, last] = ends(io, file, self.bytes.min(bytes))?;
        Ok(if first != self.first {
            Some("its first MiB has other content".to_owned())
        } else if last != self.last {
            Some("its last MiB has other content".to_owned())
        } else {
            None
        })
    }
}

/// The bytes at the ends of a device of so many bytes, as far as whole pages can be read.
pub fn end_ranges(bytes: u64) -> [std::ops::Range<u64>; 2] {
    let end = bytes / ALIGNMENT as u64 * ALIGNMENT as u64;
    [0..end.min(END_BYTES), end.saturating_sub(END_BYTES)..end]
}

/// The checksums of the ends of a device. Errors: they cannot be read.
fn ends(io: &mut impl Io, file: FileId, bytes: u64) -> Result<[u32; 2], IoError> {
    let ranges = end_ranges(bytes);
    let read = ranges.map(|range| (file, range.start, (range.end - range.start) as usize));
    let mut sums = [0; 2];
    for (sum, found) in sums.iter_mut().zip(batch::read(io, read)) {
        *sum = crc32c::crc32c(&found?);
    }
    Ok(sums)
}

fn pair(time: FileTime) -> (i64, u32) {
    (time.s, time.ns)
}

/// What is known of the block device that the system lists in a folder. What cannot be read is not
/// known.
fn block_names(listed: &Path) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let mut note = |key: &str, path: &str| {
        let text = fs::read(listed.join(path)).ok();
        let text = text.map(|text| String::from_utf8_lossy(&text).trim().to_owned());
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            names.entry(key.to_owned()).or_insert(text);
        }
    };
    // A partition is known by its number, its own id, and the disk that it is a part of.
    let is_partition = listed.join("partition").exists();
    let disk = if is_partition { "../" } else { "" };
    if is_partition {
        note("partition", "partition");
        note("first sector", "start");
    }
    note("WWID", &format!("{disk}wwid"));
    note("WWID", &format!("{disk}device/wwid"));
    note("serial number", &format!("{disk}serial"));
    note("serial number", &format!("{disk}device/serial"));
    note("device-mapper UUID", &format!("{disk}dm/uuid"));
    note("RAID UUID", &format!("{disk}md/uuid"));
    note("file behind the loop", &format!("{disk}loop/backing_file"));
    let event = fs::read_to_string(listed.join("uevent")).unwrap_or_default();
    let id = event.lines().find_map(|line| line.strip_prefix("PARTUUID="));
    if let Some(id) = id.filter(|id| !id.is_empty()) {
        names.insert("partition UUID".to_owned(), id.to_owned());
    }
    names
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use cachewright_live::io::Buffer;
    use cachewright_live::io::sim::{Sim, SimFile};
    use cachewright_types::Seed;

    fn listed(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("sda/sda1");
        for (name, text) in files {
            let path = own.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(&own).unwrap();
        block_names(&own)
    }

    fn block(files: &[(&str, &str)]) -> DeviceName {
        DeviceName { block: listed(files), ..DeviceName::default() }
    }

    #[test]
    fn a_partition_is_known_by_its_disk_too() {
        let own =
            [("partition", "1\n"), ("uevent", "MAJOR=8\nPARTUUID=4f-01\n"), ("start", "2048")];
        let on_disk = |serial| [&own[..], &[("../device/serial", serial)]].concat();
        let first = block(&on_disk("S1\n"));
        assert_eq!(first.block["partition UUID"], "4f-01");
        assert_eq!(first.block["serial number"], "S1");
        let other = block(&on_disk("S2"));
        let why = other.differs_from(&first).unwrap();
        assert_eq!(why, "its serial number is `S2`, and was `S1`");
        assert!(first.is(&first.clone()) && !first.is(&other));
        assert_eq!(block(&own).differs_from(&first), None, "less is known, and nothing differs");
        assert_eq!(block(&[]), DeviceName::default());
        assert!(!block(&[]).is(&block(&[])), "nothing is known of either");
    }

    #[test]
    fn a_write_at_either_end_or_a_time_tells_that_a_device_was_written_to() {
        let mut sim = Sim::new(Seed(1));
        let file = sim.add_file(SimFile::new(8 << 20));
        let time = |s| Some(FileTime { s, ns: 5 });
        let facts = |s| {
            let (modified, changed) = (time(s), time(s));
            DeviceFacts::File(FileFacts { inode: Some(3), born: None, modified, changed })
        };
        let left = LeftDevice::look(&mut sim, file, &facts(7)).unwrap();
        assert_eq!(left.written(&mut sim, file, &facts(7)), Ok(None));
        let text = serde_json::to_string(&left).unwrap();
        assert_eq!(serde_json::from_str::<LeftDevice>(&text).unwrap(), left);
        let why = |found: Result<Option<String>, IoError>| found.unwrap().unwrap();
        assert!(why(left.written(&mut sim, file, &facts(8))).contains("modification"));
        let unknown = DeviceFacts::File(FileFacts::default());
        assert_eq!(left.written(&mut sim, file, &unknown), Ok(None), "times are not known");
        for (offset, expected) in [(4 << 20, None), (0, Some("first MiB")), (7 << 20, Some("last"))]
        {
            let mut page = Buffer::zeroed(4096);
            page[17] = 1;
            batch::write(&mut sim, [(file, offset, page)]).unwrap();
            let found = left.written(&mut sim, file, &facts(7)).unwrap();
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(expected.is_none_or(|part| found.unwrap().contains(part)));
            batch::write(&mut sim, [(file, offset, Buffer::zeroed(4096))]).unwrap();
        }
    }

    #[test]
    fn the_ends_of_a_device_are_whole_pages() {
        let mib = 1 << 20;
        assert_eq!(end_ranges(8 * mib), [0..mib, 7 * mib..8 * mib]);
        assert_eq!(end_ranges(8 * mib + 512), [0..mib, 7 * mib..8 * mib]);
        assert_eq!(end_ranges(8192), [0..8192, 0..8192]);
        assert_eq!(end_ranges(512), [0..0, 0..0]);
    }
}
