//! The volumes of a plan beside those that the cache's devices know.
//!
//! For: the same volume under the same number after every start. Must never know: blocks. Units:
//! bytes. A volume is known by the name of its tenant. One that the devices do not know yet is
//! added, and one whose backing device has grown is as large as that from then on. One that no
//! tenant has any more keeps its number.

use crate::devices::Devices;
use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_live::blocks::ServedVolume;
use cachewright_live::io::FileId;
use cachewright_live::log::RecoveredBlock;
use cachewright_live::log::format::{Superblock, Volume, VolumeId};
use cachewright_types::Bytes;
use std::collections::BTreeMap;

/// A tenant and the file of its volume.
#[derive(Clone, Copy, Debug)]
pub struct KnownVolume {
    /// The tenant's place in the plan.
    pub tenant: usize,
    /// Its backing device.
    pub file: FileId,
}

/// The sizes of all volumes, in the order of tenants: those of their backing devices. Errors: one
/// is empty.
pub fn sizes(plan: &LivePlan, devices: &Devices) -> Result<Vec<u64>, LiveError> {
    let size = |tenant: usize| checked_size(plan, tenant, devices.backing_bytes(tenant));
    (0..plan.volumes.len()).map(size).collect()
}

/// Errors: a device of so many bytes is empty.
pub fn checked_size(plan: &LivePlan, tenant: usize, found: u64) -> Result<u64, LiveError> {
    if found > 0 {
        return Ok(found);
    }
    let key = format!("tenant[{}].backing", tenant + 1);
    let path = plan.volumes[tenant].backing.display();
    Err(plan.refuse(format!("`{key}`: found no bytes in `{path}`, expected at least 1")))
}

/// The volumes to be served, and the table of volumes of the set with those that are new or have
/// grown. Errors: a volume is smaller than before.
pub fn matched(
    plan: &LivePlan,
    devices: &Devices,
    superblock: &Superblock,
) -> Result<(Vec<ServedVolume>, Vec<Volume>), LiveError> {
    let known = |tenant: usize| {
        let file = devices.backings[tenant];
        (KnownVolume { tenant, file }, devices.backing_bytes(tenant))
    };
    let sizes: Vec<(KnownVolume, u64)> = (0..plan.volumes.len()).map(known).collect();
    matched_sizes(plan, &sizes, &superblock.volumes)
}

/// The same for some tenants, with the bytes of their devices, beside a table. Errors: a size is
/// nothing, or smaller than before, which is not accepted.
pub fn matched_sizes(
    plan: &LivePlan,
    sizes: &[(KnownVolume, u64)],
    table: &[Volume],
) -> Result<(Vec<ServedVolume>, Vec<Volume>), LiveError> {
    let mut table = table.to_vec();
    let mut served = Vec::new();
    for (KnownVolume { tenant, file }, bytes) in sizes {
        let bytes = checked_size(plan, *tenant, *bytes)?;
        let planned = &plan.volumes[*tenant];
        let is_accepted = plan.accepted.changed.contains(&planned.name);
        let id = match table.iter_mut().find(|known| known.name == planned.name) {
            Some(known) if known.bytes > bytes && !is_accepted => {
                let (found, expected) = (Bytes(bytes).exact(), Bytes(known.bytes).exact());
                return Err(plan.refuse(format!(
                    "`tenant[{}].backing`: found `{found}` in `{}`, expected at least \
                     `{expected}`, the size of the volume `{name}` in the cache, or \
                     `--accept-changed {name}`",
                    tenant + 1,
                    planned.backing.display(),
                    name = planned.name
                )));
            }
            Some(known) => {
                known.bytes = bytes;
                known.id
            }
            None => {
                let last = table.iter().map(|known| known.id.0).max().unwrap_or_default();
                let id = VolumeId(last.saturating_add(1));
                table.push(Volume { id, name: planned.name.clone(), bytes });
                id
            }
        };
        served.push(ServedVolume { id, bytes, backing: *file });
    }
    Ok((served, table))
}

/// Dirty bytes of each volume that has some, by its number.
pub fn dirty_bytes(blocks: &[RecoveredBlock], block_bytes: u64) -> BTreeMap<VolumeId, u64> {
    let mut dirty: BTreeMap<VolumeId, u64> = BTreeMap::new();
    for block in blocks.iter().filter(|block| block.dirty) {
        *dirty.entry(block.volume).or_default() += block_bytes;
    }
    dirty
}

/// The names of all volumes, by their numbers.
pub fn names(table: &[Volume]) -> BTreeMap<VolumeId, &str> {
    table.iter().map(|volume| (volume.id, volume.name.as_str())).collect()
}

/// What a volume is called that the table does not have.
pub fn unnamed(id: VolumeId) -> String {
    format!("number {}", id.0)
}

/// The name of a volume, or its number where the table does not have it.
pub fn name_of(table: &[Volume], id: VolumeId) -> String {
    let known = table.iter().find(|volume| volume.id == id);
    known.map_or_else(|| unnamed(id), |volume| volume.name.clone())
}

/// Errors: a volume that is not served has content in the cache that its backing device lacks.
pub fn check_served(
    plan: &LivePlan,
    (served, table): (&[ServedVolume], &[Volume]),
    (blocks, block_bytes): (&[RecoveredBlock], u64),
) -> Result<(), LiveError> {
    let is_served = |id: VolumeId| served.iter().any(|volume| volume.id == id);
    let dirty = dirty_bytes(blocks, block_bytes);
    match dirty.iter().find(|(id, _)| !is_served(**id)) {
        Some((id, bytes)) => {
            let (name, bytes) = (name_of(table, *id), Bytes(*bytes));
            Err(plan.refuse(format!(
                "found {bytes} of the volume `{name}` that only the cache has, expected a \
                 `[[tenant]]` of this name with its `backing`"
            )))
        }
        None => Ok(()),
    }
}
