//! What the tests of experiments share: folders that clean up, small traces, readers of results.

use cachewright_experiment::{Progress, RunOptions, run};
use cachewright_testkit::streams::golden_ids;
use cachewright_types::{Rng, Seed, Size, parse_size};
use serde_json::Value;
use std::path::PathBuf;

/// The tables of two tenants, `a` and `b`, with a trace each.
macro_rules! two_tenants {
    () => {
        "[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n[[tenant]]\nname = \"b\"\ntrace = \"b.csv\"\n"
    };
}

/// A small drive with its data cache as the machine of two tenants; `$blocks` is the size of the
/// cache, the others are further lines of `[machine]` and further tables.
macro_rules! drive_stack {
    ($blocks:literal, $machine:literal, $tables:literal) => {
        concat!(
            "[cache]\ncapacity = \"",
            $blocks,
            " blocks\"\nblock = \"8KiB\"\n[device.ssd]\nmodel = \"icache-table1\"\nblocks = 32\n\
             over_provisioning = 0.28\nblock = \"512KiB\"\n[machine]\nsystem = \"ssd\"\n\
             read_fill = true\nwrite_back = \"on-eviction\"\n",
            $machine,
            $tables,
            two_tenants!()
        )
    };
}

/// A small drive of four channels of 4 MiB raw each, as the table `$table`.
macro_rules! four_channels {
    ($table:literal) => {
        concat!(
            "[",
            $table,
            "]\nmodel = \"open-channel-16\"\nchannels = 4\nchips = 1\nplanes = 1\nblocks = 64\n\
             block = \"64KiB\"\npage = \"4KiB\"\nover_provisioning = 0.25\n"
        )
    };
}

/// A cache device and backing devices of fixed latency, 100 us and 5 ms.
macro_rules! fixed_devices {
    () => {
        "[device.cache]\nmodel = \"fixed-latency\"\nread = \"100us\"\nwrite = \"100us\"\n\
         [device.backing]\nmodel = \"fixed-latency\"\nread = \"5ms\"\nwrite = \"5ms\"\n"
    };
}

/// A folder of its own that is removed at the end.
pub struct Folder {
    pub path: PathBuf,
}

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("cachewright-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder { path }
    }

    /// Writes a file and returns the path of a stack file beside it.
    pub fn with(&self, name: &str, content: &str) -> PathBuf {
        std::fs::write(self.path.join(name), content).unwrap();
        self.path.join("stack.toml")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.path).ok();
    }
}

/// Progress that is not watched.
pub fn quiet(_: Progress) -> bool {
    true
}

/// Overrides as a command line gives them.
pub fn pairs(set: &[(&str, &str)]) -> Vec<(String, String)> {
    set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Cache sizes as a command line gives them.
pub fn sizes(texts: &[&str]) -> Vec<Size> {
    texts.iter().map(|text| parse_size(text).unwrap()).collect()
}

/// What a stack in a folder answers, or why it is refused.
pub fn answer_to(folder: &Folder, text: &str, set: &[(&str, &str)]) -> Result<Value, String> {
    let options = RunOptions { set: pairs(set), ..RunOptions::default() };
    run(text, &folder.path.join("stack.toml"), &options, &quiet).map_err(|e| e.to_string())
}

/// A number of a result.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// A count of a case's total.
pub fn total(case: &Value, key: &str) -> u64 {
    case["total"][key].as_u64().unwrap_or_else(|| panic!("{key} in {case}"))
}

/// The golden synthetic trace as oracleGeneral records.
pub fn golden_trace() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(200_000 * 24);
    for (i, id) in golden_ids().into_iter().enumerate() {
        bytes.extend((i as u32 / 1000).to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(4096_u32.to_le_bytes());
        bytes.extend((-1_i64).to_le_bytes());
    }
    bytes
}

/// An Alibaba-style trace of `requests` requests over `blocks` blocks, one per 100 us.
pub fn small_trace(seed: u64, requests: u64, blocks: u64) -> String {
    let mut rng: Rng = Seed(seed).rng();
    let mut text = String::new();
    for i in 0..requests {
        let u = rng.unit();
        let block = (u * u * blocks as f64) as u64;
        let (op, length) = match rng.below(20) {
            0..12 => ('R', 4096),
            12..15 => ('R', 12_288),
            15..19 => ('W', 4096),
            _ => ('T', 8192),
        };
        text += &format!("1,{op},{},{length},{}\n", block * 4096, i * 100);
    }
    text
}

/// A folder with the traces of two tenants, `a.csv` and `b.csv`: small traces of so many requests
/// over so many blocks.
pub fn two_traces(name: &str, [a, b]: [(u64, u64); 2]) -> Folder {
    let folder = Folder::new(name);
    folder.with("a.csv", &small_trace(5, a.0, a.1));
    folder.with("b.csv", &small_trace(6, b.0, b.1));
    folder
}

/// Reads that walk around `blocks` blocks `laps` times, one every `step_us`.
pub fn walk(blocks: u64, laps: u64, step_us: u64) -> String {
    let line = |at: u64| format!("1,R,{},4096,{}\n", at % blocks * 4096, at * step_us);
    (0..blocks * laps).map(line).collect()
}
