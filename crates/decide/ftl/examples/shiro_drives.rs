//! Extra writes of separations on drives as large as what is live at once:
//! `shiro_drives VOLUMES SCHEMES [OPS] [BLOCK_PAGES] [RECLAIM]`, each a list in commas.
//!
//! For: choosing constants and measuring ablations, as `cachewright wa --capacity live --loop`
//! does. Prints (F-U)/U and bytes per page. A volume is a file of records as in `tests/common`,
//! whose load stands beside it as `NAME.load.csv.zst`, a kind of `workload` with its pages
//! (`zipf1:65536`), or `files:65536`: files that are written, overwritten and deleted whole beside
//! pages overwritten at random. SCHEMES is a list such as `sepbit,shiro-x/trials=false`; beside the
//! registry it knows `known-written`, `known-moved` and `known-all`. Must never know: how schemes
//! decide. Units: 4 KiB pages; over-provisioning in per cent.

#[path = "shiro_drives/volumes.rs"]
mod volumes;

use cachewright_ftl::separation::shiro_x::known::{Known, ShiroXKnown};
use cachewright_ftl::separation::{Registered, SeparationVisitor, visit};
use cachewright_ftl::{Ftl, FtlCounts, Geometry, HostRequest, NoSink, Separation, reclaim};
use cachewright_types::{Seed, Value};
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use volumes::{Kind, Volume};

/// Shiro-x without trials, with true lifetimes of some pages or all.
const KNOWN: [(&str, Known); 3] = [
    ("known-written", Known { written: true, moved: false }),
    ("known-moved", Known { written: false, moved: true }),
    ("known-all", Known { written: true, moved: true }),
];
/// Superblocks kept free for the host, as `wa` keeps them.
const RESERVE: u32 = 4;

/// What a run needs to know.
struct Case<'a> {
    volume: &'a Volume,
    scheme: &'a str,
    op: f64,
    block_pages: u32,
    reclaim: &'a str,
}

type Found = Result<(FtlCounts, f64), Box<dyn Error>>;

impl Case<'_> {
    fn run(&self) -> Found {
        let mut parts = self.scheme.split('/');
        let name = parts.next().unwrap_or("");
        if let Some((_, known)) = KNOWN.iter().find(|(known, _)| *known == name) {
            return self.replay(ShiroXKnown::new(&self.geometry(), *known));
        }
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
        visit(name, &pairs, self)?
    }

    fn geometry(&self) -> Geometry {
        let (pages, op) = (self.volume.pages, self.op / 100.0);
        Geometry::with_over_provisioning(pages, self.block_pages, op, RESERVE)
    }

    fn replay<S: Separation>(&self, separation: S) -> Found {
        let geometry = self.geometry();
        let reclaim = reclaim::by_name(self.reclaim, &[], &geometry, Seed(1))?;
        let mut ftl = Ftl::with_name(geometry, separation, "a separation", reclaim)?;
        let (mut written, mut before) = (0, FtlCounts::default());
        for (index, step) in self.volume.steps.iter().enumerate() {
            if index == self.volume.load_steps {
                before = ftl.counts();
            }
            if let Kind::Trim = step.kind {
                ftl.trim(step.first, step.pages)?;
                continue;
            }
            if step.request_pages > 0 {
                let (first_page, pages) = (step.first, step.request_pages);
                ftl.begin(&HostRequest { first_page, pages, write: true });
            }
            for page in step.first..step.first + step.pages {
                ftl.write(page, self.volume.lifetimes[written], &mut NoSink)?;
                written += 1;
            }
            ftl.end(&mut NoSink);
        }
        let bytes = ftl.separation().metadata_bytes_per_page();
        Ok((ftl.counts() - before, bytes))
    }
}

impl SeparationVisitor for &Case<'_> {
    type Output = Found;

    fn visit<S: Registered>(self, settings: S::Settings) -> Found {
        self.replay(S::new(&self.geometry(), &settings, Seed(1)))
    }
}

fn measure(words: &[String]) -> Result<(), Box<dyn Error>> {
    let [volumes, schemes, ..] = words else {
        return Err("usage: shiro_drives VOLUMES SCHEMES [OPS] [BLOCK_PAGES] [RECLAIM]".into());
    };
    let word = |index: usize, other: &str| words.get(index).map_or(other.to_owned(), String::clone);
    let block_pages = word(3, "128").parse()?;
    let (ops, reclaim) = (word(2, "7,28"), word(4, "death-rate"));
    let ops: Vec<f64> = ops.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let names: Vec<&str> = volumes.split(',').collect();
    let schemes: Vec<&str> = schemes.split(',').collect();
    let mut means = vec![vec![0.0; schemes.len()]; ops.len()];
    for name in &names {
        let volume = Volume::read(name)?;
        let mut cases = Vec::new();
        for op in &ops {
            for scheme in &schemes {
                let (volume, op) = (&volume, *op);
                cases.push(Case { volume, scheme, op, block_pages, reclaim: &reclaim });
            }
        }
        let short = name.rsplit('/').next().unwrap_or(name).replace(".csv.zst", "");
        println!("{short}: {} pages, {:.1} drive writes", volume.pages, volume.drive_writes());
        for (index, (counts, bytes)) in all(&cases)?.into_iter().enumerate() {
            let (case, extra) = (&cases[index], counts.write_amplification() - 1.0);
            means[index / schemes.len()][index % schemes.len()] += extra / names.len() as f64;
            println!("  {:4.0} %  {:52} {extra:.4}  {bytes:.2} B", case.op, case.scheme);
        }
    }
    for (op, means) in ops.iter().zip(means) {
        for (scheme, mean) in schemes.iter().zip(means) {
            println!("mean at {op:.0} %  {scheme:52} {mean:.4}");
        }
    }
    Ok(())
}

/// Runs cases on two threads; results in the order of the cases.
fn all(cases: &[Case<'_>]) -> Result<Vec<(FtlCounts, f64)>, String> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![None; cases.len()]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { break };
                    let result = case.run().map_err(|error| error.to_string());
                    found.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
                }
            });
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.into_iter().flatten().collect()
}

fn main() {
    if let Err(error) = measure(&std::env::args().skip(1).collect::<Vec<String>>()) {
        eprintln!("error: {error}");
        std::process::exit(2);
    }
}
