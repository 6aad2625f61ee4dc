//! Time of one step per model, precision and instruction set.
//!
//! For: the table in docs/model-file.md. Run: `cargo run --release -p cachewright-infer --example
//! infer_speed`. Unit: nanoseconds per step with a carried state, normalisation and heads included;
//! the least of nine rounds.

#[path = "../tests/common/mod.rs"]
mod common;

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use cachewright_infer::{FloatModel, Int8Model, Isa, Kind, State, StoredModel};
use cachewright_types::Seed;
use common::{random_int8, random_model, sequence, shape};

/// Steps whose features differ; they are gone through again and again.
const STEPS: usize = 64;
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let models = [
        ("shiro: gru 22 -> 32", Kind::Gru, 22, vec![32], vec![2], 20_000),
        ("icache: lstm 4 -> 128", Kind::Lstm, 4, vec![128], vec![2], 5_000),
        ("rc-rnn kind: lstm 4 -> 50", Kind::Lstm, 4, vec![50], vec![4], 10_000),
        ("rc-rnn: lstm 5 -> 3 x 256", Kind::Lstm, 5, vec![256; 3], vec![2, 3], 300),
        ("mlp 16 -> 64 -> 32", Kind::Mlp, 16, vec![64, 32], vec![4], 20_000),
        ("logistic 6", Kind::Logistic, 6, vec![], vec![1], 50_000),
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
    Ok(())
}

fn float_ns(stored: &StoredModel, isa: Isa, steps: usize) -> Result<f64, Box<dyn Error>> {
    let model = FloatModel::new(stored)?.with_isa(isa)?;
    let State { mut hidden, mut cell } = model.zero_state();
    let mut scratch = model.scratch();
    least_ns(model.architecture().inputs, steps, |features| {
        black_box(model.step(&mut scratch, &mut hidden, &mut cell, features)?);
        Ok(())
    })
}

fn int8_ns(stored: &StoredModel, isa: Isa, steps: usize) -> Result<f64, Box<dyn Error>> {
    let model = Int8Model::new(stored)?.with_isa(isa)?;
    let State { mut hidden, mut cell } = model.zero_state();
    let mut scratch = model.scratch();
    least_ns(model.architecture().inputs, steps, |features| {
        black_box(model.step(&mut scratch, &mut hidden, &mut cell, features)?);
        Ok(())
    })
}

/// The least time per step of several rounds.
fn least_ns(
    inputs: usize,
    steps: usize,
    mut step: impl FnMut(&[f32]) -> Result<(), Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let features = sequence(&mut Seed(9).rng(), inputs, STEPS);
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for features in features.chunks_exact(inputs).cycle().take(steps) {
            step(black_box(features))?;
        }
        least = least.min(start.elapsed().as_nanos() as f64 / steps as f64);
    }
    Ok(least)
}
