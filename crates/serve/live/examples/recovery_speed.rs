//! What a warm start costs: the log of a full device is read and its blocks go into a cache, beside
//! reading the same footers and filling a table.
//!
//! ```sh
//! cargo run --release -p cachewright-live --example recovery_speed -- FOLDER [GIB] [ROUNDS]
//! ```
//!
//! A device of GIB (16) in FOLDER has headers and footers; content is not there, because a start
//! does not read it. Its blocks have 4 KiB, 85 % of them are the newest of their number, half of
//! those are dirty. In each round both ways run, in an order that changes; medians are printed.

use cachewright_cache::{Cache, Engine, Quotas, WriteMode};
use cachewright_live::blocks::{
    BlockServer, CleaningSettings, DeviceLayout, ServedVolume, ServerParts,
};
use cachewright_live::io::open::{FileAccess, open_file};
use cachewright_live::io::system::{EngineChoice, SystemIo};
use cachewright_live::io::{Buffer, FileId, batch};
use cachewright_live::log::format::{
    Footer, FooterRecord, LogRecord, LogRecordKind, PAGE, SegmentHeader, SegmentState, SetId,
    Version, Volume, VolumeId,
};
use cachewright_live::log::{FormatSettings, OpenSet, SegmentId, format, open, read_log};
use cachewright_policy::registry::boxed;
use cachewright_types::Seed;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::time::Instant;

type Failure = Box<dyn Error>;

const SEGMENT: u32 = 16 << 20;
const GROUP_BLOCKS: u32 = 64;
const VOLUME: VolumeId = VolumeId(1);

/// What a way took, in seconds: all of it, and its parts.
type Times = Vec<(&'static str, f64)>;

/// Blocks of a segment of full groups, and the pages at which their content stands.
fn pages(footer_page: u32) -> impl Iterator<Item = u32> {
    (1..footer_page).filter(|page| !(page - 1).is_multiple_of(GROUP_BLOCKS + 1))
}

/// Writes headers and footers as if blocks had been written until the device was full.
fn fill(io: &mut SystemIo, opened: &OpenSet, blocks: u64) -> Result<(), Failure> {
    let set = &opened.set;
    let mut rng = Seed(1).rng();
    let (mut decision, mut group) = (0, 0);
    for index in 0..set.segments() {
        let id = SegmentId::new(index);
        let home = set.home(id, 1);
        let record = |page: u32| {
            decision += 1;
            // The blocks in turn, then any: the newest records are all over the device.
            let number = if decision <= blocks { decision - 1 } else { rng.below(blocks) };
            let checksum = number as u32;
            let dirty = number.is_multiple_of(2);
            let kind = if dirty {
                LogRecordKind::Dirty { checksum }
            } else {
                LogRecordKind::Clean { checksum }
            };
            let version = Version::written(decision);
            FooterRecord { record: LogRecord { volume: VOLUME, number, version, kind }, page }
        };
        let records: Vec<FooterRecord> = pages(set.footer_page()).map(record).collect();
        let of_segment = records.len().div_ceil(GROUP_BLOCKS as usize) as u64;
        let groups = (group + 1..=group + of_segment).collect();
        group += of_segment;
        let header = SegmentHeader { home, state: SegmentState::Begun, stream: 0, emptied: 0 };
        let footer = Footer { home, groups, records };
        let pieces = [(0, header.encode()), (set.footer_page(), footer.encode())];
        let piece = |(page, bytes): (u32, Vec<u8>)| {
            let start = set.page(id, page);
            (start.file, start.offset, Buffer::padded(&bytes))
        };
        batch::write(io, pieces.map(piece))?;
    }
    Ok(())
}

/// A server that is ready for requests.
fn start(io: &mut SystemIo, files: [FileId; 2], blocks: u64) -> Result<Times, Failure> {
    let began = Instant::now();
    let set = open(io, &files[..1])?;
    let found = read_log(io, &set)?;
    let read = began.elapsed().as_secs_f64();
    let found = found.settle(io)?;
    let settled = began.elapsed().as_secs_f64();
    let capacity = u32::try_from(blocks)?;
    let policy =
        |_, capacity| boxed("lru", &[], capacity, Seed(1)).map_err(|error| error.to_string());
    let first = policy(0, capacity)?;
    let mut first = Some(first);
    let engine = Engine::new(1, &Quotas::Shared(capacity), WriteMode::WriteBack, |_, _| {
        first.take().unwrap_or_else(|| unreachable!("there is one pool"))
    });
    let volume = ServedVolume { id: VOLUME, bytes: blocks << 12, backing: files[1] };
    let parts = ServerParts {
        cache: Cache::new(engine, 12),
        open: set,
        group_blocks: GROUP_BLOCKS,
        spare_segments: 6,
        cleaning: CleaningSettings::default(),
        layout: DeviceLayout::default(),
        volumes: vec![volume],
    };
    let (server, restored) = BlockServer::open(io, parts, found)?;
    let all = began.elapsed().as_secs_f64();
    assert_eq!(restored.clean + restored.dirty, blocks, "every block is found");
    drop(server);
    Ok(vec![("start", all), ("read", read), ("settle", settled - read), ("cache", all - settled)])
}

/// Reads all footers and fills a table of the newest records.
fn plain(io: &mut SystemIo, set: &OpenSet, blocks: u64) -> Result<Times, Failure> {
    let began = Instant::now();
    let set = &set.set;
    let mut newest: HashMap<(VolumeId, u64), (Version, u32), FixedState> = HashMap::default();
    let segments: Vec<SegmentId> = (0..set.segments()).map(SegmentId::new).collect();
    let pages = Footer::pages(set.footer_page() as usize / 64, set.max_records().min(4096));
    let mut reading = 0.0;
    for some in segments.chunks(64) {
        let range = |id: &SegmentId| {
            let start = set.page(*id, set.footer_page());
            (start.file, start.offset, pages * PAGE)
        };
        let now = Instant::now();
        let footers = batch::read(io, some.iter().map(range));
        reading += now.elapsed().as_secs_f64();
        for (id, footer) in some.iter().zip(footers) {
            let footer = Footer::decode(&footer?).ok_or("a footer is damaged")?;
            for FooterRecord { record, page } in footer.records {
                let place = set.place(*id, page).0;
                let known = newest.entry((record.volume, record.number)).or_default();
                if known.0 <= record.version {
                    *known = (record.version, place);
                }
            }
        }
    }
    assert_eq!(newest.len() as u64, blocks);
    let all = began.elapsed().as_secs_f64();
    Ok(vec![("footers and a table", all), ("read", reading)])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: recovery_speed FOLDER [GIB] [ROUNDS]")?;
    let gib: u64 = arguments.next().unwrap_or_else(|| "16".to_owned()).parse()?;
    let rounds: usize = arguments.next().unwrap_or_else(|| "5".to_owned()).parse()?;
    let folder = tempfile::TempDir::new_in(Path::new(&folder))?;
    let (device, backing) = (folder.path().join("device"), folder.path().join("backing"));
    File::create_new(&device)?.set_len(gib << 30)?;
    File::create_new(&backing)?.set_len(gib << 30)?;
    let mut io = SystemIo::new(EngineChoice::Auto)?;
    let files = [
        io.add_file(open_file(&device, FileAccess::Write)?),
        io.add_file(open_file(&backing, FileAccess::Write)?),
    ];
    let volumes = vec![Volume { id: VOLUME, name: "data".to_owned(), bytes: gib << 30 }];
    let (set, block_bytes, segment_bytes) = (SetId(1), 4096, SEGMENT);
    let settings = FormatSettings { set, block_bytes, segment_bytes, volumes };
    let opened = format(&mut io, &files[..1], &settings)?;
    let of_segment = pages(opened.set.footer_page()).count() as u64;
    let blocks = of_segment * opened.set.segments() as u64 * 84 / 100;
    fill(&mut io, &opened, blocks)?;
    let (mut starts, mut plains) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if round % 2 == 0 {
            starts.push(start(&mut io, files, blocks)?);
        }
        plains.push(plain(&mut io, &opened, blocks)?);
        if round % 2 == 1 {
            starts.push(start(&mut io, files, blocks)?);
        }
    }
    println!("{gib} GiB, {} segments, {blocks} blocks, {}", opened.set.segments(), io.name());
    for times in [&starts, &plains] {
        for part in 0..times[0].len() {
            let seconds = median(times.iter().map(|times| times[part].1).collect());
            println!("{:24} {seconds:8.3} s", times[0][part].0);
        }
    }
    let ratio = |(start, plain): (&Times, &Times)| start[0].1 / plain[0].1;
    println!("ratio {:.2}", median(starts.iter().zip(&plains).map(ratio).collect()));
    Ok(())
}
