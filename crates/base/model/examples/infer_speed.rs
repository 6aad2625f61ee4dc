//! Time of one step per model, precision and instruction set; of icache's window; of forests.
//!
//! For: the tables in docs/model-file.md. Run: `cargo run --release -p cachewright-model --example
//! infer_speed`. Units: nanoseconds per step with a carried state, per window from a zero state and
//! per prediction, normalisation and heads included; the least of nine rounds.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use cachewright_model::{
    Combine, FloatModel, ForestModel, Int8Model, Isa, Model, NetworkKind, State, StoredModel,
};
use cachewright_testkit::models::{
    random_forest, random_int8, random_model, sequence, shape, stored_forest,
};
use cachewright_types::Seed;

/// Steps whose features differ; they are gone through again and again.
const STEPS: usize = 64;
/// Steps of a window of icache.
const WINDOW_STEPS: usize = 180;
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let models = [
        ("shiro: gru 22 -> 32", NetworkKind::Gru, 22, vec![32], vec![2], 20_000),
        ("icache: lstm 4 -> 128", NetworkKind::Lstm, 4, vec![128], vec![2], 5_000),
        ("rc-rnn kind: lstm 4 -> 50", NetworkKind::Lstm, 4, vec![50], vec![4], 10_000),
        ("rc-rnn: lstm 5 -> 3 x 256", NetworkKind::Lstm, 5, vec![256; 3], vec![2, 3], 300),
        ("mlp 16 -> 64 -> 32", NetworkKind::Mlp, 16, vec![64, 32], vec![4], 20_000),
        ("logistic 6", NetworkKind::Logistic, 6, vec![], vec![1], 50_000),
    ];
    let available = Isa::available();
    print!("{:27}", "ns per step");
    for precision in ["f32", "int8"] {
        for isa in &available {
            print!("{:>17}", format!("{precision} {}", isa.name()));
        }
    }
    println!("{:>12}", "int8 bytes");
    for (name, kind, inputs, hidden, outputs, steps) in models {
        let stored = random_model(shape(kind, inputs, &hidden, &outputs), 1.0, 7);
        let int8 = random_int8(&stored, 7);
        print!("{name:27}");
        for isa in &available {
            print!("{:17.1}", float_ns(&stored, *isa, steps)?);
        }
        for isa in &available {
            print!("{:17.1}", int8_ns(&int8, *isa, steps)?);
        }
        println!("{:12}", int8.weight_bytes());
    }
    window()?;
    forests()
}

/// A window of icache from a zero state, on the fastest kernels.
fn window() -> Result<(), Box<dyn Error>> {
    let stored = random_model(shape(NetworkKind::Lstm, 4, &[128], &[2]), 1.0, 7);
    let features = sequence(&mut Seed(9).rng(), 4, WINDOW_STEPS);
    println!("\nicache window of {WINDOW_STEPS} steps: lstm 4 -> 128, ns per window");
    for stored in [random_int8(&stored, 7), stored] {
        let model = Model::new(&stored)?;
        let ns = min_call_ns(20, || {
            black_box(model.last(black_box(&features))?);
            Ok(())
        })?;
        println!("{:27}{ns:17.1}", if stored.is_int8() { "int8" } else { "f32" });
    }
    Ok(())
}

fn forests() -> Result<(), Box<dyn Error>> {
    println!("\n{:27}{:>17}{:>12}{:>12}", "forest, ns per prediction", "f32", "nodes", "bytes");
    for (inputs, outputs, trees, splits) in [(48, 2, 100, 200), (48, 2, 20, 200), (24, 1, 100, 15)]
    {
        let forest = random_forest(inputs, outputs, trees, splits, Combine::Mean, 7);
        let stored = stored_forest(&forest, inputs, 7);
        let model = ForestModel::new(&stored)?;
        let mut scratch = model.scratch();
        let ns = min_step_ns(inputs, 20_000, |features| {
            black_box(model.predict(&mut scratch, features)?);
            Ok(())
        })?;
        let name = format!("{trees} trees x {} leaves, {inputs} inputs", splits + 1);
        let nodes = trees * (2 * splits + 1);
        println!("{name:31}{ns:13.1}{nodes:12}{:12}", stored.weight_bytes());
    }
    Ok(())
}

fn float_ns(stored: &StoredModel, isa: Isa, steps: usize) -> Result<f64, Box<dyn Error>> {
    let model = FloatModel::new(stored)?.with_isa(isa)?;
    let State { mut hidden, mut cell } = model.zero_state();
    let mut scratch = model.scratch();
    min_step_ns(model.architecture().inputs, steps, |features| {
        black_box(model.step(&mut scratch, &mut hidden, &mut cell, features)?);
        Ok(())
    })
}

fn int8_ns(stored: &StoredModel, isa: Isa, steps: usize) -> Result<f64, Box<dyn Error>> {
    let model = Int8Model::new(stored)?.with_isa(isa)?;
    let State { mut hidden, mut cell } = model.zero_state();
    let mut scratch = model.scratch();
    min_step_ns(model.architecture().inputs, steps, |features| {
        black_box(model.step(&mut scratch, &mut hidden, &mut cell, features)?);
        Ok(())
    })
}

/// The least time per step of several rounds.
fn min_step_ns(
    inputs: usize,
    steps: usize,
    mut step: impl FnMut(&[f32]) -> Result<(), Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let features = sequence(&mut Seed(9).rng(), inputs, STEPS);
    let ns = min_call_ns(1, || {
        let mut features = features.chunks_exact(inputs).cycle().take(steps);
        features.try_for_each(|features| step(black_box(features)))
    })?;
    Ok(ns / steps as f64)
}

/// The least time per call in nanoseconds.
fn min_call_ns(
    calls: usize,
    mut call: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let mut min_call_ns = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        min_call_ns = min_call_ns.min(start.elapsed().as_nanos() as f64 / calls as f64);
    }
    Ok(min_call_ns)
}
