//! Volumes as steps over pages whose numbers recycle.
//!
//! For: `shiro_drives`. Must never know: separations. A number is given at a page's first write and
//! freed by its trim, next to its lower neighbour where that is free. A run is repeated until ten
//! drive writes. Units: pages of 4 KiB; lifetimes in host page writes.

use cachewright_ftl::{NEVER, workload};
use cachewright_types::Seed;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

const PAGE_BYTES: u64 = 4096;
/// Drive writes that a run has at least.
const DRIVE_WRITES: u64 = 10;
const NONE: u32 = u32::MAX;

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Writes.
    Write,
    /// Forgets.
    Trim,
}

/// A run of pages of one request.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What it does.
    pub kind: Kind,
    /// First page.
    pub first: u32,
    /// Pages.
    pub pages: u32,
    /// Pages of the request, in its first step; 0 in those that go on.
    pub request_pages: u32,
}

/// What a drive is asked.
pub struct Volume {
    /// Logical pages: the most that are live at once.
    pub pages: u32,
    /// The load, then the run.
    pub steps: Vec<Step>,
    /// Steps of the load.
    pub load_steps: usize,
    /// Per written page the host page writes until it is written or trimmed again.
    pub lifetimes: Vec<u32>,
    load_pages: u64,
}

/// A request in pages of the volume.
type Raw = (Kind, u32, u32);

impl Volume {
    /// A volume by its file or its name. Errors: the file's, an unknown kind.
    pub fn read(name: &str) -> Result<Volume, Box<dyn Error>> {
        if let Some((kind, pages)) = name.split_once(':') {
            let pages: u32 = pages.parse()?;
            if kind == "files" {
                return Ok(Volume::new(&[], &files(pages)));
            }
            let overwrites = DRIVE_WRITES as usize * pages as usize;
            let all = workload::generate(kind, pages, overwrites).ok_or("unknown kind")?;
            let raws: Vec<Raw> = all.into_iter().map(|page| (Kind::Write, page, 1)).collect();
            let (load, run) = raws.split_at(pages as usize);
            return Ok(Volume::new(load, run));
        }
        let load = name.replace(".csv.zst", ".load.csv.zst");
        let load = if Path::new(&load).is_file() { records(Path::new(&load))? } else { vec![] };
        Ok(Volume::new(&load, &records(Path::new(name))?))
    }

    /// Drive writes of the run.
    pub fn drive_writes(&self) -> f64 {
        (self.lifetimes.len() as u64 - self.load_pages) as f64 / f64::from(self.pages)
    }

    fn new(load: &[Raw], run: &[Raw]) -> Volume {
        let (load, run, written) = ranked(load, run);
        let pages = peak(&load, &run, written);
        let mut numbers = Numbers {
            numbers: vec![NONE; written as usize],
            free: (0..pages).collect(),
            pages,
            steps: Vec::new(),
            written: 0,
        };
        load.iter().for_each(|raw| numbers.request(*raw));
        let (load_steps, load_pages) = (numbers.steps.len(), numbers.written);
        while numbers.written < load_pages + DRIVE_WRITES * u64::from(pages) {
            let before = numbers.written;
            run.iter().for_each(|raw| numbers.request(*raw));
            if numbers.written == before {
                break;
            }
        }
        let lifetimes = lifetimes(&numbers.steps, pages);
        Volume { pages, steps: numbers.steps, load_steps, lifetimes, load_pages }
    }
}

/// The records of a file. A trim drops whole pages only.
fn records(file: &Path) -> Result<Vec<Raw>, Box<dyn Error>> {
    let text = String::from_utf8(zstd::decode_all(std::fs::read(file)?.as_slice())?)?;
    let mut raws = Vec::new();
    for line in text.lines() {
        let mut fields = line.split(',').skip(1);
        let kind = match fields.next() {
            Some("W") => Kind::Write,
            Some("T") => Kind::Trim,
            _ => continue,
        };
        let offset: u64 = fields.next().ok_or("no offset")?.parse()?;
        let length: u64 = fields.next().ok_or("no length")?.parse()?;
        let (first, end) = match kind {
            Kind::Write => (offset / PAGE_BYTES, (offset + length).div_ceil(PAGE_BYTES)),
            Kind::Trim => (offset.div_ceil(PAGE_BYTES), (offset + length) / PAGE_BYTES),
        };
        if first < end {
            raws.push((kind, first as u32, (end - first) as u32));
        }
    }
    Ok(raws)
}

/// Requests over the pages that are ever written, by rank, and the number of these.
fn ranked(load: &[Raw], run: &[Raw]) -> (Vec<Raw>, Vec<Raw>, u32) {
    let end = load.iter().chain(run).map(|(_, first, pages)| first + pages).max().unwrap_or(0);
    let mut ranks = vec![0_u32; end as usize + 1];
    for (kind, first, pages) in load.iter().chain(run) {
        if *kind == Kind::Write {
            ranks[*first as usize + 1..=(first + pages) as usize].fill(1);
        }
    }
    for page in 0..end as usize {
        ranks[page + 1] += ranks[page];
    }
    let rank = |raws: &[Raw]| {
        let numbered = |(kind, first, pages): &Raw| {
            let start = ranks[*first as usize];
            (*kind, start, ranks[(first + pages) as usize] - start)
        };
        raws.iter().map(numbered).filter(|raw| raw.2 > 0).collect()
    };
    (rank(load), rank(run), ranks[end as usize])
}

/// The most pages live at once in the load and two rounds of the run.
fn peak(load: &[Raw], run: &[Raw], written: u32) -> u32 {
    let mut live = vec![false; written as usize];
    let (mut count, mut peak) = (0_u32, 0_u32);
    for (kind, first, pages) in load.iter().chain(run).chain(run) {
        let on = *kind == Kind::Write;
        for page in &mut live[*first as usize..(first + pages) as usize] {
            count = count + u32::from(on & !*page) - u32::from(!on & *page);
            *page = on;
        }
        peak = peak.max(count);
    }
    peak
}

struct Numbers {
    numbers: Vec<u32>,
    free: BTreeSet<u32>,
    pages: u32,
    steps: Vec<Step>,
    written: u64,
}

impl Numbers {
    fn request(&mut self, (kind, first, pages): Raw) {
        let start = self.steps.len();
        for page in first as usize..(first + pages) as usize {
            let number = match kind {
                Kind::Write => self.place(page),
                Kind::Trim => std::mem::replace(&mut self.numbers[page], NONE),
            };
            if number == NONE {
                continue;
            }
            if kind == Kind::Trim {
                self.free.insert(number);
            }
            match self.steps[start..].last_mut() {
                Some(step) if step.first + step.pages == number => step.pages += 1,
                _ => self.steps.push(Step { kind, first: number, pages: 1, request_pages: 0 }),
            }
        }
        let all = self.steps[start..].iter().map(|step| step.pages).sum();
        if let Some(step) = self.steps.get_mut(start) {
            step.request_pages = all;
        }
    }

    fn place(&mut self, page: usize) -> u32 {
        self.written += 1;
        if self.numbers[page] != NONE {
            return self.numbers[page];
        }
        let below = page.checked_sub(1).map_or(NONE, |below| self.numbers[below]);
        let wanted = if below == NONE { page as u32 } else { below + 1 } % self.pages;
        let next = self.free.range(wanted..).next().or(self.free.first()).copied();
        let number = next.unwrap_or(wanted);
        self.free.remove(&number);
        self.numbers[page] = number;
        number
    }
}

fn lifetimes(steps: &[Step], pages: u32) -> Vec<u32> {
    let mut last = vec![usize::MAX; pages as usize];
    let mut lifetimes: Vec<u32> = Vec::new();
    for step in steps {
        for place in &mut last[step.first as usize..(step.first + step.pages) as usize] {
            let written = lifetimes.len();
            if let Some(before) = lifetimes.get_mut(*place) {
                *before = (written - *place) as u32;
            }
            *place = usize::MAX;
            if step.kind == Kind::Write {
                *place = written;
                lifetimes.push(NEVER);
            }
        }
    }
    lifetimes
}

/// Three quarters of the pages hold files of 1 to 256 pages. A write replaces a file, in place or
/// after it was deleted, or one page of the rest. Few files are replaced often.
fn files(pages: u32) -> Vec<Raw> {
    let mut rng = Seed(20_261_126).derive("files").rng();
    let mut files = Vec::new();
    let mut end = 0;
    while end + 256 <= pages / 4 * 3 {
        let length = 1 << rng.below(9);
        files.push((end, length));
        end += length;
    }
    let mut raws: Vec<Raw> = vec![(Kind::Write, 0, pages)];
    let mut written = 0;
    while written < DRIVE_WRITES * u64::from(pages) {
        if rng.below(4) > 0 {
            let page = end + (rng.unit() * rng.unit() * f64::from(pages - end)) as u32;
            raws.push((Kind::Write, page, 1));
            written += 1;
            continue;
        }
        let hot = rng.below(10) < 7;
        let count = files.len() as u64;
        let index = if hot { rng.below(count / 5) * 5 } else { rng.below(count) };
        let (first, length) = files[index as usize];
        if rng.below(2) == 0 {
            raws.push((Kind::Trim, first, length));
        }
        raws.push((Kind::Write, first, length));
        written += u64::from(length);
    }
    raws
}
