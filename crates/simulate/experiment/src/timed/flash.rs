//! What the flash of a drive did, as results have it.
//!
//! For: every device with flash. Must never know: how flash works. Units: pages of the drive,
//! nanoseconds and shares of the replay's time unless a name says otherwise.

use cachewright_device::ssd::flash::{FlashStats, QueueClass, UnitStage};
use cachewright_device::ssd::{Life, SsdParams};
use cachewright_result::Entries;
use cachewright_result::flash::{BusyShares, Dies, Flash, Queue, RatedLife, Wear};
use cachewright_types::Bytes;

/// What flash did in a replay of `end_ns` in which the host wrote so much to it.
pub(super) fn flash(params: &SsdParams, flash: &FlashStats, written: Bytes, end_ns: u64) -> Flash {
    let counters = &flash.counters;
    let empty = flash.preconditioned == "empty";
    Flash {
        preconditioned: flash.preconditioned.to_owned(),
        filled_share: if empty { 0.0 } else { params.occupancy },
        write_amplification: flash.write_amplification(),
        collections: flash.collections,
        moved_pages: flash.moved_pages,
        erases: counters.erases,
        host_reads: counters.reads.host,
        update_reads: counters.reads.update,
        map_misses: counters.reads.map,
        map_programs: counters.programs.map,
        host_programs: counters.programs.host,
        meta_programs: counters.programs.meta,
        unwritten_reads: counters.reads.unwritten,
        buffered_reads: counters.reads.buffered,
        multi_plane_reads: counters.multi_plane.reads,
        multi_plane_programs: counters.multi_plane.programs,
        multi_plane_erases: counters.multi_plane.erases,
        copy_backs: counters.copy_backs,
        suspends: counters.suspends,
        predictions: counters.predictions.taken,
        awaited_predictions: counters.predictions.awaited,
        predicting: share(flash.busy.controller_ns, end_ns),
        channels: shares(flash.busy.channel_ns.iter().copied(), end_ns),
        dies: dies(params, flash, end_ns),
        queues: queues(flash, end_ns),
        wear: wear(params, flash, written, end_ns),
    }
}

/// Part of a time, as a ratio.
pub(super) fn share(part_ns: u64, whole_ns: u64) -> f64 {
    part_ns as f64 / whole_ns.max(1) as f64
}

/// Shares of the time, each and together.
fn shares(busy_ns: impl Iterator<Item = u64>, end_ns: u64) -> BusyShares {
    let busy: Vec<f64> = busy_ns.map(|busy_ns| share(busy_ns, end_ns)).collect();
    BusyShares {
        min: busy.iter().copied().fold(1.0, f64::min),
        mean: busy.iter().sum::<f64>() / busy.len().max(1) as f64,
        max: busy.iter().copied().fold(0.0, f64::max),
        busy,
    }
}

/// Dies, or chips where the dies of one do not overlap: `unit` says which.
fn dies(params: &SsdParams, flash: &FlashStats, end_ns: u64) -> Dies {
    let (worked, cleaned) = (&flash.busy.unit_worked_ns, &flash.busy.unit_cleaned_ns);
    let all_ns = end_ns * worked.len() as u64;
    let stages = UnitStage::BUSY.map(|(stage, word)| (word, share(flash.stage_ns(stage), all_ns)));
    Dies {
        shares: shares(worked.iter().zip(cleaned).map(|(a, b)| a + b), end_ns),
        unit: if params.die_interleave { "die" } else { "chip" }.to_owned(),
        cleaning: share(cleaned.iter().sum(), all_ns),
        stages: stages.into_iter().collect(),
    }
}

/// Waits before dies, by what waited.
fn queues(flash: &FlashStats, end_ns: u64) -> Entries<Queue> {
    let queue = |class: QueueClass| {
        let waits = flash.waits(class);
        let queue = Queue {
            served: waits.left,
            mean_waiting: share(waits.area_ns, end_ns),
            max_waiting: waits.max_waiting,
            mean_wait_ns: waits.waited_ns as f64 / waits.left.max(1) as f64,
        };
        (class.word(), queue)
    };
    QueueClass::ALL.into_iter().map(queue).collect()
}

/// Erases of blocks, and what the replay means for the life of the drive.
fn wear(params: &SsdParams, flash: &FlashStats, written: Bytes, end_ns: u64) -> Wear {
    let found = flash.wear;
    let Life { cycles, drive_writes_per_day, rated } = params.life(flash, written, end_ns);
    Wear {
        min: found.min,
        mean: found.mean,
        max: found.max,
        stddev: found.deviation,
        levelling_moves: flash.counters.wear_moves,
        written_bytes: written.0,
        programmed_bytes: flash.counters.programs.total() * params.page.0,
        cycles,
        drive_writes_per_day,
        rated: rated.map(|rated| RatedLife {
            cycles: rated.cycles,
            used_share: rated.used_share,
            max_used_share: rated.max_used_share,
            life_days: rated.days,
            life_bytes: rated.host_bytes,
        }),
    }
}
