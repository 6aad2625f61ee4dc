//! Int8 against single precision on real windows.
//!
//! For: the loss of accuracy of Shiro's quantised classifier, within 1 % (paper, section IV). Each
//! model is judged on the window after its own. Windows come from captured volumes of overwrites
//! where the reference data is present, otherwise from a generated stream. Must never know: how
//! models are trained or quantised.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_ftl::separation::shiro::{NativeTrainer, PAPER, Shiro, ShiroSettings};
use cachewright_ftl::separation::{Registered, Separation, Write};
use cachewright_ftl::{Geometry, HostRequest, NEVER, workload};
use cachewright_testkit::overwrites::{Comparing, Op, PAGE_BYTES, Precision, Request, Trace};
use cachewright_testkit::reference_data;
use cachewright_types::Seed;
use std::sync::{Arc, Mutex};

/// Page writes that are replayed of a volume: about twenty windows after its load.
const MOST_WRITES: usize = 600_000;

/// Both precisions over the windows of a trace. A trim needs a drive and is left out: its page is
/// then merely rewritten later.
fn compare(trace: &Trace) -> Precision {
    let geometry = Geometry::with_over_provisioning(trace.pages, 256, 0.07, 4);
    let settings = ShiroSettings { page_bytes: PAGE_BYTES as u32, ..ShiroSettings::default() };
    let mut scheme = Shiro::<PAPER>::new(&geometry, &settings, Seed(1));
    let found = Arc::new(Mutex::new(Precision::default()));
    let comparing = Comparing::new(NativeTrainer::new(Seed(2)), Arc::clone(&found));
    scheme.set_trainer(Some(Box::new(comparing)));
    let mut clock = 0;
    for &Request { op, first, pages } in &trace.requests {
        let write = matches!(op, Op::Write);
        if let Op::Trim = op {
            continue;
        }
        scheme.on_request(&HostRequest { first_page: first, pages, write }, clock);
        for page in first..if write { first + pages } else { first } {
            clock += 1;
            let write = Write { page, clock, rewrite: true, live_pages: 0, lifetime: NEVER };
            scheme.place_user(&write);
        }
        if clock as usize >= MOST_WRITES {
            break;
        }
    }
    assert_eq!(scheme.statistics().failures, 0);
    *found.lock().unwrap()
}

fn check(name: &str, trace: &Trace) {
    let Precision { float, int8 } = compare(trace);
    println!(
        "{name:10} f32 {:.4} (F1 {:.4}), int8 {:.4} (F1 {:.4}), {} page writes judged",
        float.accuracy(),
        float.f1(),
        int8.accuracy(),
        int8.f1(),
        float.total()
    );
    assert!(float.total() > 10_000 && float.total() == int8.total(), "{name}: {float:?}");
    assert!((float.accuracy() - int8.accuracy()).abs() < 0.01, "{name}: {float:?}, {int8:?}");
}

#[test]
fn int8_loses_less_than_a_hundredth_on_captured_windows() {
    let Some(folder) = reference_data("traces/captured") else { return };
    for name in ["skewed", "mild"] {
        let files = ["load.csv.zst", "csv.zst"];
        let files = files.map(|end| folder.join(format!("overwrite-{name}.{end}")));
        let mut trace = Trace::new((1 << 30) / PAGE_BYTES as u32);
        files.iter().for_each(|file| trace.add(file).unwrap());
        check(name, &trace);
    }
}

#[test]
fn int8_loses_less_than_a_hundredth_on_a_generated_stream() {
    let pages = 40_000;
    let mut trace = Trace::new(pages);
    let stream = workload::generate("mix3", pages, 4 * pages as usize).unwrap();
    stream.iter().for_each(|page| trace.request(Op::Write, *page, 1));
    check("mix3", &trace);
}
