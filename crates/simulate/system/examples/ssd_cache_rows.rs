//! The reference rows of a drive with a data cache beside what this simulator says.
//!
//! `cargo run --release -p cachewright-system --example ssd_cache_rows [-- ROW...]`. The reference
//! is MQSim as measured with exact nanoseconds; rows with cleaning are its repaired form.

use cachewright_testkit::cached_drives::{rows, run};
use std::time::Instant;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    println!("{:6} {:34} {:>12} {:>12} {:>8}", "row", "measure", "reference", "here", "off");
    for row in rows() {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == row.id) {
            continue;
        }
        let start = Instant::now();
        let found = run(&row);
        let seconds = start.elapsed().as_secs_f64();
        for ((name, reference, _), here) in row.expected.iter().zip(&found.values) {
            let off = 100.0 * (here / reference - 1.0);
            println!("{:6} {name:34} {reference:12.1} {here:12.1} {off:+7.1}%", row.id);
        }
        let speed = found.requests as f64 / seconds / 1e3;
        println!("{:6} {} ({speed:.0} k requests per second)", "", found.about);
    }
}
