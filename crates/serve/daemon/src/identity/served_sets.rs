//! What a server remembers outside the cache: the set that each volume was last served with.
//!
//! For: a cache that is lost and replaced by another one. Must never know: the log, backing
//! devices. Units: none. The file is written whole and durably: before a volume can have its first
//! dirty block in a set, and again when it is proven that no dirty block of it is left there. So a
//! file that says of a volume that its set may have dirty blocks errs on that side only.

use crate::error::LiveError;
use crate::plan::LivePlan;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The version of the file.
const VERSION: u32 = 2;
/// How the file's name ends.
const SUFFIX: &str = "cachewright-state";
/// Where a service manager wants files that stay (source: systemd.exec, `StateDirectory=`).
const STATE_DIRECTORY: &str = "STATE_DIRECTORY";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Document {
    version: u32,
    volumes: Vec<ServedVolumeSet>,
}

/// The set with which a volume was last served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedVolumeSet {
    /// The volume.
    pub name: String,
    /// The set.
    pub set: String,
    /// The set may have content of the volume that nothing else has.
    pub dirty: bool,
}

/// The file, and what it says.
#[derive(Clone, Debug)]
pub struct ServedSets {
    path: PathBuf,
    volumes: Vec<ServedVolumeSet>,
    /// Why the file cannot be read.
    unreadable: Option<String>,
    /// There is no file.
    missing: bool,
}

impl ServedSets {
    /// What the file of a stack says; nothing if there is none.
    pub fn read(plan: &LivePlan) -> ServedSets {
        ServedSets::open(path(plan.serve.state.as_deref(), plan.origin()))
    }

    fn open(path: PathBuf) -> ServedSets {
        let (mut volumes, mut unreadable, mut missing) = (Vec::new(), None, false);
        match fs::read(&path) {
            Ok(text) => match serde_json::from_slice::<Document>(&text) {
                Ok(found) if found.version == VERSION => volumes = found.volumes,
                Ok(found) => {
                    let found = found.version;
                    unreadable = Some(format!("found version {found}, expected {VERSION}"));
                }
                Err(error) => unreadable = Some(format!("found no state of a server: {error}")),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => missing = true,
            Err(error) => unreadable = Some(format!("found {error}, expected a file to read")),
        }
        ServedSets { path, volumes, unreadable, missing }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is no file.
    pub fn is_missing(&self) -> bool {
        self.missing
    }

    /// Why the file cannot be read, if it is there and cannot.
    pub fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// The set with which a volume was last served.
    pub fn last_set(&self, name: &str) -> Option<&ServedVolumeSet> {
        self.volumes.iter().find(|volume| volume.name == name)
    }

    /// Some of the volumes, which another set than this one may have dirty content of.
    pub fn left_elsewhere<'a>(
        &'a self,
        set: &'a str,
        names: impl Iterator<Item = &'a str>,
    ) -> Vec<&'a ServedVolumeSet> {
        let known = names.filter_map(|name| self.last_set(name));
        known.filter(|volume| volume.dirty && volume.set != set).collect()
    }

    /// Volumes are served with a set from now on. Errors: the file cannot be written; then it is as
    /// it was.
    pub fn note(&mut self, served: Vec<ServedVolumeSet>) -> Result<(), LiveError> {
        let mut volumes = self.volumes.clone();
        volumes.retain(|known| served.iter().all(|volume| volume.name != known.name));
        volumes.extend(served);
        self.write(volumes)
    }

    /// A volume is served no more, and its backing device has all of it. Errors: as of
    /// [`ServedSets::note`].
    pub fn forget(&mut self, name: &str) -> Result<(), LiveError> {
        let mut volumes = self.volumes.clone();
        volumes.retain(|known| known.name != name);
        self.write(volumes)
    }

    fn write(&mut self, volumes: Vec<ServedVolumeSet>) -> Result<(), LiveError> {
        if self.volumes == volumes && self.unreadable.is_none() && !self.missing {
            return Ok(());
        }
        let document = Document { version: VERSION, volumes };
        let failed = |error: io::Error| {
            LiveError::Refused(format!(
                "{}: what the volumes are served with cannot be remembered there: {error}; \
                 expected a folder that the server can write to, or another `serve.state`",
                self.path.display()
            ))
        };
        let text = serde_json::to_string_pretty(&document).map_err(io::Error::from);
        let written = text.and_then(|text| replace(&self.path, &text));
        written.map_err(failed)?;
        (self.volumes, self.unreadable, self.missing) = (document.volumes, None, false);
        Ok(())
    }
}

/// The path of the file of a stack: the one that it names, or one in the service manager's folder,
/// or one beside it.
fn path(named: Option<&Path>, stack: &Path) -> PathBuf {
    if let Some(named) = named {
        return named.to_owned();
    }
    let folders = std::env::var_os(STATE_DIRECTORY).unwrap_or_default();
    unnamed(std::env::split_paths(&folders).next().filter(|path| path.is_absolute()), stack)
}

/// The same for a stack that names none.
fn unnamed(folder: Option<PathBuf>, stack: &Path) -> PathBuf {
    let stem = stack.file_stem().map(OsString::from).unwrap_or_else(|| OsString::from("stack"));
    let mut name = OsString::new();
    if folder.is_none() {
        name.push(".");
    }
    name.push(stem);
    name.push(".");
    name.push(SUFFIX);
    match folder {
        Some(folder) => folder.join(name),
        None => stack.with_file_name(name),
    }
}

/// Writes a file whole: after a loss of power it has the new text or the old one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(".new");
    let mut file = File::create(&hidden)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&hidden, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    fn volume(name: &str, set: &str, dirty: bool) -> ServedVolumeSet {
        ServedVolumeSet { name: name.to_owned(), set: set.to_owned(), dirty }
    }

    #[test]
    fn the_file_lies_beside_the_stack_or_in_the_folder_of_the_service_manager() {
        let stack = Path::new("/etc/cachewright/main.toml");
        let beside = Path::new("/etc/cachewright/.main.cachewright-state");
        assert_eq!(unnamed(None, stack), beside);
        let folder = Some(PathBuf::from("/var/lib/cachewright"));
        assert_eq!(
            unnamed(folder, stack),
            Path::new("/var/lib/cachewright/main.cachewright-state")
        );
        assert_eq!(unnamed(None, Path::new("stack")), Path::new(".stack.cachewright-state"));
        assert_eq!(path(Some(Path::new("/a/b")), stack), Path::new("/a/b"));
    }

    #[test]
    fn what_was_noted_is_found_again_by_volume() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut sets = ServedSets::open(path.clone());
        assert!(sets.unreadable().is_none() && sets.last_set("a").is_none());
        sets.note(vec![volume("a", "1", true), volume("b", "1", false)]).unwrap();
        sets.note(vec![volume("b", "2", true)]).unwrap();
        let found = ServedSets::open(path.clone());
        assert_eq!(
            found.left_elsewhere("2", ["a", "b", "c"].into_iter()),
            [&volume("a", "1", true)]
        );
        sets.forget("a").unwrap();
        assert_eq!(ServedSets::open(path.clone()).volumes, [volume("b", "2", true)]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left there");
        for (text, expected) in [("{", "no state"), ("{\"version\":9,\"volumes\":[]}", "version 9")]
        {
            fs::write(&path, text).unwrap();
            let mut damaged = ServedSets::open(path.clone());
            assert!(damaged.unreadable().unwrap().contains(expected));
            damaged.note(Vec::new()).unwrap();
            assert!(ServedSets::open(path.clone()).unreadable().is_none(), "it is written anew");
        }
        let mut nowhere = ServedSets::open(folder.path().join("missing/state"));
        let error = nowhere.note(vec![volume("a", "1", true)]).unwrap_err();
        assert!(error.to_string().contains("`serve.state`"), "{error}");
        assert!(nowhere.last_set("a").is_none(), "it is as it was");
    }
}
