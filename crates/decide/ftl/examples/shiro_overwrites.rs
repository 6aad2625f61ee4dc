//! Write amplification of Shiro beside rule-based schemes on traces of overwrites:
//! `shiro_overwrites VOLUME_BYTES SCHEMES FILE [FILE ...]`; records as in `overwrites` of the
//! testkit, replayed file after file; SCHEMES is a list such as
//! `none,2r,shiro/adjusted-greedy/window_share=0.2`.
//!
//! For: measuring. Prints per scheme (F - U) / U over the whole run and over its second half, and
//! for Shiro the classifier against true lifetimes from a pre-pass that the scheme never sees,
//! misses of meta pages and the loss of int8 against f32 on each next window's dataset. Must never
//! know: how schemes decide. Units: 4 KiB pages, superblocks of 1 MiB, 7 % over-provisioning.

use cachewright_ftl::separation::shiro::{
    Confusion, LifetimeClass, NO_LEVELS, NativeTrainer, PAPER, Shiro, ShiroSettings,
};
use cachewright_ftl::separation::{Registered, SeparationVisitor, visit};
use cachewright_ftl::{Ftl, Geometry, HostRequest, NoSink, Separation, reclaim};
use cachewright_testkit::overwrites::{Comparing, Op, PAGE_BYTES, Precision, Request, Trace};
use cachewright_types::declare::Declared;
use cachewright_types::{Seed, Value};
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex};

const BLOCK_PAGES: u32 = 256;
const OVER_PROVISIONING: f64 = 0.07;
const RESERVE: u32 = 4;

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
    let mut trace = Trace::new((bytes.parse::<u64>()? / PAGE_BYTES) as u32);
    for file in files {
        trace.add(Path::new(file))?;
    }
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
            _ => {
                let plain = Plain { trace: &trace, geometry, reclaim };
                visit(name, &pairs, plain)??;
            }
        }
    }
    Ok(())
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
    let comparing = Comparing::new(inner, Arc::clone(&found));
    scheme.set_trainer(Some(Box::new(comparing)));
    let mut ftl = Ftl::new(geometry, scheme, reclaim)?;
    let (mut confusion, mut rule) = (Confusion::default(), Confusion::default());
    replay(trace, &mut ftl, |scheme, lifetime| {
        if let (Some(threshold), true) =
            (scheme.threshold(), scheme.last_class() != LifetimeClass::Unseen)
        {
            confusion.add(scheme.last_class() == LifetimeClass::Short, lifetime <= threshold);
            rule.add(false, lifetime <= threshold);
        }
    })?;
    let (scheme, found) = (ftl.separation(), found.lock().map_err(|_| "a trainer failed")?);
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
        found.float.accuracy(),
        found.int8.accuracy(),
        statistics.meta_miss_share(),
        statistics.trainings,
        statistics.failures,
        scheme.metadata_bytes_per_page(),
    );
    Ok(())
}
