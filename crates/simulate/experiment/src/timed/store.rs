//! A case whose backing devices hold a log: the stores of a job, and what they did, as results have
//! it.
//!
//! For: stack files with `machine.system = "flash-store"`. Must never know: how a store works.
//! Units: pages, segments; shares are ratios.

use crate::ExperimentError;
use crate::case::Case;
use crate::job::Job;
use crate::spec::StackSpec;
use crate::wa::{label, log};
use cachewright_device::AnyDevice;
use cachewright_device::store::{LogStore, StoreError, StoreStats};
use cachewright_result::store::Store;
use cachewright_system::event_loop::Times;

impl Job<'_> {
    /// The device with that number as the job's machine has it: under a store, if that keeps one.
    pub(super) fn stored(
        &self,
        stack: &StackSpec,
        number: usize,
        backing_of: &[usize],
        device: AnyDevice,
    ) -> Result<AnyDevice, ExperimentError> {
        let spec = &self.case.spec;
        let (Some(settings), Some(flash)) = (&stack.store, &spec.flash) else {
            return Ok(device);
        };
        let on_it = self.workload.placed()?.volumes.tenants.iter().zip(backing_of);
        let ends = on_it.filter(|(_, own)| **own == number).map(|(extent, _)| extent.end);
        let blocks = ends.max().unwrap_or(0) / spec.cache.block.0;
        if blocks == 0 {
            return Ok(device);
        }
        let refuse = |message| self.case.refuse(message);
        let block_pages = (spec.cache.block.0 / flash.page.0) as u32;
        let what = "what its tenants' volumes take";
        let pages = flash.logical_pages(blocks, block_pages, what).map_err(refuse)?;
        let log = log(self.case, flash, pages)?;
        let store = LogStore::new(device, log, settings).map_err(|error| match error {
            StoreError::TooSmall { .. } => refuse(format!(
                "`device.backing`: {error} of {pages} logical pages and {} over-provisioning",
                flash.over_provisioning.text()
            )),
            error => refuse(format!("`flash`: {error}")),
        })?;
        Ok(Box::new(store))
    }
}

/// Refuses times of a store that could not go on.
pub(super) fn check(times: Times) -> Result<Times, ExperimentError> {
    let stores = times.devices.iter().filter_map(|device| device.report.store());
    match stores.filter_map(|store| store.fault.as_ref()).next() {
        Some(fault) => {
            Err(ExperimentError::Flash(format!("the store of a backing device: {fault}")))
        }
        None => Ok(times),
    }
}

/// What the stores did, all together; nothing without one.
pub(super) fn store(case: &Case, times: &Times) -> Option<Store> {
    let flash = case.spec.flash.as_ref()?;
    let mut all = StoreStats::default();
    let stores: Vec<&StoreStats> =
        times.devices.iter().filter_map(|device| device.report.store()).collect();
    stores.iter().for_each(|store| all.add(store));
    let counts = &all.counts;
    let appended_bytes = (all.appended_pages * flash.page.0) as f64;
    (!stores.is_empty()).then(|| Store {
        separation: label(&flash.separation),
        reclaim: label(&flash.reclaim),
        op: flash.over_provisioning.0,
        page_bytes: flash.page.0,
        superblock_bytes: flash.superblock.0,
        logical_pages: all.logical_pages,
        segments: all.segments,
        write_amplification: counts.write_amplification(),
        drive_writes: counts.user_pages as f64 / all.logical_pages.max(1) as f64,
        user_pages: counts.user_pages,
        moved_pages: counts.moved_pages,
        meta_pages: counts.meta_pages,
        collections: counts.collections,
        resets: all.resets,
        held_pages: all.held_pages,
        appends: all.appends,
        mean_append_bytes: appended_bytes / all.appends.max(1) as f64,
        reads: all.reads.requests,
        move_reads: all.reads.moves,
        update_reads: all.reads.update,
        meta_reads: all.reads.meta,
        memory_reads: all.reads.memory,
        unwritten_reads: all.reads.unwritten,
    })
}
