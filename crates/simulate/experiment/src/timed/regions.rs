//! Where tenants' blocks lie on a cache device whose channels are laid out, and what changed
//! places.
//!
//! For: `timing.rooms`, `timing.migrations` and `rooms.parquet`. Must never know: which channels
//! they are, how it is drawn. Units: blocks of the cache, bytes. Schema of the file: `case`,
//! `window`, `tenant` as UINT_32, `time_ns` (the window's end), `own_blocks`, `common_blocks`,
//! `elsewhere_blocks` as UINT_64; one row group.

use crate::ExperimentError;
use crate::case::Case;
use crate::series::write_numbers;
use crate::spec::TenantSpec;
use cachewright_result::case::Case as CaseAnswer;
use cachewright_result::channels::{
    BlockRegions, Migrations, RegionWindow, TenantMigrations, TenantRegions,
};
use cachewright_system::event_loop::Times;
use cachewright_system::machines::{Migrated, RegionBlocks};
use std::path::Path;

const SCHEMA: &str = "message rooms {
    REQUIRED INT32 case (UINT_32);
    REQUIRED INT32 window (UINT_32);
    REQUIRED INT64 time_ns (UINT_64);
    REQUIRED INT32 tenant (UINT_32);
    REQUIRED INT64 own_blocks (UINT_64);
    REQUIRED INT64 common_blocks (UINT_64);
    REQUIRED INT64 elsewhere_blocks (UINT_64);
}";
/// Blocks that changed places on the cache device; nothing where none did.
pub fn migrations(case: &Case, times: &Times) -> Option<Migrations> {
    let sum = |count: fn(&Migrated) -> u64| times.channels.migrated.iter().map(count).sum::<u64>();
    if sum(|done| done.swaps + done.moves) == 0 {
        return None;
    }
    let named = case.spec.tenants.iter().zip(&times.channels.migrated);
    let tenant = |(tenant, done): (&TenantSpec, &Migrated)| TenantMigrations {
        name: tenant.name.clone(),
        swaps: done.swaps,
        moves: done.moves,
        bytes: done.bytes,
    };
    Some(Migrations { bytes: sum(|done| done.bytes), tenants: named.map(tenant).collect() })
}

/// Where tenants' blocks lay at the end and at the end of each window; nothing where channels are
/// not laid out.
pub fn regions(case: &Case, times: &Times) -> Option<BlockRegions> {
    let ((_, end), windows) = times.channels.regions.split_last()?;
    let blocks = |(tenant, held): (&TenantSpec, &RegionBlocks)| TenantRegions {
        name: tenant.name.clone(),
        own_blocks: held.private_blocks,
        common_blocks: held.shared_blocks,
        elsewhere_blocks: held.elsewhere_blocks,
    };
    let window = |(time_ns, held): &(u64, Vec<RegionBlocks>)| {
        let each = |count: fn(&RegionBlocks) -> u32| held.iter().map(count).collect::<Vec<u32>>();
        RegionWindow {
            time_ns: *time_ns,
            own_blocks: each(|held| held.private_blocks),
            common_blocks: each(|held| held.shared_blocks),
            elsewhere_blocks: each(|held| held.elsewhere_blocks),
        }
    };
    Some(BlockRegions {
        tenants: case.spec.tenants.iter().zip(end).map(blocks).collect(),
        windows: windows.iter().map(window).collect(),
    })
}

/// Writes the windows of all answers; returns whether there are any.
pub fn write(path: &Path, answers: &[CaseAnswer]) -> Result<bool, ExperimentError> {
    let mut rows: Vec<[u64; 7]> = Vec::new();
    for answer in answers {
        let regions = answer.timing.as_ref().and_then(|timing| timing.rooms.as_ref());
        let windows = regions.into_iter().flat_map(|regions| &regions.windows);
        for (number, window) in windows.enumerate() {
            let shared = window.common_blocks.iter().zip(&window.elsewhere_blocks);
            for (tenant, (own, (common, elsewhere))) in
                window.own_blocks.iter().zip(shared).enumerate()
            {
                let blocks = [own, common, elsewhere].map(|blocks| u64::from(*blocks));
                let [own, common, elsewhere] = blocks;
                let (case, number, tenant) = (answer.case as u64, number as u64, tenant as u64);
                rows.push([case, number, window.time_ns, tenant, own, common, elsewhere]);
            }
        }
    }
    write_numbers(path, SCHEMA, &mut rows)
}
