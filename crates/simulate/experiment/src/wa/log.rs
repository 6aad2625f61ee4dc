//! What decides for a log-structured store: a stack's `[flash]` as a translation layer.
//!
//! For: machines with `machine.system = "flash-store"`, whose stores decide exactly as the drives
//! of `wa` do. Must never know: devices, time. Units: pages, segments (superblocks).

use super::cached::case;
use super::failure;
use crate::ExperimentError;
use crate::spec::{FlashSpec, Spec};
use cachewright_device::store::StoreLayer;

/// The translation layer of a store of so many pages; `index` is the case's number. Errors: a
/// drive that cannot be.
pub fn log(
    spec: &Spec,
    flash: &FlashSpec,
    logical_pages: u32,
    index: usize,
) -> Result<StoreLayer, ExperimentError> {
    let case = case(spec, flash, logical_pages, index);
    let layer = case.layer().map_err(|stop| failure(&spec.origin, &case, stop, "flash"))?;
    Ok(StoreLayer { layer, geometry: case.geometry, page: flash.page })
}
