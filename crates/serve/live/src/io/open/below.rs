//! Files that a block device keeps its content in: those of loop devices.
//!
//! For: locks that a server of the file itself meets. Must never know: what is locked. A lock of a
//! loop device is none of its file. Source: the kernel's `/sys/dev/block`: `loop/backing_file`,
//! `slaves` of mapped devices, and partitions, whose folder lies in that of their disk.

use rustix::fs::{major, minor};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Devices below each other at most: what lies deeper is not looked for.
const MAX_DEPTH: u32 = 16;

/// A file that a block device keeps content in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileBelow {
    /// Its path, as the kernel tells it.
    pub path: PathBuf,
    /// Whether the device is all of it: others may keep theirs in another part of it.
    pub is_whole: bool,
}

/// The files below a block device of this number.
pub(super) fn files_below(device: u64) -> Vec<FileBelow> {
    let mut found = BTreeSet::new();
    let link = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    if let Ok(folder) = fs::canonicalize(link) {
        collect(&folder, true, MAX_DEPTH, &mut found);
    }
    found.into_iter().collect()
}

/// Adds the files below the device of a folder of the kernel's.
fn collect(folder: &Path, is_whole: bool, depth: u32, found: &mut BTreeSet<FileBelow>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let text = |name: &str| fs::read(folder.join(name)).ok();
    if let Some(path) = text("loop/backing_file") {
        let path = path.strip_suffix(b"\n").unwrap_or(&path).to_vec();
        // A part of a file has a first byte that is not the file's, or an end that is set.
        let is_zero = |name: &str| text(name).is_none_or(|text| text.trim_ascii() == b"0");
        let is_whole = is_whole && is_zero("loop/offset") && is_zero("loop/sizelimit");
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        found.insert(FileBelow { path, is_whole });
    }
    if text("partition").is_some()
        && let Some(disk) = folder.parent()
    {
        collect(disk, false, depth, found);
    }
    let below = fs::read_dir(folder.join("slaves"));
    for slave in below.into_iter().flatten().flatten() {
        if let Ok(slave) = fs::canonicalize(slave.path()) {
            collect(&slave, false, depth, found);
        }
    }
}

/// Whether the kernel tells a path that is not there any more.
pub(super) fn is_deleted(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(OsStr::new(" (deleted)").as_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn of(folder: &Path) -> Vec<(String, bool)> {
        let mut found = BTreeSet::new();
        collect(folder, true, MAX_DEPTH, &mut found);
        found.into_iter().map(|one| (one.path.display().to_string(), one.is_whole)).collect()
    }

    #[test]
    fn the_files_of_loop_devices_are_found_through_partitions_and_mapped_devices() {
        let root = tempfile::tempdir().unwrap();
        let disk = root.path().join("loop0");
        write(&disk.join("loop/backing_file"), "/var/cache.img\n");
        write(&disk.join("loop/offset"), "0\n");
        write(&disk.join("loop/sizelimit"), "0\n");
        assert_eq!(of(&disk), [("/var/cache.img".to_owned(), true)]);
        let part = disk.join("loop0p1");
        write(&part.join("partition"), "1\n");
        assert_eq!(of(&part), [("/var/cache.img".to_owned(), false)]);
        let other = root.path().join("loop1");
        write(&other.join("loop/backing_file"), "/var/a b.img\n");
        write(&other.join("loop/offset"), "4096\n");
        assert_eq!(of(&other), [("/var/a b.img".to_owned(), false)]);
        let mapped = root.path().join("dm-0");
        fs::create_dir_all(mapped.join("slaves")).unwrap();
        symlink(&part, mapped.join("slaves/loop0p1")).unwrap();
        symlink(&other, mapped.join("slaves/loop1")).unwrap();
        let both = [("/var/a b.img".to_owned(), false), ("/var/cache.img".to_owned(), false)];
        assert_eq!(of(&mapped), both);
    }

    #[test]
    fn devices_that_lie_on_each_other_in_a_circle_end() {
        let root = tempfile::tempdir().unwrap();
        let mapped = root.path().join("dm-0");
        fs::create_dir_all(mapped.join("slaves")).unwrap();
        symlink(&mapped, mapped.join("slaves/dm-0")).unwrap();
        assert_eq!(of(&mapped), []);
        assert_eq!(files_below(0), []);
    }
}
