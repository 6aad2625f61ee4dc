//! Time of Shiro per page write: `shiro_speed [PAGES [WRITES]]`.
//!
//! For: the prediction as the path of a write has it (features, one GRU step, dense layer, argmax,
//! state from and to the page table) and its parts. Must never know: what is decided. Units:
//! nanoseconds of processor time per page write, the least of five rounds; no window ends within a
//! round. The model comes from a few windows on a small drive.

mod common;

use cachewright_ftl::separation::shiro::{
    Dataset, NativeTrainer, PAPER, Shiro, ShiroSettings, TrainError, Trainer,
};
use cachewright_ftl::separation::{Registered, Separation, Write};
use cachewright_ftl::{Ftl, Geometry, HostRequest, NEVER, NoSink, reclaim, workload};
use cachewright_model::{Int8Model, Isa, StoredModel, quantise};
use cachewright_types::Seed;
use common::Clock;
use std::error::Error;
use std::hint::black_box;
use std::sync::{Arc, Mutex};

const BLOCK_PAGES: u32 = 256;
const ROUNDS: usize = 5;
/// Pages whose entries are loaded together ahead of their writes, as `Ftl::write_each` does.
const AHEAD: usize = 64;

type Failure = Box<dyn Error>;

struct Keeping(NativeTrainer, Arc<Mutex<Option<StoredModel>>>);

impl Trainer for Keeping {
    fn train(&mut self, dataset: &Dataset) -> Result<StoredModel, TrainError> {
        let model = self.0.train(dataset)?;
        if let Ok(mut kept) = self.1.lock() {
            *kept = Some(model.clone());
        }
        Ok(model)
    }
}

fn geometry(pages: u32) -> Geometry {
    Geometry::with_over_provisioning(pages, BLOCK_PAGES, 0.3, 8)
}

/// A drive under Shiro whose windows are this share of it.
fn drive(pages: u32, window_share: f64) -> Result<Ftl<Shiro<PAPER>>, Failure> {
    let settings = ShiroSettings { window_share, ..ShiroSettings::default() };
    let scheme = Shiro::<PAPER>::new(&geometry(pages), &settings, Seed(1));
    let reclaim = reclaim::by_name("adjusted-greedy", &[], &geometry(pages), Seed(1))?;
    Ok(Ftl::new(geometry(pages), scheme, reclaim)?)
}

/// A model trained on a small drive.
fn model() -> Result<StoredModel, Failure> {
    let pages = 20_000;
    let stream = workload::generate("zipf1", pages, 20_000).ok_or("no such stream")?;
    let kept = Arc::new(Mutex::new(None));
    let mut ftl = drive(pages, 0.25)?;
    let keeping = Keeping(NativeTrainer::new(Seed(1)), Arc::clone(&kept));
    ftl.separation_mut().set_trainer(Some(Box::new(keeping)));
    ftl.write_each(&stream, &[], &mut NoSink)?;
    let model = kept.lock().map_err(|_| "a trainer failed")?.take();
    Ok(quantise(&model.ok_or("no model was trained")?, &[&[1.0; 24]])?)
}

/// The least time per item of several rounds.
fn min_ns(items: usize, mut round: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let mut min = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Clock::start();
        round()?;
        min = min.min(1e9 * start.seconds() / items as f64);
    }
    Ok(min)
}

/// Steps alone, inputs in int8 and the state in the nearest cache.
fn step_ns(stored: &StoredModel, isa: Isa, steps: usize) -> Result<f64, Failure> {
    let model = Int8Model::new(stored)?.with_isa(isa)?;
    let (mut scratch, mut state) = (model.scratch(), [0_i8; 32]);
    let mut inputs = [[0_i8; 24]; 64];
    for (row, inputs) in inputs.iter_mut().enumerate() {
        inputs.iter_mut().enumerate().for_each(|(i, x)| *x = ((row * 7 + i * 13) % 128) as i8);
    }
    min_ns(steps, || {
        for inputs in inputs.iter().cycle().take(steps) {
            black_box(model.step_quantised(
                &mut scratch,
                &mut state,
                &mut [],
                black_box(inputs),
            )?);
        }
        Ok(())
    })
}

/// `on_request` and `place_user` of every write, without a drive around them.
fn placed(scheme: &mut Shiro<PAPER>, pages: &[u32], clock: &mut u64) {
    for chunk in pages.chunks(AHEAD) {
        let touched = chunk.iter().fold(0_u32, |sum, page| sum.wrapping_add(scheme.touch(*page)));
        black_box(touched);
        for page in chunk {
            *clock += 1;
            let request = HostRequest { first_page: *page, pages: 1, write: true };
            scheme.on_request(&request, *clock - 1);
            let (page, clock) = (*page, *clock);
            let write = Write { page, clock, rewrite: true, live_pages: 0, lifetime: NEVER };
            black_box(scheme.place_user(&write));
        }
    }
}

/// Time per write without and with a model.
fn path_ns(stored: &StoredModel, pages: u32, stream: &[u32]) -> Result<[f64; 2], Failure> {
    let mut found = [0.0; 2];
    for (with_model, found) in found.iter_mut().enumerate() {
        // Windows longer than all rounds together.
        let settings = ShiroSettings { window_share: 4.0, ..ShiroSettings::default() };
        let writes = stream.len() / ROUNDS;
        let mut clock = 0;
        let (mut rounds, mut scheme) = (stream.chunks_exact(writes), None);
        *found = min_ns(writes, || {
            let fresh = || -> Result<Shiro<PAPER>, Failure> {
                let mut scheme = Shiro::<PAPER>::new(&geometry(pages), &settings, Seed(1));
                scheme.set_trainer(None);
                if with_model == 1 {
                    scheme.install(stored, &[])?;
                }
                Ok(scheme)
            };
            if scheme.is_none() {
                scheme = Some(fresh()?);
            }
            if let (Some(scheme), Some(part)) = (&mut scheme, rounds.next()) {
                placed(scheme, part, &mut clock);
            }
            Ok(())
        })?;
    }
    Ok(found)
}

fn main() -> Result<(), Failure> {
    let mut numbers = std::env::args().skip(1);
    let mut number = |default: u32| numbers.next().map_or(Ok(default), |text| text.parse::<u32>());
    let (pages, writes) = (number(1 << 20)?, number(3 << 20)?);
    if writes < 5 || f64::from(writes) >= 4.0 * f64::from(pages) {
        println!("expected at least 5 writes and fewer than 4 per page");
        return Ok(());
    }
    let stored = model()?;
    let stream = workload::generate("zipf1", pages, writes as usize).ok_or("no such stream")?;
    let stream = &stream[pages as usize..];
    println!("{pages} pages, {} writes", stream.len());
    for isa in Isa::available() {
        println!("step, int8 inputs, {:12} {:8.1} ns", isa.name(), step_ns(&stored, isa, 50_000)?);
    }
    let [without, with] = path_ns(&stored, pages, stream)?;
    println!("path of a write without model   {without:8.1} ns");
    println!("path of a write with model      {with:8.1} ns");
    println!("prediction                      {:8.1} ns", with - without);
    Ok(())
}
