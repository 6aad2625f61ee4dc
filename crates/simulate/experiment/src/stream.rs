//! A stack file's block accesses as a stream of numbers.
//!
//! For: policies written outside (in Python). Must never know: what consumes it.

use crate::case::Case;
use crate::progress::OnProgress;
use crate::record::{Kept, record};
use crate::{ExperimentError, Spec};
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
        let spec = Spec::parse(text, origin, set)?;
        let recording = record(&spec, Kept::default(), progress)?.recording;
        let tenants = spec.tenants.iter().map(|tenant| tenant.name.clone()).collect();
        let (varied, models, caching) = Default::default();
        let case = Case { index: 0, spec, varied, models, caching };
        let capacity_blocks = case.capacity_blocks(recording.distinct, origin)?;
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
            let at = self.next;
            self.next += 1;
            if self.recording.flags[at] & TRIM != 0 {
                continue;
            }
            ids.push(self.recording.ids[at]);
            flags.push(self.recording.flags[at] & WRITE);
            tenants.push(self.recording.tenant_at(at).0);
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
