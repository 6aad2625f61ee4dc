//! What the cache's devices say of the backing devices whose blocks they hold, and of the sets that
//! stood on them before.
//!
//! For: the owner's notes of a superblock. Must never know: what follows from them. The text is
//! JSON, so that a version that knows more can be read.

use super::device::{DeviceName, LeftDevice};
use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_live::log::format::VolumeId;
use serde::{Deserialize, Serialize};

/// Sets of before that are remembered.
const MAX_REPLACED: usize = 16;

/// Of one volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeNote {
    /// Its number.
    id: u32,
    /// Its backing device.
    pub device: DeviceName,
    /// What the device was left with; nothing while a server runs, and after one that had no end in
    /// order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftDevice>,
}

/// Of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetNotes {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    volumes: Vec<VolumeNote>,
    /// Sets that stood on these devices before and had no dirty content, or whose dirty content was
    /// discarded; the newest first. None from the first start on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replaced: Vec<String>,
    /// The set was made to go on without whatever other sets have. False from the first start on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    discards: bool,
}

impl SetNotes {
    /// The notes of a superblock. Errors: they are of another version.
    pub fn decode(plan: &LivePlan, bytes: &[u8]) -> Result<SetNotes, LiveError> {
        if bytes.is_empty() {
            return Ok(SetNotes::default());
        }
        serde_json::from_slice(bytes).map_err(|error| {
            plan.refuse(format!(
                "found notes about backing devices in the cache that cannot be read ({error}), \
                 expected those of this version"
            ))
        })
    }

    /// The bytes of a superblock.
    pub fn encode(&self) -> Vec<u8> {
        if *self == SetNotes::default() {
            return Vec::new();
        }
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Those of a set that takes the place of one with these notes and this name, or of none.
    pub fn succeeding(before: Option<(SetNotes, String)>, discards: bool) -> SetNotes {
        let (known, name) = before.unzip();
        let known = known.unwrap_or_default();
        let mut replaced: Vec<String> = name.into_iter().chain(known.replaced).collect();
        replaced.truncate(MAX_REPLACED);
        SetNotes { volumes: Vec::new(), replaced, discards: discards || known.discards }
    }

    /// Whether the set may go on without what another one has.
    pub fn succeeds(&self, set: &str) -> bool {
        self.discards || self.replaced.iter().any(|known| known == set)
    }

    /// Whether the set may go on without what any other one has.
    pub fn discards_all(&self) -> bool {
        self.discards
    }

    /// Whether no server has served the set.
    pub fn is_fresh(&self) -> bool {
        self.volumes.is_empty()
    }

    /// What is noted of a volume.
    pub fn volume(&self, id: VolumeId) -> Option<&VolumeNote> {
        self.volumes.iter().find(|note| note.id == id.0)
    }

    /// The volume whose backing device this surely is.
    pub fn owner(&self, device: &DeviceName) -> Option<VolumeId> {
        let found = self.volumes.iter().find(|note| device.is(&note.device));
        found.map(|note| VolumeId(note.id))
    }

    /// Notes the backing device of a volume.
    pub fn put(&mut self, id: VolumeId, device: DeviceName, left: Option<LeftDevice>) {
        self.forget(id);
        self.volumes.push(VolumeNote { id: id.0, device, left });
        self.volumes.sort_unstable_by_key(|note| note.id);
    }

    /// Forgets a volume of which the set holds nothing.
    pub fn forget(&mut self, id: VolumeId) {
        self.volumes.retain(|note| note.id != id.0);
    }

    /// A server serves the set: backing devices change from now on, and what stood before is known
    /// to its server.
    pub fn begin(&mut self) {
        self.volumes.iter_mut().for_each(|note| note.left = None);
        (self.replaced, self.discards) = (Vec::new(), false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_succeeds_those_that_stood_on_its_devices_until_it_is_served() {
        let first = SetNotes::succeeding(None, false);
        assert!(!first.succeeds("1") && first.encode().is_empty());
        let second = SetNotes::succeeding(Some((first, "1".to_owned())), false);
        let mut third = SetNotes::succeeding(Some((second, "2".to_owned())), false);
        assert!(third.succeeds("1") && third.succeeds("2") && !third.succeeds("3"));
        third.begin();
        assert!(!third.succeeds("1"));
        let mut any = SetNotes::succeeding(Some((third, "3".to_owned())), true);
        assert!(any.succeeds("9"));
        any.begin();
        assert!(!any.succeeds("9") && any.is_fresh());
    }
}
