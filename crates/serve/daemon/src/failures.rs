//! What operators are told of devices that have failed.
//!
//! For: one line for each change, when it is found. Must never know: how requests are carried out.
//! Units: bytes, blocks.

use crate::lines::OperatorLine;
use cachewright_live::blocks::{BlockServer, Passage, Revived, VolumePassage};
use cachewright_types::{Bytes, TenantId};
use std::path::PathBuf;

/// What was said so far.
pub struct Failures {
    exports: Vec<String>,
    /// The cache's devices, in the order of the set.
    devices: Vec<PathBuf>,
    /// Whether the cache is known to have failed, and each volume.
    cache: bool,
    volumes: Vec<bool>,
    /// How each volume is served past the cache, as far as it was said.
    passages: Vec<Option<Passage>>,
}

impl Failures {
    /// Nothing has failed yet.
    pub fn new(exports: Vec<String>, devices: Vec<PathBuf>) -> Failures {
        let (volumes, passages) = (vec![false; exports.len()], vec![None; exports.len()]);
        Failures { exports, devices, cache: false, volumes, passages }
    }

    /// One more export.
    pub fn add(&mut self, export: String) {
        self.exports.push(export);
        self.volumes.push(false);
        self.passages.push(None);
    }

    /// A line for each device that has failed since the last call, and for each volume that is
    /// served otherwise since.
    pub fn news(&mut self, blocks: &BlockServer) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.cache
            && let Some(error) = blocks.log_failure()
        {
            self.cache = true;
            let device = blocks.failed_device().and_then(|device| self.devices.get(device));
            let what = match device {
                Some(path) => format!("the device {} has failed", path.display()),
                None => "it takes nothing any more".to_owned(),
            };
            lines.push(format!(
                "cache: {what} ({error}); the cache is bypassed, and any recording ends here"
            ));
        }
        for (index, export) in self.exports.iter().enumerate() {
            let tenant = TenantId(index as u16);
            let has_failed = blocks.volume_has_failed(tenant);
            if !self.volumes[index] && has_failed {
                lines.push(format!(
                    "export `{export}`: its backing device has failed; requests get errors until \
                     it works again and the server is reloaded"
                ));
            }
            self.volumes[index] = has_failed;
            let found = blocks.passage(tenant);
            let passage = found.map(|found| found.passage);
            if let Some(found) = found.filter(|_| passage != self.passages[index]) {
                self.passages[index] = passage;
                lines.extend(described(export, &found, blocks.block_bytes()));
            }
        }
        lines
    }
}

/// A line about a backing device that was tried again.
pub fn revived(export: &str, found: &Revived, block_bytes: u64) -> OperatorLine {
    let Revived { written_back, damaged, error, .. } = *found;
    if let Some(error) = error {
        return OperatorLine::warning(format!(
            "export `{export}`: its backing device fails still ({error}); requests get errors \
             until it works and the server is reloaded once more"
        ));
    }
    let written_back = Bytes(written_back * block_bytes);
    let served = format!(
        "export `{export}`: its backing device works again; {written_back} that only the cache had \
         were written back, and requests are served"
    );
    match Bytes(damaged * block_bytes) {
        Bytes(0) => OperatorLine::info(served),
        damaged => OperatorLine::warning(format!(
            "{served}; {damaged} of the cache are damaged, reads of them fail until they are \
             overwritten"
        )),
    }
}

/// A line for a volume that is served past the cache from now on.
fn described(export: &str, found: &VolumePassage, block_bytes: u64) -> Option<String> {
    let VolumePassage { passage, rescued, lost } = *found;
    let served = match passage {
        Passage::Passes => "is served past the cache",
        Passage::ReadsOnly => {
            "can be read only, because no device of the cache takes a mark that it is out of date"
        }
        Passage::Waits | Passage::Fails => return None,
    };
    let (rescued, lost) = (Bytes(rescued * block_bytes), Bytes(lost * block_bytes));
    let loss = match lost {
        Bytes(0) => "nothing is lost".to_owned(),
        lost if passage == Passage::ReadsOnly => format!("{lost} cannot be read"),
        lost => format!("{lost} are lost, reads of them fail until they are overwritten"),
    };
    Some(format!(
        "export `{export}` {served}; {rescued} of dirty content were written back, {loss}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_of_volumes_that_take_no_writes_is_not_said_to_wait_for_some() {
        let found = |passage| VolumePassage { passage, rescued: 2, lost: 1 };
        let line = |passage| described("a", &found(passage), 4096).unwrap_or_default();
        let read_only = line(Passage::ReadsOnly);
        assert!(read_only.ends_with("were written back, 4KiB cannot be read"), "{read_only}");
        assert!(line(Passage::Passes).ends_with("reads of them fail until they are overwritten"));
        assert_eq!(described("a", &found(Passage::Waits), 4096), None);
    }
}
