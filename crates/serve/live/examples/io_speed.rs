//! What the trait for input and output costs: random reads of 4 KiB without the page cache, by the
//! trait's siblings and by the same ring without the trait.
//!
//! ```sh
//! cargo run --release -p cachewright-live --example io_speed -- FOLDER [ROUNDS]
//! ```
//!
//! A file of 512 MiB in FOLDER is read. In each round every way runs once at each depth, one right
//! after the other, in an order that changes. Ratios are medians over the rounds: the rate beside
//! the raw ring's, and processor time per read beside the raw ring's (1.05 is 5 % more).

#![allow(unsafe_code)] // the raw ring; see `Raw::push`

use cachewright_live::io::open::{FileAccess, OpenFile, open_file};
use cachewright_live::io::threads::Threads;
use cachewright_live::io::uring::Uring;
use cachewright_live::io::{Buffer, FileId, Io, IoOp, Output, Token};
use cachewright_types::{Rng, Seed};
use io_uring::{IoUring, opcode, types};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

const BLOCK: usize = 4096;
const FILE_BYTES: u64 = 512 << 20;
const BLOCKS: u64 = FILE_BYTES / BLOCK as u64;
/// Depths, and reads of each run.
const RUNS: [(usize, u64); 2] = [(1, 5_000), (32, 40_000)];
const WAYS: [&str; 3] = ["raw ring", "uring", "threads"];

/// What a run took.
#[derive(Clone, Copy)]
struct Cost {
    wall_s: f64,
    cpu_s: f64,
}

fn seconds(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn measure(run: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<Cost, Box<dyn Error>> {
    let (wall_s, cpu_s) = (seconds(ClockId::Monotonic), seconds(ClockId::ProcessCPUTime));
    run()?;
    Ok(Cost {
        wall_s: seconds(ClockId::Monotonic) - wall_s,
        cpu_s: seconds(ClockId::ProcessCPUTime) - cpu_s,
    })
}

/// A ring without the trait, set up as `uring` sets it up.
struct Raw {
    ring: IoUring,
    buffers: Vec<Buffer>,
    fd: types::Fd,
}

impl Raw {
    fn push(&mut self, place: usize, offset: u64) {
        let buffer = self.buffers[place].as_mut_ptr();
        let read = opcode::Read::new(self.fd, buffer, BLOCK as u32).offset(offset);
        // SAFETY: the buffer lies in `buffers` until `run` has collected all completions, and the
        // file is open longer than the ring.
        let pushed = unsafe { self.ring.submission().push(&read.build().user_data(place as u64)) };
        assert!(pushed.is_ok(), "the queue is longer than the depth");
    }

    fn run(&mut self, depth: usize, reads: u64, rng: &mut Rng) -> Result<(), Box<dyn Error>> {
        for place in 0..depth {
            self.push(place, rng.below(BLOCKS) * BLOCK as u64);
        }
        let (mut begun, mut ended) = (depth as u64, 0);
        let mut places = Vec::with_capacity(depth);
        while ended < reads {
            self.ring.submit_and_wait(1)?;
            places.extend(self.ring.completion().map(|entry| (entry.user_data(), entry.result())));
            for (place, result) in places.drain(..) {
                assert_eq!(result, BLOCK as i32);
                ended += 1;
                if begun < reads {
                    self.push(place as usize, rng.below(BLOCKS) * BLOCK as u64);
                    begun += 1;
                }
            }
        }
        Ok(())
    }
}

fn run_raw(file: &OpenFile, depth: usize, reads: u64, seed: Seed) -> Result<Cost, Box<dyn Error>> {
    let mut builder = IoUring::builder();
    builder.setup_single_issuer().setup_defer_taskrun().setup_submit_all().setup_cqsize(4096);
    let ring = builder.build(256)?;
    let buffers = vec![Buffer::zeroed(BLOCK); depth];
    let mut raw = Raw { ring, buffers, fd: types::Fd(file.as_fd().as_raw_fd()) };
    let mut rng = seed.rng();
    measure(|| raw.run(depth, reads, &mut rng))
}

fn run_io(
    io: &mut impl Io,
    file: FileId,
    depth: usize,
    reads: u64,
    seed: Seed,
) -> Result<Cost, Box<dyn Error>> {
    let mut rng = seed.rng();
    let buffers = vec![Buffer::zeroed(BLOCK); depth];
    measure(|| {
        let mut read = |buffer: Buffer| {
            let offset = rng.below(BLOCKS) * BLOCK as u64;
            IoOp::Read { file, offset, buffer }
        };
        for buffer in buffers {
            io.submit(Token(0), read(buffer));
        }
        let (mut begun, mut ended, mut done) = (depth as u64, 0, Vec::new());
        while ended < reads {
            io.wait(&mut done);
            for done in done.drain(..) {
                let Output::Buffer(buffer, BLOCK) = done.output else {
                    return Err(format!("found {done:?}").into());
                };
                ended += 1;
                if begun < reads {
                    io.submit(Token(0), read(buffer));
                    begun += 1;
                }
            }
        }
        Ok(())
    })
}

fn run_way(
    way: usize,
    path: &Path,
    depth: usize,
    reads: u64,
    seed: Seed,
) -> Result<Cost, Box<dyn Error>> {
    let file = open_file(path, FileAccess::Write)?;
    if let Some(notice) = file.notices().first() {
        return Err(notice.clone().into());
    }
    match way {
        0 => run_raw(&file, depth, reads, seed),
        1 => {
            let mut io = Uring::new()?;
            let file = io.add_file(file);
            run_io(&mut io, file, depth, reads, seed)
        }
        _ => {
            let mut io = Threads::new()?;
            let file = io.add_file(file);
            run_io(&mut io, file, depth, reads, seed)
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A file whose blocks are all written, so that every read reaches the device.
fn written_file(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut file = File::create(path)?;
    let mut rng = Seed(1).rng();
    for _ in 0..FILE_BYTES >> 20 {
        let words = (0..1 << 17).flat_map(|_| rng.next_u64().to_le_bytes());
        file.write_all(&words.collect::<Vec<u8>>())?;
    }
    Ok(file.sync_all()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("found no folder, expected one to read a file in")?;
    let rounds: usize = arguments.next().map_or(Ok(9), |text| text.parse())?;
    let path = Path::new(&folder).join("cachewright-io-speed");
    written_file(&path)?;
    for (depth, reads) in RUNS {
        let mut costs: [Vec<Cost>; WAYS.len()] = Default::default();
        for round in 0..rounds {
            for turn in 0..WAYS.len() {
                let way = (turn + round) % WAYS.len();
                costs[way].push(run_way(way, &path, depth, reads, Seed(round as u64))?);
            }
        }
        println!("depth {depth}: reads/s, processor us per read, both beside the raw ring");
        for (way, name) in WAYS.iter().enumerate() {
            let median_of =
                |value: fn(&Cost) -> f64| median(costs[way].iter().map(value).collect());
            let ratio = |value: fn(&Cost) -> f64| {
                let pairs = costs[way].iter().zip(&costs[0]);
                median(pairs.map(|(own, raw)| value(own) / value(raw)).collect())
            };
            let (wall_s, cpu_s) = (median_of(|cost| cost.wall_s), median_of(|cost| cost.cpu_s));
            println!(
                "  {name:9} {:8.0} {:6.2} {:6.3} {:6.3}",
                reads as f64 / wall_s,
                cpu_s / reads as f64 * 1e6,
                1.0 / ratio(|cost| cost.wall_s),
                ratio(|cost| cost.cpu_s),
            );
        }
    }
    Ok(fs::remove_file(path)?)
}
