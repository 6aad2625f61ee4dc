//! The settings of a disk and its presets.
//!
//! For: each parameter once, with unit, range and source. Must never know: how a disk works.

use super::geometry::DiskShape;
use super::queue::Schedule;
use super::seek::SeekFigures;
use cachewright_types::{Bytes, Nanos, SettingError, declare};

declare! {
    /// A disk; the defaults are a 2 TB disk of 7,200 revolutions per minute.
    pub struct DiskSettings {
        "disk" {
            /// bytes that can be addressed
            capacity: Bytes = Bytes(2_000_398_934_016), "bytes",
                1_000_000 ..= 1e15;
                "Seagate 100516232 (Constellation ES SATA, ST32000644NS): 3,907,029,168 sectors";
            /// bytes per sector
            sector_bytes: u32 = 512, "bytes", 512 ..= 4096; "Seagate 100516232";
            /// revolutions per minute
            rpm: u32 = 7200, "1/min", 1000 ..= 30_000; "Seagate 100516232";
            /// surfaces with a head
            heads: u32 = 8, "heads", 1 ..= 64; "typical of 2 TB on four platters";
            /// zones of equally many cylinders, each with its own sectors per track
            zones: u32 = 16, "zones", 1 ..= 1024; "typical";
            /// rate under a head in the outermost zone
            outer_mb_per_s: f64 = 140.0, "MB/s", 0.1 ..= 10_000.0;
                "Seagate 100516232: sustained rate";
            /// rate under a head in the innermost zone
            inner_mb_per_s: f64 = 70.0, "MB/s", 0.1 ..= 10_000.0;
                "half the outer one, as the radii of 3.5-inch disks have it";
            /// seek to the next cylinder
            single_track: Nanos = Nanos(800_000), "time", 0 ..= 1_000_000_000;
                "typical of 7,200 RPM";
            /// seek between two random addresses
            average_seek: Nanos = Nanos(8_500_000), "time", 0 ..= 1_000_000_000;
                "typical of 7,200 RPM, reads";
            /// seek from the first cylinder to the last
            full_stroke: Nanos = Nanos(18_000_000), "time", 0 ..= 1_000_000_000;
                "typical of 7,200 RPM";
            /// change to another head of the same cylinder
            head_switch: Nanos = Nanos(700_000), "time", 0 ..= 1_000_000_000; "typical";
        }
        "buffer" {
            /// the track buffer
            buffer: Bytes = Bytes(67_108_864), "bytes", 0 ..= 1e12;
                "Seagate 100516232: 64 MB";
            /// parts of the buffer, each for one sequential stream; 0 for no buffer
            segments: u32 = 16, "segments", 0 ..= 1024; "typical";
            /// bytes read on after a read, at most a segment
            read_ahead: Bytes = Bytes(1_048_576), "bytes", 0 ..= 1_000_000_000; "typical";
            /// rate of the link, for reads held by the buffer
            link_mb_per_s: f64 = 300.0, "MB/s", 0.1 ..= 100_000.0;
                "Seagate 100516232: SATA 3 Gb/s";
        }
        "queue" {
            /// which waiting command is served next
            schedule: Schedule = Schedule::Satf, "name"; "HPL-CSP-91-7";
            /// waiting commands, from the oldest on, that are chosen from
            queue_depth: u32 = 32, "commands", 1 ..= 65_536; "native command queueing of SATA";
            /// a command that has waited so long goes first; 0s for never
            age_limit: Nanos = Nanos(0), "time", 0 ..= 1e12; "off by default";
        }
        "energy" {
            /// power while the platters turn; 0 is not given
            idle_power: f64 = 7.0, "W", 0.0 ..= 1_000.0;
                "Seagate Constellation ES.2 SAS product manual, rev. G, table 3 (2 TB, 3 Gb/s): \
                 0.46 A of 5 V and 0.39 A of 12 V";
            /// power while the arm moves, beyond the idle one; 0 is not given
            seek_power: f64 = 5.7, "W", 0.0 ..= 1_000.0;
                "same table: random reads draw 10.8 W, and the arm moves for 8.5 of their 12.7 ms";
            /// power while data passes under a head, beyond the idle one; 0 is not given
            transfer_power: f64 = 1.7, "W", 0.0 ..= 1_000.0;
                "same table: sequential reads draw 8.7 W (writes 9.5 W)";
        }
    }
}

/// What the preset of the 9.1 GB disk sets over the defaults: key and value as in a stack file. No
/// source gives its power.
pub const CHEETAH_9LP: [(&str, &str); 17] = [
    ("capacity", "9105018880B"),
    ("rpm", "10045"),
    ("heads", "12"),
    ("zones", "11"),
    ("outer_mb_per_s", "21.3"),
    ("inner_mb_per_s", "14.5"),
    ("single_track", "0.8ms"),
    ("average_seek", "5ms"),
    ("full_stroke", "10.6ms"),
    ("head_switch", "0.6ms"),
    ("buffer", "1MiB"),
    ("read_ahead", "64KiB"),
    ("link_mb_per_s", "80.0"),
    ("queue_depth", "64"),
    ("idle_power", "0.0"),
    ("seek_power", "0.0"),
    ("transfer_power", "0.0"),
];

impl DiskSettings {
    /// What the geometry is made from. Errors: an inner rate above the outer one.
    pub(super) fn shape(&self) -> Result<DiskShape, SettingError> {
        if self.inner_mb_per_s > self.outer_mb_per_s {
            return Err(SettingError {
                key: "inner_mb_per_s".to_owned(),
                found: self.inner_mb_per_s.to_string(),
                expected: format!("at most `outer_mb_per_s`, {}", self.outer_mb_per_s),
            });
        }
        Ok(DiskShape {
            capacity_bytes: self.capacity.0,
            sector_bytes: u64::from(self.sector_bytes),
            rpm: u64::from(self.rpm),
            heads: u64::from(self.heads),
            zones: u64::from(self.zones),
            outer_rate: self.outer_mb_per_s * 1e6,
            inner_rate: self.inner_mb_per_s * 1e6,
            head_switch_ns: self.head_switch.0,
            next_cylinder_ns: self.single_track.0,
        })
    }

    pub(super) fn seeks(&self) -> SeekFigures {
        SeekFigures {
            single_track_ns: self.single_track.0,
            average_ns: self.average_seek.0,
            full_stroke_ns: self.full_stroke.0,
        }
    }

    /// The refusal of an average seek that no curve has.
    pub(super) fn refuse_average(&self, (low, high): (u64, u64)) -> SettingError {
        let (single, full) = (self.single_track, self.full_stroke);
        SettingError {
            key: "average_seek".to_owned(),
            found: format!("`{}`", self.average_seek),
            expected: format!(
                "{} to {} between a `single_track` of {single} and a `full_stroke` of {full}",
                Nanos(low.min(high)),
                Nanos(high.max(low))
            ),
        }
    }
}
