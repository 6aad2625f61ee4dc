//! Where a byte lies on a disk and when it passes under a head.
//!
//! For: zones, sectors, skew, and the angle of the platters at a time. Must never know: queues, the
//! arm's speed. Units: sectors, nanoseconds. An angle is a whole number of [`CIRCLE`]ths of a
//! revolution: one nanosecond turns the platters by `rpm` of them. The position is therefore exact
//! at any whole number of revolutions per minute.

/// Parts of a revolution: nanoseconds of a minute.
pub const CIRCLE: u64 = 60_000_000_000;

/// Cylinders with the same number of sectors per track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    first_cylinder: u64,
    first_sector: u64,
    /// Sectors per track.
    track: u64,
    /// Sectors that pass while the next head is chosen.
    head_skew: u64,
    /// Sectors that pass while the arm moves to the next cylinder.
    cylinder_skew: u64,
}

/// What a geometry is made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskShape {
    /// Bytes that can be addressed, rounded down to whole sectors.
    pub capacity_bytes: u64,
    /// Bytes per sector.
    pub sector_bytes: u64,
    /// Revolutions per minute.
    pub rpm: u64,
    /// Surfaces, each with a head.
    pub heads: u64,
    /// Zones of equally many cylinders.
    pub zones: u64,
    /// Bytes per second under a head in the outermost zone.
    pub outer_rate: f64,
    /// Bytes per second under a head in the innermost zone.
    pub inner_rate: f64,
    /// Time to use another head of the same cylinder.
    pub head_switch_ns: u64,
    /// Time to move to the next cylinder.
    pub next_cylinder_ns: u64,
}

/// A place on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskPlace {
    /// The cylinder, from the outside.
    pub cylinder: u64,
    /// The surface.
    pub head: u64,
    /// The angle at which the sector begins.
    pub angle: u64,
}

/// A disk's sectors in space.
#[derive(Clone, Debug)]
pub struct DiskGeometry {
    zones: Vec<Zone>,
    rpm: u64,
    heads: u64,
    sectors: u64,
    cylinders: u64,
}

impl DiskGeometry {
    /// The disk of that shape; numbers of sectors are rounded down per track, the number of
    /// cylinders up.
    pub fn new(shape: &DiskShape) -> DiskGeometry {
        let sectors = (shape.capacity_bytes / shape.sector_bytes).max(1);
        let tracks: Vec<u64> =
            (0..shape.zones).map(|zone| sectors_per_track(shape, zone)).collect();
        let per_step: u64 = tracks.iter().sum::<u64>() * shape.heads;
        let cylinders = sectors.div_ceil(per_step).max(1);
        let mut zones = Vec::with_capacity(tracks.len());
        let (mut first_cylinder, mut first_sector) = (0, 0);
        for track in tracks {
            let skew = |time_ns: u64| skew_sectors(time_ns, shape.rpm, track);
            zones.push(Zone {
                first_cylinder,
                first_sector,
                track,
                head_skew: skew(shape.head_switch_ns),
                cylinder_skew: skew(shape.next_cylinder_ns),
            });
            first_cylinder += cylinders;
            first_sector += cylinders * track * shape.heads;
        }
        let (rpm, heads) = (shape.rpm, shape.heads);
        DiskGeometry { zones, rpm, heads, sectors, cylinders: first_cylinder }
    }

    /// Sectors of the disk.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Cylinders of the disk.
    pub fn cylinders(&self) -> u64 {
        self.cylinders
    }

    /// Sectors per track at a share of the way from the outermost cylinder to the innermost.
    pub fn track_at(&self, share: f64) -> u64 {
        let zone = (share * self.zones.len() as f64) as usize;
        self.zones[zone.min(self.zones.len() - 1)].track
    }

    /// The time of one revolution, rounded.
    pub fn revolution_ns(&self) -> u64 {
        (CIRCLE + self.rpm / 2) / self.rpm
    }

    /// Where a sector lies.
    pub fn place(&self, sector: u64) -> DiskPlace {
        let zone = self.zone_of(sector);
        let within = sector - zone.first_sector;
        let (track, sector) = (within / zone.track, within % zone.track);
        let (cylinder, head) = (track / self.heads, track % self.heads);
        let per_cylinder = (self.heads - 1) * zone.head_skew + zone.cylinder_skew;
        let skew = cylinder % zone.track * (per_cylinder % zone.track) + head * zone.head_skew;
        let angle = (sector + skew) % zone.track * CIRCLE / zone.track;
        DiskPlace { cylinder: zone.first_cylinder + cylinder, head, angle }
    }

    /// The time from `now_ns` until an angle is under the heads.
    pub fn wait_ns(&self, angle: u64, now_ns: u64) -> u64 {
        let phase = now_ns % CIRCLE * self.rpm % CIRCLE;
        let ahead = if angle >= phase { angle - phase } else { angle + CIRCLE - phase };
        ahead.div_ceil(self.rpm)
    }

    /// The time for `count` sectors from `first` on to pass under their heads, switches of head
    /// and cylinder included. Where a zone ends, its last cylinder's skew counts.
    pub fn pass_ns(&self, first: u64, count: u64) -> u64 {
        let (mut sector, mut left, mut time_ns) = (first, count, 0);
        while left > 0 {
            let zone = self.zone_of(sector);
            let start = sector - zone.first_sector;
            let here = left.min((self.zone_sectors(zone) - start).max(1));
            let last = start + here - 1;
            let cylinder = zone.track * self.heads;
            let crossed = last / cylinder - start / cylinder;
            let switched = last / zone.track - start / zone.track - crossed;
            let mut slots = here + crossed * zone.cylinder_skew + switched * zone.head_skew;
            left -= here;
            sector += here;
            if left > 0 {
                slots += zone.cylinder_skew;
            }
            let turns = slots / zone.track * CIRCLE + slots % zone.track * CIRCLE / zone.track;
            time_ns += turns.div_ceil(self.rpm);
        }
        time_ns
    }

    /// Sectors from `first` on that have wholly passed after `time_ns`, at most `limit`: the
    /// inverse of [`DiskGeometry::pass_ns`].
    pub fn passed(&self, first: u64, time_ns: u64, limit: u64) -> u64 {
        let zone = self.zone_of(first);
        let start = first - zone.first_sector;
        if start + limit > self.zone_sectors(zone) {
            return self.passed_by_search(first, time_ns, limit);
        }
        let units = time_ns.saturating_mul(self.rpm);
        let rest = ((units % CIRCLE + 1) * zone.track).div_ceil(CIRCLE) - 1;
        let mut slots = (units / CIRCLE).saturating_mul(zone.track).saturating_add(rest);
        let (mut position, end) = (start, start + limit);
        loop {
            let here = (zone.track - position % zone.track).min(end - position).min(slots);
            position += here;
            slots -= here;
            let next_cylinder = position.is_multiple_of(zone.track * self.heads);
            let skew = if next_cylinder { zone.cylinder_skew } else { zone.head_skew };
            if position == end || slots <= skew {
                return position - start;
            }
            slots -= skew;
        }
    }

    /// The same across the border of a zone.
    fn passed_by_search(&self, first: u64, time_ns: u64, limit: u64) -> u64 {
        if self.pass_ns(first, limit) <= time_ns {
            return limit;
        }
        let (mut low, mut high) = (0, limit);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if self.pass_ns(first, middle) <= time_ns { low = middle } else { high = middle }
        }
        low
    }

    /// Sectors of a zone; the last may have more than the disk.
    fn zone_sectors(&self, zone: &Zone) -> u64 {
        self.cylinders / self.zones.len() as u64 * zone.track * self.heads
    }

    fn zone_of(&self, sector: u64) -> &Zone {
        let after = self.zones.partition_point(|zone| zone.first_sector <= sector);
        &self.zones[after.max(1) - 1]
    }
}

/// Sectors of a track in a zone: rates fall linearly from the outermost to the innermost.
fn sectors_per_track(shape: &DiskShape, zone: u64) -> u64 {
    let share = if shape.zones > 1 { zone as f64 / (shape.zones - 1) as f64 } else { 0.0 };
    let rate = shape.outer_rate + (shape.inner_rate - shape.outer_rate) * share;
    let revolution_s = 60.0 / shape.rpm as f64;
    ((rate * revolution_s / shape.sector_bytes as f64) as u64).max(1)
}

/// Sectors that pass in a time, rounded up, less than a track.
fn skew_sectors(time_ns: u64, rpm: u64, track: u64) -> u64 {
    let turned = u128::from(time_ns) * u128::from(rpm) * u128::from(track);
    (turned.div_ceil(u128::from(CIRCLE)) % u128::from(track)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> DiskShape {
        DiskShape {
            capacity_bytes: 100_000_000,
            sector_bytes: 512,
            rpm: 7_200,
            heads: 3,
            zones: 4,
            outer_rate: 1.4e7,
            inner_rate: 7.0e6,
            head_switch_ns: 700_000,
            next_cylinder_ns: 900_000,
        }
    }

    #[test]
    fn every_sector_has_a_place_of_its_own_and_zones_shrink_inwards() {
        let disk = DiskGeometry::new(&shape());
        assert_eq!(disk.sectors(), 195_312);
        let mut seen = std::collections::HashSet::new();
        let mut last = 0;
        for sector in 0..disk.sectors() {
            let place = disk.place(sector);
            assert!(place.cylinder >= last && place.cylinder < disk.cylinders());
            assert!(place.head < 3 && place.angle < CIRCLE);
            last = place.cylinder;
            assert!(seen.insert((place.cylinder, place.head, place.angle)), "{sector} {place:?}");
        }
        assert!(disk.track_at(0.0) > disk.track_at(1.0));
    }

    #[test]
    fn angles_are_exact_after_years() {
        let disk = DiskGeometry::new(&DiskShape { rpm: 10_045, ..shape() });
        let year_ns = 365 * 24 * 3600 * 1_000_000_000_u64;
        // A year is a whole number of minutes, so of revolutions.
        for now in [0, 1, 5_973_121, 59_999_999_999] {
            assert_eq!(disk.wait_ns(77, now), disk.wait_ns(77, now + 20 * year_ns));
        }
        assert_eq!(disk.wait_ns(0, 1), (CIRCLE - 10_045).div_ceil(10_045));
    }

    /// Reading on across tracks and cylinders, each sector comes under its head just when `pass_ns`
    /// says: the skew hides the switches.
    #[test]
    fn skew_hides_the_switches() {
        let disk = DiskGeometry::new(&shape());
        let track = disk.track_at(0.0);
        let start_ns = disk.wait_ns(disk.place(0).angle, 12_345) + 12_345;
        for sector in [track - 1, track, 2 * track + 3, 3 * track, 7 * track] {
            let at_ns = start_ns + disk.pass_ns(0, sector + 1) - disk.pass_ns(sector, 1);
            let wait = disk.wait_ns(disk.place(sector).angle, at_ns.saturating_sub(2));
            assert!(wait <= 4, "sector {sector}: {wait}");
        }
    }

    #[test]
    fn passed_is_the_inverse_of_the_time_to_pass() {
        let disk = DiskGeometry::new(&shape());
        for (first, count) in [(10, 1), (0, 17), (10, 600), (77, 5_000), (10, 60_000)] {
            let time_ns = disk.pass_ns(first, count);
            for limit in [100_000, 20_000] {
                assert_eq!(disk.passed(first, time_ns, limit), count.min(limit));
                assert_eq!(disk.passed(first, time_ns - 1, limit), (count - 1).min(limit));
            }
            assert_eq!(disk.passed(first, time_ns, 5), 5.min(count));
            assert_eq!(disk.passed(first, 0, 5), 0);
        }
        for count in 1..3_000 {
            let time_ns = disk.pass_ns(100, count);
            assert_eq!(
                disk.passed(100, time_ns, 9_000),
                disk.passed_by_search(100, time_ns, 9_000)
            );
        }
    }
}
