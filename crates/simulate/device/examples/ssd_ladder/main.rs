//! The validation ladder of the drive without a data cache, as one table.
//!
//! For: `cargo run --release -p cachewright-device --example ssd_ladder`; names behind `--` choose
//! the rows that begin so. Must never know: how a drive works. Units: those of each row.
//! Expected values are exact forms, theory, or MQSim's (Tavakkol et al., FAST'18; commit 7ec40e3)
//! on the same configuration; rows with cleaning are of MQSim with its known defects repaired.

mod rows;

use cachewright_device::ssd::Ssd;
use cachewright_testkit::drives::{Times, run};
use cachewright_types::Seed;
use rows::{Measure, Row, rows};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    println!(
        "{:5} {:58} {:28} {:>12} {:>12} {:>7} {:>6}",
        "row", "drive and load", "measure", "found", "expected", "off %", "limit"
    );
    let mut outside = 0;
    for row in rows()? {
        if wanted.is_empty() || wanted.iter().any(|name| row.id.starts_with(name.as_str())) {
            outside += measure(&row)?;
        }
    }
    println!("{outside} outside their limits");
    Ok(())
}

/// Runs one row and prints its measures; how many lie outside their limits.
fn measure(row: &Row) -> Result<u32, Box<dyn std::error::Error>> {
    let origin = Instant::now();
    let mut drive = Ssd::new(&row.params, &row.ports(), Seed(1))?;
    let flows = row.flows(&drive);
    let times = run(&mut drive, &flows, 321);
    let end = times.iter().map(|times| times.end).max().unwrap_or(0);
    let stats = drive.inside().stats(cachewright_types::Nanos(end));
    let requests: usize = times.iter().map(|times| times.all.len()).sum();
    let mut outside = 0;
    for (index, expected) in row.expected.iter().enumerate() {
        let times = &times[expected.flow];
        let iops = |times: &Times| times.all.len() as f64 / (times.end as f64 / 1e9);
        let found = match expected.measure {
            Measure::Mean => Times::mean(&times.all) / 1e3,
            Measure::Quantile(share) => Times::quantile(&times.all, share) as f64 / 1e3,
            Measure::Iops => iops(times),
            Measure::Bandwidth => iops(times) * flows[expected.flow].length as f64 / 1e6,
            Measure::MapReads => stats.counters.reads.map as f64,
            Measure::MapPrograms => stats.counters.programs.map as f64,
            Measure::UpdateReads => stats.counters.reads.update as f64,
            Measure::MultiPlaneReads => stats.counters.multi_plane.reads as f64,
            Measure::Moved => stats.moved_per_collection(),
            Measure::Collections => stats.collections as f64,
            Measure::Amplification => stats.write_amplification(),
        };
        let same = found == expected.value;
        let off = if same { 0.0 } else { 100.0 * (found / expected.value - 1.0) };
        let verdict = off.abs() <= expected.limit_percent;
        outside += u32::from(!verdict);
        let (id, name) = if index == 0 { (row.id, row.name) } else { ("", "") };
        println!(
            "{id:5} {name:58} {:28} {found:12.3} {:12.3} {off:7.2} {:>6}",
            expected.words(),
            expected.value,
            if verdict { format!("{}", expected.limit_percent) } else { "OUT".to_owned() }
        );
    }
    let speed = requests as f64 / origin.elapsed().as_secs_f64() / 1e3;
    eprintln!("{}: {requests} requests, {speed:.0} thousand a second", row.id);
    Ok(outside)
}
