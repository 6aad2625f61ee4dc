//! How fast binary traces are read and blocks interned, and how large the native format is.
//!
//! For: `cargo run --release -p cachewright-trace --example binary_speed [TRACE...]`. Without
//! traces: 20 M Zipf(1.0) requests over 1 M scattered 4 KiB blocks. Prints million requests per
//! second of CPU time (from /proc/self/schedstat) and bytes per request, best of three.

use cachewright_trace::write::{ColumnEncoding, Compression, OracleGeneralWriter, ParquetWriter};
use cachewright_trace::{
    Batch, Interner, OpenOptions, Record, TraceReader, TraceWriter, next_uses, open,
};
use cachewright_types::{Op, Seed};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

const REQUESTS: usize = 20_000_000;
const BLOCKS: u64 = 1_000_000;
const STEP: usize = 1 << 16;

/// Nanoseconds this thread has run.
fn cpu_ns() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().unwrap_or("").parse()?)
}

/// Best CPU seconds of three runs.
fn best(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut best = f64::MAX;
    for _ in 0..3 {
        let start = cpu_ns()?;
        run()?;
        best = best.min((cpu_ns()? - start) as f64 / 1e9);
    }
    Ok(best)
}

/// Zipf(1.0) by inverting the continuous distribution, scattered by a multiplication.
fn zipf() -> (Batch, Vec<String>) {
    let mut rng = Seed(42).rng();
    let mut batch = Batch::default();
    let mut time_ns = 1_500_000_000_000_000_000;
    for _ in 0..REQUESTS {
        let rank = (BLOCKS as f64).powf(rng.unit()) as u64;
        let block = rank.wrapping_mul(387_420_489) % BLOCKS;
        time_ns += 1000 + rng.below(20_000);
        let op = if rng.unit() < 0.3 { Op::Write } else { Op::Read };
        let length_bytes = 4096 * (1 + rng.below(4));
        batch.push(Record { time_ns, offset_bytes: block * 4096, length_bytes, op, volume: 0 });
    }
    (batch, vec!["0".to_owned()])
}

fn read_through(reader: &mut dyn TraceReader, batch: &mut Batch) -> Result<u64, Box<dyn Error>> {
    let mut sum = 0;
    loop {
        batch.clear();
        if reader.read(batch, STEP)? == 0 {
            return Ok(sum);
        }
        sum += batch.len() as u64;
    }
}

fn reading(name: &str, path: &Path, requests: usize) -> Result<(), Box<dyn Error>> {
    let mut batch = Batch::default();
    let seconds = best(|| {
        let mut reader = open(path, &OpenOptions::default())?;
        assert_eq!(read_through(reader.as_mut(), &mut batch)?, requests as u64);
        Ok(())
    })?;
    let bytes = std::fs::metadata(path)?.len() as f64 / requests as f64;
    println!("read {name:28} {:8.1} M/s {bytes:6.2} B/request", requests as f64 / seconds / 1e6);
    Ok(())
}

fn formats(batch: &Batch, volumes: &[String]) -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join(format!("binary-speed-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        for encoding in [ColumnEncoding::Plain, ColumnEncoding::Delta] {
            let path = directory.join("trace.parquet");
            let mut writer = ParquetWriter::with(&path, compression, encoding)?;
            writer.write(batch, volumes)?;
            Box::new(writer).finish()?;
            let name = format!("parquet {compression:?}/{encoding:?}").to_lowercase();
            reading(&name, &path, batch.len())?;
        }
    }
    if volumes.len() == 1 && batch.op.iter().all(|op| matches!(op, Op::Read | Op::Write)) {
        let path = directory.join("trace.oracleGeneral");
        let mut writer = OracleGeneralWriter::create(&path, &BTreeMap::new())?;
        writer.write(batch, volumes)?;
        Box::new(writer).finish()?;
        reading("oracle-general", &path, batch.len())?;
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn interning(batch: &Batch) -> Result<(), Box<dyn Error>> {
    let blocks: Vec<u64> = batch.offset_bytes.iter().map(|offset| offset / 4096).collect();
    // The same pattern spread over 2^52 blocks, so that pages do not pay.
    let sparse: Vec<u64> =
        blocks.iter().map(|block| block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 12).collect();
    let millions = blocks.len() as f64 / 1e6;
    for (name, blocks) in [("dense", &blocks), ("sparse", &sparse)] {
        let mut ids = Vec::new();
        let mut interner = Interner::new();
        let seconds = best(|| {
            interner = Interner::new();
            ids = Vec::with_capacity(blocks.len());
            Ok(interner.intern_batch(0, blocks, &mut ids)?)
        })?;
        println!(
            "intern {name} from empty, batch    {:8.1} M/s {:6.2} ns, {:.1} B/block",
            millions / seconds,
            seconds * 1e3 / millions,
            interner.memory_bytes() as f64 / f64::from(interner.distinct())
        );
        let seconds = best(|| {
            let mut sum = 0;
            for block in blocks {
                sum ^= interner.intern(0, *block)?;
            }
            std::hint::black_box(sum);
            Ok(())
        })?;
        println!(
            "intern {name} again, one by one    {:8.1} M/s {:6.2} ns",
            millions / seconds,
            seconds * 1e3 / millions
        );
        let seconds = best(|| {
            std::hint::black_box(next_uses(&ids, interner.distinct()));
            Ok(())
        })?;
        println!("next uses                         {:8.1} M/s", millions / seconds);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let traces: Vec<String> = std::env::args().skip(1).collect();
    if traces.is_empty() {
        let (batch, volumes) = zipf();
        formats(&batch, &volumes)?;
        return interning(&batch);
    }
    for trace in traces {
        let mut reader = open(Path::new(&trace), &OpenOptions::default())?;
        let mut batch = Batch::default();
        while reader.read(&mut batch, STEP)? > 0 {}
        println!("{trace}: {} requests", batch.len());
        formats(&batch, reader.volumes())?;
        interning(&batch)?;
    }
    Ok(())
}
