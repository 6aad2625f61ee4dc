//! Where tenants' blocks lie on a cache device whose channels are laid out, and what changed
//! places.
//!
//! For: `timing.rooms`, `timing.migrations` and `rooms.parquet`. Must never know: which channels
//! they are, how it is drawn. Units: blocks of the cache, bytes. Schema of the file: `case`,
//! `window`, `tenant` as UINT_32, `time_ns` (the window's end), `own_blocks`, `common_blocks`,
//! `elsewhere_blocks` as UINT_64; one row group.

use crate::ExperimentError;
use crate::case::Case;
use crate::series::{whole, write_numbers};
use crate::spec::TenantSpec;
use cachewright_system::timed::{InRooms, Migrated, Times};
use serde_json::{Value, json};
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
/// The columns that windows have for each tenant.
const ROOMS: [&str; 3] = ["own_blocks", "common_blocks", "elsewhere_blocks"];

/// Blocks that changed places on the cache device; nothing where none did.
pub fn migrations_json(case: &Case, times: &Times) -> Option<Value> {
    let sum = |of: fn(&Migrated) -> u64| times.migrated.iter().map(of).sum::<u64>();
    if sum(|done| done.swaps + done.moves) == 0 {
        return None;
    }
    let named = case.spec.tenants.iter().zip(&times.migrated);
    let tenants: Vec<Value> = named
        .map(|(tenant, done)| {
            json!({
                "name": tenant.name,
                "swaps": done.swaps,
                "moves": done.moves,
                "bytes": done.bytes,
            })
        })
        .collect();
    Some(json!({ "bytes": sum(|done| done.bytes), "tenants": tenants }))
}

/// Where tenants' blocks lay at the end and at the end of each window; nothing where channels are
/// not laid out.
pub fn rooms_json(case: &Case, times: &Times) -> Option<Value> {
    let ((_, end), windows) = times.rooms.split_last()?;
    let blocks = |(tenant, held): (&TenantSpec, &InRooms)| {
        json!({
            "name": tenant.name,
            "own_blocks": held.own_blocks,
            "common_blocks": held.common_blocks,
            "elsewhere_blocks": held.elsewhere_blocks,
        })
    };
    let window = |(time_ns, held): &(u64, Vec<InRooms>)| {
        let each = |of: fn(&InRooms) -> u32| held.iter().map(of).collect::<Vec<u32>>();
        json!({
            "time_ns": time_ns,
            "own_blocks": each(|held| held.own_blocks),
            "common_blocks": each(|held| held.common_blocks),
            "elsewhere_blocks": each(|held| held.elsewhere_blocks),
        })
    };
    Some(json!({
        "tenants": case.spec.tenants.iter().zip(end).map(blocks).collect::<Vec<Value>>(),
        "windows": windows.iter().map(window).collect::<Vec<Value>>(),
    }))
}

/// Writes the windows of all answers; returns whether there are any.
pub fn write(path: &Path, answers: &[Value]) -> Result<bool, ExperimentError> {
    let mut rows: Vec<[u64; 7]> = Vec::new();
    for answer in answers {
        let windows = answer["timing"]["rooms"]["windows"].as_array();
        for (number, window) in windows.into_iter().flatten().enumerate() {
            let (case, time_ns) = (whole(&answer["case"]), whole(&window["time_ns"]));
            for tenant in 0..window[ROOMS[0]].as_array().map_or(0, Vec::len) {
                let [own, common, elsewhere] = ROOMS.map(|room| whole(&window[room][tenant]));
                let (number, tenant) = (number as u64, tenant as u64);
                rows.push([case, number, time_ns, tenant, own, common, elsewhere]);
            }
        }
    }
    write_numbers(path, SCHEMA, &mut rows)
}
