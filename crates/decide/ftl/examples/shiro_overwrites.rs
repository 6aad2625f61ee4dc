//! Write amplification of Shiro beside rule-based schemes on traces of overwrites:
//! `shiro_overwrites VOLUME_BYTES SCHEMES FILE [FILE ...]` with files of decompressed records
//! `device,opcode,offset,length,...` (opcodes R, W, T; others are skipped), replayed one after
//! another; SCHEMES is a list such as `none,2r,shiro/adjusted-greedy/window_share=0.2`.
//!
//! For: measuring. Prints per scheme (F - U) / U over the whole run and over its second half, and
//! for Shiro the classifier against true lifetimes from a pre-pass that the scheme never sees,
//! misses of meta pages and the loss of int8 against f32 on each next window's dataset. Must never
//! know: how schemes decide. Units: 4 KiB pages, superblocks of 1 MiB, 7 % over-provisioning.

use cachewright_ftl::separation::shiro::{
    Class, Confusion, Dataset, EXTENDED, NO_LEVELS, NativeTrainer, PAPER, Shiro, ShiroSettings,
    TrainError, Trainer, evaluate,
};
use cachewright_ftl::separation::{Registered, SeparationVisitor, visit};
use cachewright_ftl::{Ftl, Geometry, HostRequest, NEVER, NoSink, Separation, reclaim};
use cachewright_infer::{StoredModel, quantise};
use cachewright_types::settings::Settings;
use cachewright_types::{Seed, Value};
use std::error::Error;
use std::sync::{Arc, Mutex};

const PAGE_BYTES: u64 = 4096;
const BLOCK_PAGES: u32 = 256;
const OVER_PROVISIONING: f64 = 0.07;
const RESERVE: u32 = 4;

#[derive(Clone, Copy)]
enum Op {
    Read,
    Write,
    Trim,
}

struct Request {
    op: Op,
    first: u32,
    pages: u32,
}

struct Trace {
    pages: u32,
    requests: Vec<Request>,
    /// Per written page the host page writes until it is written or trimmed again.
    lifetimes: Vec<u32>,
}

fn main() {
    if let Err(error) = measure(&std::env::args().skip(1).collect::<Vec<String>>()) {
        eprintln!("error: {error}");
        std::process::exit(2);
    }
}

fn measure(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [bytes, schemes, files @ ..] = arguments else {
        return Err("usage: shiro_overwrites VOLUME_BYTES SCHEMES FILE [FILE ...]".into());
    };
    let trace = read(files, (bytes.parse::<u64>()? / PAGE_BYTES) as u32)?;
    let drive_writes = trace.lifetimes.len() as f64 / f64::from(trace.pages);
    println!("{} pages, {drive_writes:.1} drive writes", trace.pages);
    for scheme in schemes.split(',') {
        let mut parts = scheme.split('/');
        let (name, reclaim) = (parts.next().unwrap_or(""), parts.next().unwrap_or("cost-benefit"));
        let mut pairs = Vec::new();
        for pair in parts {
            let (key, value) = pair.split_once('=').ok_or("expected KEY=VALUE")?;
            let value = match (value.parse::<i64>(), value.parse::<f64>()) {
                (Ok(number), _) if !value.contains('.') => Value::Int(number),
                (_, Ok(number)) => Value::Float(number),
                _ => Value::Bool(value == "true"),
            };
            pairs.push((key.to_owned(), value));
        }
        print!("{scheme:50}");
        let pages = trace.pages;
        let geometry =
            Geometry::with_over_provisioning(pages, BLOCK_PAGES, OVER_PROVISIONING, RESERVE);
        let reclaim = reclaim::by_name(reclaim, &[], &geometry, Seed(1))?;
        match name {
            "shiro" => shiro::<PAPER>(&trace, geometry, reclaim, &pairs)?,
            "shiro-ng" => shiro::<NO_LEVELS>(&trace, geometry, reclaim, &pairs)?,
            "shiro-x" => shiro::<EXTENDED>(&trace, geometry, reclaim, &pairs)?,
            _ => {
                let plain = Plain { trace: &trace, geometry, reclaim };
                visit(name, &pairs, plain)??;
            }
        }
    }
    Ok(())
}

fn read(files: &[String], pages: u32) -> Result<Trace, Box<dyn Error>> {
    let mut trace = Trace { pages, requests: Vec::new(), lifetimes: Vec::new() };
    let mut last = vec![usize::MAX; pages as usize];
    for file in files {
        for line in std::fs::read_to_string(file)?.lines() {
            let mut fields = line.split(',').skip(1);
            let op = match fields.next() {
                Some("R") => Op::Read,
                Some("W") => Op::Write,
                Some("T") => Op::Trim,
                _ => continue,
            };
            let offset: u64 = fields.next().ok_or("no offset")?.parse()?;
            let length: u64 = fields.next().ok_or("no length")?.parse()?;
            let first = (offset / PAGE_BYTES).min(u64::from(pages)) as u32;
            let end = (offset + length).div_ceil(PAGE_BYTES).min(u64::from(pages)) as u32;
            for place in last.iter_mut().take(end as usize).skip(first as usize) {
                let written = trace.lifetimes.len();
                if let (Op::Write | Op::Trim, Some(before)) = (op, trace.lifetimes.get_mut(*place))
                {
                    *before = (written - *place) as u32;
                }
                match op {
                    Op::Write => {
                        *place = written;
                        trace.lifetimes.push(NEVER);
                    }
                    Op::Trim => *place = usize::MAX,
                    Op::Read => {}
                }
            }
            if end > first {
                trace.requests.push(Request { op, first, pages: end - first });
            }
        }
    }
    Ok(trace)
}

/// Replays a trace; `each` sees the scheme and the true lifetime after every page. Prints (F-U)/U.
fn replay<S: Registered>(
    trace: &Trace,
    ftl: &mut Ftl<S>,
    mut each: impl FnMut(&S, u32),
) -> Result<(), Box<dyn Error>> {
    let started = std::time::Instant::now();
    let (mut written, mut half) = (0, None);
    for request in &trace.requests {
        let &Request { op, first, pages } = request;
        let write = matches!(op, Op::Write);
        if let Op::Trim = op {
            ftl.trim(first, pages)?;
            continue;
        }
        ftl.begin(&HostRequest { first_page: first, pages, write });
        if write {
            for page in first..first + pages {
                let lifetime = trace.lifetimes[written];
                ftl.write(page, lifetime, &mut NoSink)?;
                each(ftl.separation(), lifetime);
                written += 1;
            }
            ftl.end(&mut NoSink);
            if half.is_none() && 2 * written > trace.lifetimes.len() {
                half = Some(ftl.counts());
            }
        }
    }
    let counts = ftl.counts();
    let late = counts - half.unwrap_or_default();
    let seconds = started.elapsed().as_secs_f64();
    println!(
        " WA-1 {:.4} (second half {:.4}), meta {:.4}, {seconds:.1} s",
        counts.write_amplification() - 1.0,
        late.write_amplification() - 1.0,
        counts.meta_pages as f64 / counts.user_pages as f64,
    );
    Ok(())
}

struct Plain<'a> {
    trace: &'a Trace,
    geometry: Geometry,
    reclaim: reclaim::Named,
}

impl SeparationVisitor for Plain<'_> {
    type Output = Result<(), Box<dyn Error>>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let scheme = S::new(&self.geometry, &settings, Seed(1));
        let mut ftl = Ftl::new(self.geometry, scheme, self.reclaim)?;
        replay(self.trace, &mut ftl, |_, _| {})
    }
}

/// Right and wrong of the model in use, in f32 and int8, on the dataset after its own.
#[derive(Default)]
struct Precision {
    float: (f64, u64),
    int8: (f64, u64),
}

struct Comparing {
    inner: NativeTrainer,
    before: Option<(StoredModel, StoredModel)>,
    found: Arc<Mutex<Precision>>,
}

impl Trainer for Comparing {
    fn train(&mut self, dataset: &Dataset) -> Result<StoredModel, TrainError> {
        if let (Some((float, int8)), Ok(mut found)) = (&self.before, self.found.lock()) {
            let add = |sum: &mut (f64, u64), confusion: Confusion| {
                sum.0 += confusion.accuracy() * confusion.total() as f64;
                sum.1 += confusion.total();
            };
            add(&mut found.float, evaluate(float, dataset)?);
            add(&mut found.int8, evaluate(int8, dataset)?);
        }
        let float = self.inner.train(dataset)?;
        let ones = vec![1.0; dataset.encoding.inputs()];
        let int8 = quantise(&float, &[&ones, &dataset.rows])?;
        self.before = Some((float.clone(), int8));
        Ok(float)
    }
}

fn shiro<const VARIANT: u8>(
    trace: &Trace,
    geometry: Geometry,
    reclaim: reclaim::Named,
    pairs: &[(String, Value)],
) -> Result<(), Box<dyn Error>>
where
    Shiro<VARIANT>: Registered<Settings = ShiroSettings>,
{
    let mut settings = ShiroSettings::from_pairs(pairs)?;
    settings.page_bytes = PAGE_BYTES as u32;
    let mut scheme = Shiro::<VARIANT>::new(&geometry, &settings, Seed(1));
    let found = Arc::new(Mutex::new(Precision::default()));
    let inner = NativeTrainer::new(Seed(1).derive("trainer"));
    let comparing = Comparing { inner, before: None, found: Arc::clone(&found) };
    scheme.set_trainer(Some(Box::new(comparing)));
    let mut ftl = Ftl::new(geometry, scheme, reclaim)?;
    let (mut confusion, mut rule) = (Confusion::default(), Confusion::default());
    replay(trace, &mut ftl, |scheme, lifetime| {
        if let (Some(threshold), true) = (scheme.threshold(), scheme.last_class() != Class::Unseen)
        {
            confusion.add(scheme.last_class() == Class::Short, lifetime <= threshold);
            rule.add(false, lifetime <= threshold);
        }
    })?;
    let (scheme, found) = (ftl.separation(), found.lock().map_err(|_| "a trainer failed")?);
    let share = |(right, all): (f64, u64)| right / all.max(1) as f64;
    let statistics = scheme.statistics();
    println!(
        "    accuracy {:.3} (all long {:.3}), precision {:.3}, recall {:.3}, F1 {:.3}; predicted \
         {}; threshold {:?}; f32 {:.4}, int8 {:.4} on datasets; meta misses {:.4}; {} models, {} \
         failures; {} B per page",
        confusion.accuracy(),
        rule.accuracy(),
        confusion.precision(),
        confusion.recall(),
        confusion.f1(),
        confusion.total(),
        scheme.threshold(),
        share(found.float),
        share(found.int8),
        statistics.meta_misses as f64 / (statistics.meta_misses + statistics.meta_hits) as f64,
        statistics.trainings,
        statistics.failures,
        scheme.metadata_bytes_per_page(),
    );
    Ok(())
}
