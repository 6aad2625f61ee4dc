//! CPU time of the whole path (read, intern, replay) per policy, on one thread.
//!
//! For: `cargo run --release --example replay_speed -- TRACE SIZES POLICIES` with comma-separated
//! lists, on an oracleGeneral trace whose ids are unit blocks. Prints M requests per CPU-second.
//! Linux only: reads the process's own times.

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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [trace, sizes, policies] = arguments.as_slice() else {
        return Err("found other arguments, expected TRACE SIZES POLICIES".into());
    };
    let text = format!(
        "[cache]\ncapacity = \"1 blocks\"\n[replay]\nblocks = \"unit\"\nwindows = 0\n\
         curves = false\n\
         [[tenant]]\ntrace = \"{trace}\"\nformat = \"oracle-general\"\n\
         options = {{ address_unit = \"object\" }}\n"
    );
    for policy in policies.split(',') {
        for size in sizes.split(',') {
            let set = [("policy", policy), ("capacity", &format!("{size} blocks"))];
            let set = set.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
            let options = RunOptions { set, threads: 1, ..RunOptions::default() };
            let before = cpu_seconds();
            let result = run(&text, Path::new("speed.toml"), &options, &|_| true)?;
            let seconds = cpu_seconds() - before;
            let total = &result["cases"][0]["total"];
            let requests = total["accesses"].as_f64().unwrap_or(0.0);
            let rate = requests / seconds / 1e6;
            println!("{policy:18} {size:>8}  {rate:6.1} M/s  misses {}", total["misses"]);
        }
    }
    Ok(())
}
