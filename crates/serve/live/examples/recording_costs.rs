//! What a server pays for questions about its last hours: recordings that outlive a kill, and
//! sampled curves.
//!
//! ```sh
//! cargo run --release -p cachewright-live --example recording_costs -- [TENANTS] [ROUNDS]
//! ```
//!
//! First one request every three seconds, a read or a write of one of 8 volumes, is recorded for an
//! hour and for a day, and kept each minute or never. Printed are directories and bytes, which do
//! not depend on time. Then requests of 4 KiB come to the curves of TENANTS (8), each with 100,000
//! blocks, and one question in each of ROUNDS (15). Printed are the minimum and the median time of
//! a request beside a loop without curves, and of a question by tenant.

use cachewright_control::HourlyCurves;
use cachewright_live::record::{RecordPart, RecordSink, RecordStop, RequestRecorder};
use cachewright_trace::{TraceWriter, create_writer};
use cachewright_types::{Bytes, Nanos, Op, Request, Seed, TenantId};
use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

type Failure = Box<dyn Error>;

const BLOCK: u64 = 4096;
/// Volumes of a recording.
const VOLUMES: u64 = 8;
const SECOND_NS: u64 = 1_000_000_000;
const HOUR_NS: u64 = 3600 * SECOND_NS;
/// `serve.record_keep` unless set.
const KEEP_NS: u64 = 60 * SECOND_NS;
/// Blocks of each tenant, and requests between two questions.
const BLOCKS: u64 = 100_000;
const REQUESTS: u64 = 1_000_000;
const CAPACITY_BLOCKS: u32 = 1 << 18;

/// A file of a recording, and its directories before the last.
struct File {
    writer: Box<dyn TraceWriter>,
    directories: u64,
}

/// Writes at once, as nothing else is to be done.
struct Writer(Arc<Mutex<Option<File>>>);

impl RecordSink for Writer {
    fn take(&mut self, part: RecordPart) -> Result<(), RecordStop> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = file.as_mut().ok_or(RecordStop::Failed)?;
        let volumes: Vec<String> = (0..VOLUMES).map(|number| format!("volume{number}")).collect();
        file.writer.write(&part.requests, &volumes).map_err(|_| RecordStop::Failed)?;
        if part.is_kept {
            file.directories += 1;
            file.writer.keep().map_err(|_| RecordStop::Failed)?;
        }
        Ok(())
    }
}

fn read(time_ns: u64, tenant: usize, block: u64) -> Request {
    Request {
        time: Nanos(time_ns),
        offset: Bytes(block * BLOCK),
        length: Bytes(BLOCK),
        op: Op::Read,
        tenant: TenantId(tenant as u16),
    }
}

/// Records for some time; returns directories and bytes.
fn recorded(span_ns: u64, is_kept: bool) -> Result<(u64, u64), Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("recording.parquet");
    let writer = create_writer("parquet", &path, &BTreeMap::new())?;
    let file = Arc::new(Mutex::new(Some(File { writer, directories: 0 })));
    let mut recorder =
        RequestRecorder::new(Box::new(Writer(Arc::clone(&file))), Nanos(0), TenantId(0));
    let mut rng = Seed(1).rng();
    for time_ns in (0..span_ns).step_by(3 * SECOND_NS as usize).skip(1) {
        let request = read(time_ns, rng.below(VOLUMES) as usize, rng.below(BLOCKS));
        let op = if rng.below(3) == 0 { Op::Write } else { Op::Read };
        recorder.note(&Request { op, ..request });
        if is_kept {
            recorder.keep(Nanos(time_ns), KEEP_NS);
        }
    }
    if recorder.finish().stopped.is_some() {
        return Err("the recording could not be written".into());
    }
    let written = file.lock().unwrap_or_else(PoisonError::into_inner).take();
    let File { writer, directories } = written.ok_or("a recording that nothing wrote")?;
    writer.finish()?;
    Ok((directories, path.metadata()?.len()))
}

fn print_recordings() -> Result<(), Failure> {
    println!("| recording | directories | bytes | without them | more |");
    println!("|---|--:|--:|--:|--:|");
    for (name, span_ns) in [("an hour", HOUR_NS), ("a day", 24 * HOUR_NS)] {
        let ((directories, kept), (_, plain)) =
            (recorded(span_ns, true)?, recorded(span_ns, false)?);
        let more = (kept - plain) as f64 / 1e6;
        println!("| {name} | {directories} | {kept} | {plain} | {more:.1} MB |");
    }
    Ok(())
}

/// Nanoseconds of each request to the curves, if there are some.
fn sampled(requests: &[Request], mut curves: Option<&mut HourlyCurves>) -> f64 {
    let start = Instant::now();
    for request in requests {
        let request = black_box(request);
        if let Some(curves) = &mut curves {
            curves.request(request);
        }
    }
    start.elapsed().as_nanos() as f64 / requests.len() as f64
}

/// The minimum and the median.
fn summary(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let min = times.first().copied().unwrap_or_default();
    (min, times.get(times.len() / 2).copied().unwrap_or_default())
}

fn print_curves(tenants: usize, rounds: u64) {
    let mut curves = HourlyCurves::sampled(tenants, 12, CAPACITY_BLOCKS, Seed(1));
    let mut rng = Seed(2).rng();
    let (mut each, mut questions) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let request = |number: u64| {
            let block = rng.below(BLOCKS).min(rng.below(BLOCKS));
            read(round * REQUESTS + number, number as usize % tenants, block)
        };
        let requests: Vec<Request> = (0..REQUESTS).map(request).collect();
        let without = sampled(&requests, None);
        each.push(sampled(&requests, Some(&mut curves)) - without);
        let start = Instant::now();
        black_box(curves.curves((round + 1) * REQUESTS));
        questions.push(start.elapsed().as_nanos() as f64 / 1e6 / tenants as f64);
    }
    let ((min, median), (min_questions, median_questions)) = (summary(each), summary(questions));
    println!("\n| {tenants} tenants, {rounds} rounds | minimum | median |");
    println!("|---|--:|--:|");
    println!("| a request to the curves | {min:.0} ns | {median:.0} ns |");
    println!("| a question, by tenant | {min_questions:.3} ms | {median_questions:.3} ms |");
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let tenants = arguments.next().map_or(Ok(8), |text| text.parse::<usize>())?;
    let rounds = arguments.next().map_or(Ok(15), |text| text.parse::<u64>())?;
    print_recordings()?;
    print_curves(tenants.max(1), rounds.max(1));
    Ok(())
}
