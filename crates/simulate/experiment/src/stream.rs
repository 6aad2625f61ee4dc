//! A stack file's block accesses as a stream of numbers, for quick policies written in Python,
//! which only say whether a block hit.
//!
//! A stack file whose settings would change the hits, or that has more to answer than hits, is
//! refused by the name of the setting.

use crate::case::Case;
use crate::progress::OnProgress;
use crate::record::{Kept, record};
use crate::{ExperimentError, Spec};
use cachewright_cache::WriteMode;
use cachewright_system::Recording;
use cachewright_system::recording::{TRIM, WRITE};
use std::path::Path;

/// Block accesses in order, from the start.
pub struct BlockStream {
    recording: Recording,
    next: usize,
    capacity_blocks: u32,
    tenants: Vec<String>,
}

impl BlockStream {
    /// Decodes a stack file's tenants; `set` are keys set over it.
    pub fn open(
        text: &str,
        origin: &Path,
        set: &[(String, String)],
        progress: OnProgress<'_>,
    ) -> Result<BlockStream, ExperimentError> {
        let spec = crate::spec::parse(text, origin, set)?;
        let refuse = |message| ExperimentError::spec(origin, message);
        check(&spec).map_err(refuse)?;
        let recording = record(&spec, Kept::default(), progress)?.recording;
        check_trims(&spec, &recording).map_err(refuse)?;
        let tenants = spec.tenants.iter().map(|tenant| tenant.name.clone()).collect();
        let case = Case::single(spec);
        let capacity_blocks = case.resolve(&recording)?.capacity_blocks;
        Ok(BlockStream { recording, next: 0, capacity_blocks, tenants })
    }

    /// Replaces the columns' content by up to `max` accesses (trims left out) and returns how
    /// many; 0 means the end. Ids are dense over all tenants; bit 0 of a flag says write.
    pub fn next(
        &mut self,
        max: usize,
        ids: &mut Vec<u32>,
        flags: &mut Vec<u8>,
        tenants: &mut Vec<u16>,
    ) -> usize {
        ids.clear();
        flags.clear();
        tenants.clear();
        while ids.len() < max && self.next < self.recording.len() {
            let index = self.next;
            self.next += 1;
            if self.recording.flags[index] & TRIM != 0 {
                // Only with `cache.trim = "ignore"`.
                continue;
            }
            ids.push(self.recording.ids[index]);
            flags.push(self.recording.flags[index] & WRITE);
            tenants.push(self.recording.tenant_at(index).0);
        }
        ids.len()
    }

    /// The stack file's cache size in blocks.
    pub fn capacity_blocks(&self) -> u32 {
        self.capacity_blocks
    }

    /// Names of the tenants; the third column indexes them.
    pub fn tenants(&self) -> &[String] {
        &self.tenants
    }

    /// Distinct blocks of the whole stream.
    pub fn distinct(&self) -> u32 {
        self.recording.distinct
    }

    /// Accesses of the whole stream.
    pub fn accesses(&self) -> u64 {
        self.recording.block_accesses()
    }
}

/// Where what a stream cannot do is done.
const INSTEAD: &str = "or a policy with verdicts in `run` (see `cachewright.CachePolicy`)";

/// Refuses what a policy that only answers with hits cannot take part in.
fn check(spec: &Spec) -> Result<(), String> {
    let refuse = |key: &str, found: &str, expected: &str| {
        Err(format!("`{key}`: found {found}, expected {expected}, {INSTEAD}"))
    };
    let (cache, replay) = (&spec.cache, &spec.replay);
    let partition = &cache.partition.name;
    if partition != "shared" {
        return refuse("cache.partition", &format!("`{partition}`"), "`shared`");
    }
    if matches!(cache.write, WriteMode::WriteAround | WriteMode::ReadOnly) {
        let expected = "`write-back` or `write-through`";
        return refuse("cache.write", &format!("`{}`", cache.write.word()), expected);
    }
    if !replay.warmup.is_none() {
        return refuse("replay.warmup", &replay.warmup.text(), "0s");
    }
    if spec.stack.is_some() {
        return refuse("device", "devices", "none");
    }
    if spec.flash.is_some() {
        return refuse("flash", "a drive", "none");
    }
    if replay.closed() {
        return refuse("replay.loop", "`closed`", "`open`");
    }
    match spec.tenants.iter().find_map(|tenant| Some((tenant, tenant.goal?))) {
        None => Ok(()),
        Some((tenant, goal)) => {
            refuse(&format!("tenant.{}.{}", tenant.name, goal.key()), "a goal", "none")
        }
    }
}

/// Refuses trims, unless they are ignored.
fn check_trims(spec: &Spec, recording: &Recording) -> Result<(), String> {
    let trimmed = recording.totals.iter().map(|totals| totals.requests[2]);
    let found =
        trimmed.zip(&spec.tenants).find(|(trims, _)| *trims > 0 && spec.cache.drops_trimmed());
    match found {
        None => Ok(()),
        Some((trims, tenant)) => Err(format!(
            "tenant `{}`: found {trims} trims, expected none, `cache.trim = \"ignore\"`, {INSTEAD}",
            tenant.name
        )),
    }
}
