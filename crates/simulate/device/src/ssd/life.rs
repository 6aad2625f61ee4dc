//! How long a drive lasts under what a run does to it.
//!
//! Units: program/erase cycles, days, bytes. The projection takes the run's rate for that of every
//! day and blocks for evenly worn; [`EraseCounts`](cachewright_ftl::EraseCounts) says how even they
//! are. A page programmed is its share of a cycle of its block, so that short runs without an erase
//! have a rate too.

use super::flash::FlashStats;
use super::params::SsdParams;
use cachewright_types::Bytes;

const DAY_NS: f64 = 86_400e9;

/// What a run means for the life of a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Life {
    /// Cycles that the run cost each block on average.
    pub cycles: f64,
    /// Times a day that the host writes as much as the drive holds, at the run's rate.
    pub drive_writes_per_day: f64,
    /// What follows from the endurance that blocks are rated for, if it is given.
    pub rated: Option<Rated>,
}

/// Shares of a rated endurance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rated {
    /// Cycles that a block is rated for.
    pub cycles: u32,
    /// Share of them that the average block has used, those of filling the drive included.
    pub used_share: f64,
    /// Share that the most worn block has used.
    pub max_used_share: f64,
    /// Days that a new drive lasts at the run's rate; nothing if the run programs nothing.
    pub days: Option<f64>,
    /// Bytes that the host can write to a new drive, at the run's write amplification; nothing if
    /// the run programs nothing.
    pub host_bytes: Option<f64>,
}

impl SsdParams {
    /// The life of this drive under a run of `elapsed_ns` in which the host wrote so much.
    pub fn life(&self, flash: &FlashStats, written: Bytes, elapsed_ns: u64) -> Life {
        let days = elapsed_ns as f64 / DAY_NS;
        let capacity = self.raw_pages() as f64 * (1.0 - self.spare_share()) * self.page.0 as f64;
        let cycles = flash.counters.programs.total() as f64 / self.raw_pages() as f64;
        let per_day = written.0 as f64 / capacity / days;
        let endurance = f64::from(self.endurance);
        let runs = (cycles > 0.0).then_some(endurance / cycles);
        let rated = Rated {
            cycles: self.endurance,
            used_share: flash.wear.mean / endurance,
            max_used_share: f64::from(flash.wear.max) / endurance,
            days: runs.map(|runs| runs * days),
            host_bytes: runs.map(|runs| runs * written.0 as f64),
        };
        Life {
            cycles,
            drive_writes_per_day: if elapsed_ns > 0 { per_day } else { 0.0 },
            rated: (self.endurance > 0).then_some(rated),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_ftl::EraseCounts;

    /// 16,384 pages of 8 KiB, 15,360 for the host, 120 MiB. In a second of a replay the host writes
    /// 30 MiB, which become 7,680 programmed pages: 0.46875 cycles. 1,000 cycles are 2,133 1/3 such
    /// seconds and as many times 30 MiB.
    #[test]
    fn life_is_worked_by_hand() {
        let params = SsdParams {
            channels: 2,
            chips: 1,
            dies: 1,
            planes: 1,
            blocks: 32,
            over_provisioning: 0.0625,
            endurance: 1_000,
            ..SsdParams::default()
        };
        assert_eq!(params.raw_pages(), 16_384);
        let mut flash =
            FlashStats { wear: EraseCounts::from_erases([40, 60]), ..FlashStats::default() };
        flash.counters.programs.host = 3_840;
        flash.counters.programs.moves = 3_800;
        flash.counters.programs.map = 40;
        let life = params.life(&flash, Bytes(30 << 20), 1_000_000_000);
        assert_eq!(life.cycles, 0.46875);
        assert_eq!(life.drive_writes_per_day, 0.25 * 86_400.0);
        let rated = life.rated.unwrap();
        assert_eq!((rated.used_share, rated.max_used_share), (0.05, 0.06));
        let seconds = 1_000.0 / 0.46875;
        assert!((rated.days.unwrap() - seconds / 86_400.0).abs() < 1e-12, "{rated:?}");
        assert!((rated.host_bytes.unwrap() / (seconds * f64::from(30 << 20)) - 1.0).abs() < 1e-12);
        flash.counters = Default::default();
        let idle = params.life(&flash, Bytes(0), 0);
        assert_eq!((idle.cycles, idle.drive_writes_per_day), (0.0, 0.0));
        let rated = idle.rated.unwrap();
        assert_eq!((rated.days, rated.host_bytes), (None, None));
        let unrated = SsdParams { endurance: 0, ..params };
        assert_eq!(unrated.life(&flash, Bytes(0), 1).rated, None);
    }
}
