//! Simulated requests per CPU second of a stack file with devices, on one thread.
//!
//! For: `cargo run --release --example timed_speed -- STACK [KEY=VALUE]...`. Prints the rate of the
//! whole run (read, record, place, replay) and the hit ratio and mean response it found. Linux
//! only: reads the process's own times.

use cachewright_experiment::{RunOptions, run};
use std::path::Path;

/// User and system CPU seconds of this process so far (clock ticks of 10 ms).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|tick| tick.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let stack = arguments.next().ok_or("found no stack file, expected STACK [KEY=VALUE]...")?;
    let pair = |text: String| text.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
    let set: Vec<_> = arguments.filter_map(pair).collect();
    let text = std::fs::read_to_string(&stack)?;
    let options = RunOptions { set, threads: 1, ..RunOptions::default() };
    let before = cpu_seconds();
    let result = run(&text, Path::new(&stack), &options, &|_| true)?;
    let seconds = cpu_seconds() - before;
    let case = &result["cases"][0];
    let timing = &case["timing"]["total"];
    let requests = timing["requests"].as_f64().unwrap_or(0.0);
    println!(
        "{requests} requests, {seconds:.2} CPU s, {:.0} k/s, hit ratio {}, mean {} ns",
        requests / seconds / 1e3,
        case["total"]["hit_ratio"],
        timing["mean_ns"]
    );
    Ok(())
}
