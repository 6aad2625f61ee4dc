//! How fast a trace is read: `read_speed PATH [FORMAT]`.
//!
//! For: measuring a reader alone, on one thread. Prints requests, their kinds, volumes, what was
//! left out, and requests per second of CPU (user and system time of this process, from
//! `/proc/self/stat`, whose unit is a hundredth of a second). Must never know: formats.

use cachewright_trace::{Batch, OnBadRecord, OpenOptions, open};
use std::path::Path;

/// Clock ticks per second of `/proc/self/stat`; fixed on Linux for all architectures.
const TICKS_PER_SECOND: f64 = 100.0;
const BATCH_REQUESTS: usize = 16 << 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.as_slice() {
        [path] => measure(path, None),
        [path, format] => measure(path, Some(format.clone())),
        _ => Err("usage: read_speed PATH [FORMAT]".into()),
    };
    if let Err(error) = outcome {
        eprintln!("error: {error}");
        std::process::exit(2);
    }
}

fn measure(path: &str, format: Option<String>) -> Result<(), Box<dyn std::error::Error>> {
    let options =
        OpenOptions { format, on_bad_record: OnBadRecord::Skip, ..OpenOptions::default() };
    let before = cpu_seconds()?;
    let mut reader = open(Path::new(path), &options)?;
    let mut batch = Batch::default();
    let mut kinds = [0_u64; 4];
    let mut bytes = 0_u64;
    while reader.read(&mut batch, BATCH_REQUESTS)? > 0 {
        batch.op.iter().for_each(|op| kinds[*op as usize] += 1);
        bytes = batch.length_bytes.iter().fold(bytes, |sum, length| sum.wrapping_add(*length));
        batch.clear();
    }
    let seconds = cpu_seconds()? - before;
    let requests: u64 = kinds.iter().sum();
    let [reads, writes, trims, flushes] = kinds;
    println!(
        "{requests} requests: {reads} reads, {writes} writes, {trims} trims, {flushes} flushes"
    );
    println!("{} volumes, {bytes} bytes, {} bad", reader.volumes().len(), reader.skipped().bad);
    println!("{seconds:.2} CPU-s, {:.2} M requests/CPU-s", requests as f64 / seconds / 1e6);
    Ok(())
}

/// CPU time of this process so far, in seconds. Errors: no `/proc/self/stat`.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = |index: usize| fields.split(' ').nth(index).unwrap_or_default().parse::<f64>();
    Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}
