//! How long reads of the devices take.
//!
//! For: `replay.hit_time` and `replay.miss_time`, which turn goals in latency into hit ratios. Must
//! never know: what the devices hold. Units: nanoseconds; microseconds in the answer. Random blocks
//! are read, one at a time and as many at one time as asked for. Nothing is written.

use crate::devices::Devices;
use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_live::io::delayed::Delayed;
use cachewright_live::io::open::FileAccess;
use cachewright_live::io::{Buffer, FileId, Io, IoError, IoOp, Output, Token};
use cachewright_result::live::{CalibratedDevice, LiveCalibrateAnswer, ReadTimes};
use cachewright_result::written::Written;
use cachewright_types::Nanos;
use std::path::Path;

const NS_PER_US: f64 = 1e3;

/// How devices are read.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// Reads of each device at each depth; at least 1.
    pub reads: usize,
    /// Reads under way at one time, beside one at a time; at least 1.
    pub depth: usize,
}

/// A device to be read.
struct CalibrationTarget<'a> {
    path: &'a Path,
    /// The tenant whose volume it is; `None`: it is one of the cache's.
    tenant: Option<&'a str>,
    file: FileId,
}

/// Times with which any goal in latency is one: those of the stack are not known yet.
const ANY_TIMES: [(&str, &str); 2] =
    [("replay.hit_time", "1ns"), ("replay.miss_time", "31536000s")];

/// Reads random blocks of the cache's devices and of all backing devices of a stack file's text;
/// `origin` is its path; `overrides` are `key=value` pairs set over it. Errors: the stack; a device
/// is not there, in use, smaller than a block, or cannot be read.
pub fn calibrate(
    (text, origin, overrides): (&str, &Path, &[(String, String)]),
    how: Calibration,
) -> Result<LiveCalibrateAnswer, LiveError> {
    let times = ANY_TIMES.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let overrides: Vec<_> = overrides.iter().cloned().chain(times).collect();
    let plan = &LivePlan::read(text, origin, &overrides)?;
    let Devices { io, cache, backings, notices } = Devices::open(plan, FileAccess::Read)?;
    let of_cache = plan.serve.devices.iter().zip(&cache);
    let of_cache =
        of_cache.map(|(path, file)| CalibrationTarget { path, tenant: None, file: *file });
    let of_tenants = plan.volumes.iter().zip(&backings).map(|(volume, file)| CalibrationTarget {
        path: &volume.backing,
        tenant: Some(&volume.name),
        file: *file,
    });
    let targets: Vec<CalibrationTarget<'_>> = of_cache.chain(of_tenants).collect();
    let delay_ns = plan.serve.backing_delay.0;
    let slow = backings.iter().filter(|_| delay_ns > 0).map(|file| (*file, delay_ns));
    let mut io = Delayed::new(io, slow.collect());
    let mut devices = Vec::new();
    for target in &targets {
        devices.push(device(&mut io, (plan, how), target)?);
    }
    let (hit, miss) = (mean(&devices, true), mean(&devices, false));
    let is_usable = hit < miss;
    Ok(LiveCalibrateAnswer {
        written: Written::here(),
        block_bytes: plan.block_bytes(),
        reads: how.reads as u64,
        devices,
        hit_time: hit.to_string(),
        miss_time: miss.to_string(),
        is_usable,
        notices,
    })
}

fn device(
    io: &mut impl Io,
    (plan, how): (&LivePlan, Calibration),
    target: &CalibrationTarget<'_>,
) -> Result<CalibratedDevice, LiveError> {
    let path = target.path.display().to_string();
    let block = plan.block_bytes();
    let blocks = io.file_bytes(target.file) / block;
    if blocks == 0 {
        return Err(LiveError::Refused(format!(
            "{path}: found less than a block, expected at least {block} bytes"
        )));
    }
    let mut rng = plan.seed().derive("calibrate").derive(&path).rng();
    let depths = [Some(1), Some(how.depth).filter(|depth| *depth > 1)];
    let mut times = Vec::new();
    for depth in depths.into_iter().flatten() {
        let offsets: Vec<u64> = (0..how.reads).map(|_| rng.below(blocks) * block).collect();
        let taken = read_times(io, target.file, (&offsets, block as usize), depth);
        let taken = taken.map_err(|error| LiveError::Failed(format!("{path}: {error}")))?;
        times.push(summary(taken, depth));
    }
    Ok(CalibratedDevice { path, tenant: target.tenant.map(str::to_owned), times })
}

/// The time of each read, sorted, with so many reads under way. Errors: the first read that fails.
fn read_times(
    io: &mut impl Io,
    file: FileId,
    (offsets, block_bytes): (&[u64], usize),
    depth: usize,
) -> Result<Vec<u64>, IoError> {
    let mut spare: Vec<Buffer> =
        (0..depth.min(offsets.len())).map(|_| Buffer::zeroed(block_bytes)).collect();
    let mut begun_ns = vec![0; offsets.len()];
    let mut times = Vec::with_capacity(offsets.len());
    let (mut next, mut under_way) = (0, 0);
    let (mut done, mut failed) = (Vec::new(), None);
    loop {
        while let Some(offset) = offsets.get(next).filter(|_| failed.is_none()) {
            let Some(buffer) = spare.pop() else { break };
            begun_ns[next] = io.now_ns();
            io.submit(Token(next as u64), IoOp::Read { file, offset: *offset, buffer });
            (next, under_way) = (next + 1, under_way + 1);
        }
        if under_way == 0 {
            break;
        }
        io.wait(&mut done);
        let now_ns = io.now_ns();
        for done in done.drain(..) {
            under_way -= 1;
            failed = failed.or(done.error);
            times.push(now_ns - begun_ns[done.token.0 as usize]);
            if let Output::Buffer(buffer, _) = done.output {
                spare.push(buffer);
            }
        }
    }
    times.sort_unstable();
    failed.map_or(Ok(times), Err)
}

/// `times` are sorted and not empty; a percentile is the smallest time that so many do not exceed.
fn summary(times: Vec<u64>, depth: usize) -> ReadTimes {
    let rank = |percent: usize| (times.len() * percent).div_ceil(100).max(1) - 1;
    let us = |percent: usize| times.get(rank(percent)).map_or(0.0, |ns| *ns as f64 / NS_PER_US);
    let sum: u64 = times.iter().sum();
    ReadTimes {
        depth: depth as u64,
        mean_us: sum as f64 / times.len() as f64 / NS_PER_US,
        p50_us: us(50),
        p99_us: us(99),
    }
}

/// The mean time of single reads of all devices of the cache, or of all others. A mean, as goals
/// are about mean times (Patrick et al., section III-A).
fn mean(devices: &[CalibratedDevice], is_of_cache: bool) -> Nanos {
    let own = devices.iter().filter(|device| device.tenant.is_none() == is_of_cache);
    let own: Vec<f64> =
        own.filter_map(|device| device.times.first()).map(|times| times.mean_us).collect();
    Nanos((own.iter().sum::<f64>() / own.len().max(1) as f64 * NS_PER_US).round() as u64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use cachewright_live::io::Done;

    /// Reads take 1 us, 2 us and so on; at most so many are under way. Byte 4096 × 7 is bad.
    #[derive(Default)]
    struct Device {
        now_ns: u64,
        under_way: Vec<(Token, IoOp)>,
        most: usize,
        reads: u64,
    }

    impl Io for Device {
        fn submit(&mut self, token: Token, op: IoOp) {
            self.under_way.push((token, op));
            self.most = self.most.max(self.under_way.len());
        }

        fn wait(&mut self, done: &mut Vec<Done>) {
            let (token, op) = self.under_way.remove(0);
            let is_bad = matches!(op, IoOp::Read { offset, .. } if offset == 7 * 4096);
            self.reads += 1;
            self.now_ns += self.reads * 1000;
            let error = is_bad.then_some(IoError::IO);
            done.push(Done { token, output: op.give_back(), error });
        }

        fn now_ns(&self) -> u64 {
            self.now_ns
        }

        fn file_bytes(&self, _file: FileId) -> u64 {
            1 << 20
        }
    }

    #[test]
    fn times_of_single_reads_are_those_of_the_device() {
        let mut io = Device::default();
        let times = read_times(&mut io, FileId::new(0), (&[0; 200], 4096), 1).unwrap();
        assert_eq!(times, (1..=200).map(|us| us * 1000).collect::<Vec<u64>>());
        assert_eq!(io.most, 1);
        let found = summary(times, 1);
        assert_eq!((found.mean_us, found.p50_us, found.p99_us), (100.5, 100.0, 198.0));
        assert_eq!(summary(vec![5000], 1).p99_us, 5.0);
    }

    #[test]
    fn a_read_among_others_also_waits_for_them() {
        let mut io = Device::default();
        let times = read_times(&mut io, FileId::new(0), (&[0; 10], 4096), 4).unwrap();
        assert_eq!((io.most, times.len()), (4, 10));
        assert_eq!(times[0], 1000, "the first waits for none");
        assert_eq!(times[9], (7 + 8 + 9 + 10) * 1000, "the last waits for three");
    }

    #[test]
    fn a_read_that_fails_ends_the_measurement() {
        let mut io = Device::default();
        let offsets = [0, 7 * 4096, 0, 0, 0, 0];
        let found = read_times(&mut io, FileId::new(0), (&offsets, 4096), 2);
        assert_eq!((found, io.reads), (Err(IoError::IO), 3));
    }
}
