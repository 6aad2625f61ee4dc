//! What decides for a log-structured store: a stack's `[flash]` as a translation layer.
//!
//! For: machines with `machine.system = "flash-store"`, whose stores decide exactly as the drives
//! of `wa` do. Must never know: devices, time. Units: pages, segments (superblocks).

use super::drive::DriveJob;
use super::failure;
use super::training::TrainingChoice;
use crate::ExperimentError;
use crate::case::Case;
use crate::spec::FlashSpec;
use cachewright_device::store::StoreLayer;

/// The translation layer of a store of a case, of so many pages. Errors: a drive that cannot be.
pub fn log(
    case: &Case,
    flash: &FlashSpec,
    logical_pages: u32,
) -> Result<StoreLayer, ExperimentError> {
    let job = DriveJob::new(case, flash, logical_pages, TrainingChoice::default());
    let layer = job.layer().map_err(|stop| failure(&case.spec.origin, &job, stop, "flash"))?;
    Ok(StoreLayer { layer, geometry: job.geometry, page: flash.page })
}
