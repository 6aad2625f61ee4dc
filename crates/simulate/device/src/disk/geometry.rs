//! Where a byte lies on a disk, when it passes under a head, and how long the arm takes to it.
//!
//! An angle is a whole number of [`CIRCLE`]ths of a revolution: one nanosecond turns the platters
//! by `rpm` of them. The position is therefore exact at any whole number of revolutions per minute.
//!
//! The time of a seek is a + b sqrt(d-1) + c (d-1) of the cylinders crossed (Ruemmler and Wilkes,
//! "An introduction to disk drive modeling", IEEE Computer 27(3), 1994): short seeks follow the
//! square root of the distance, long ones are linear. `a` is the published time to the next track.
//! `b` and `c` give the longest seek the published full stroke. Seeks between two random addresses,
//! each byte as likely as any other, take the published average. Outer cylinders hold more bytes,
//! so they are weighted.
//!
//! Units: sectors, cylinders, nanoseconds.

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
/// Bins of the arm's range in which the average is computed.
const BINS: usize = 512;

/// A fitted curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeekCurve {
    next_track_ns: f64,
    root_ns: f64,
    linear_ns: f64,
}

/// The published figures of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeekFigures {
    /// To the next cylinder.
    pub single_track_ns: u64,
    /// Between two random addresses.
    pub average_ns: u64,
    /// From the first cylinder to the last.
    pub full_stroke_ns: u64,
}

impl SeekCurve {
    /// The curve of a disk of `cylinders`. The `i`-th of equal parts of the arm's range holds a
    /// share of the bytes in proportion to `weight(i / parts)`. Errors: the smallest and largest
    /// average, in nanoseconds, for which a curve that never falls exists.
    pub fn fit(
        figures: SeekFigures,
        cylinders: u64,
        weight: impl Fn(f64) -> f64,
    ) -> Result<SeekCurve, (u64, u64)> {
        let a = figures.single_track_ns as f64;
        if cylinders < 3 {
            return Ok(SeekCurve { next_track_ns: a, root_ns: 0.0, linear_ns: 0.0 });
        }
        let (mean_root, mean_linear) = mean_distances(cylinders as f64, weight);
        let reach = (cylinders - 2) as f64;
        let rise = figures.full_stroke_ns as f64 - a;
        // All of the rise linear, and as much of it of the root as leaves the curve rising.
        let slowest_root = rise / (reach.sqrt() / 2.0);
        let average = |root: f64| a + root * mean_root + linear(rise, root, reach) * mean_linear;
        let (low, high) = (average(0.0), average(slowest_root));
        let wanted = figures.average_ns as f64;
        if rise < 0.0 || wanted < low.min(high) || wanted > low.max(high) {
            return Err((low.max(0.0) as u64, high.max(0.0) as u64));
        }
        let share = if high > low { (wanted - low) / (high - low) } else { 0.0 };
        let root_ns = slowest_root * share;
        Ok(SeekCurve { next_track_ns: a, root_ns, linear_ns: linear(rise, root_ns, reach) })
    }

    /// The time to cross so many cylinders; 0 for none.
    #[inline]
    pub fn time_ns(&self, cylinders: u64) -> u64 {
        if cylinders == 0 {
            return 0;
        }
        let more = (cylinders - 1) as f64;
        (self.next_track_ns + self.root_ns * more.sqrt() + self.linear_ns * more).round() as u64
    }
}

/// The linear factor with which root and line together rise by `rise` over `reach` cylinders.
fn linear(rise: f64, root: f64, reach: f64) -> f64 {
    (rise - root * reach.sqrt()) / reach
}

/// Means of sqrt(d) and d over two random addresses, d in cylinders.
fn mean_distances(cylinders: f64, weight: impl Fn(f64) -> f64) -> (f64, f64) {
    let weights: Vec<f64> = (0..BINS).map(|bin| weight((bin as f64 + 0.5) / BINS as f64)).collect();
    let total: f64 = weights.iter().sum();
    let width = cylinders / BINS as f64;
    let (mut root, mut line) = (0.0, 0.0);
    for apart in 0..BINS {
        let pairs: f64 = weights.iter().zip(&weights[apart..]).map(|(x, y)| x * y).sum();
        if apart == 0 {
            // Two uniform points of one bin: E sqrt|x-y| = 8/15, E|x-y| = 1/3 of its width.
            root += pairs * width.sqrt() * 8.0 / 15.0;
            line += pairs * width / 3.0;
        } else {
            let distance = width * apart as f64;
            root += 2.0 * pairs * distance.sqrt();
            line += 2.0 * pairs * distance;
        }
    }
    (root / (total * total), line / (total * total))
}

/// The arm, and the head that is chosen.
#[derive(Clone, Debug)]
pub struct Arm {
    curve: SeekCurve,
    head_switch_ns: u64,
    cylinder: u64,
    head: u64,
}

impl Arm {
    /// An arm at the outermost cylinder.
    pub fn new(curve: SeekCurve, head_switch_ns: u64) -> Arm {
        Arm { curve, head_switch_ns, cylinder: 0, head: 0 }
    }

    /// The cylinder that the arm is at.
    pub fn cylinder(&self) -> u64 {
        self.cylinder
    }

    /// The way to a place from where the arm is.
    pub fn way_ns(&self, place: &DiskPlace) -> u64 {
        match place.cylinder.abs_diff(self.cylinder) {
            0 if place.head == self.head => 0,
            0 => self.head_switch_ns,
            crossed => self.curve.time_ns(crossed),
        }
    }

    /// The arm is at a place.
    pub fn move_to(&mut self, place: &DiskPlace) {
        (self.cylinder, self.head) = (place.cylinder, place.head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

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

    #[test]
    fn the_curve_meets_its_three_figures_and_never_falls() {
        let figures = SeekFigures {
            single_track_ns: 800_000,
            average_ns: 8_500_000,
            full_stroke_ns: 19_000_000,
        };
        let curve = SeekCurve::fit(figures, 100_000, |_| 1.0).unwrap();
        assert_eq!((curve.time_ns(0), curve.time_ns(1)), (0, 800_000));
        assert_eq!(curve.time_ns(99_999), 19_000_000);
        assert!((1..99_999).all(|d| curve.time_ns(d) <= curve.time_ns(d + 1)));
        let mut rng = Seed(1).rng();
        let mut draw = || rng.below(100_000);
        let sum: u64 = (0..400_000).map(|_| curve.time_ns(draw().abs_diff(draw()))).sum();
        let mean = sum as f64 / 400_000.0;
        assert!((mean / 8_500_000.0 - 1.0).abs() < 0.004, "{mean}");
    }

    #[test]
    fn figures_that_no_curve_meets_are_refused_with_the_bounds() {
        let figures = SeekFigures {
            single_track_ns: 1_000_000,
            average_ns: 20_000_000,
            full_stroke_ns: 19_000_000,
        };
        let (low, high) = SeekCurve::fit(figures, 10_000, |_| 1.0).unwrap_err();
        assert!(low > 6_000_000 && high < 15_000_000, "{low} {high}");
        let one = SeekCurve::fit(figures, 1, |_| 1.0).unwrap();
        assert_eq!(one.time_ns(0), 0);
    }
}
