//! Every instruction set gives the same bits, and a carried state equals a whole sequence.

use cachewright_model::{FloatModel, Int8Model, Isa, NetworkKind, State};
use cachewright_testkit::models::{random_int8, random_model, sequence, shape};
use cachewright_types::Seed;
use proptest::prelude::*;

/// A model's kind with sizes that are rarely a multiple of any vector's width.
fn shapes() -> impl Strategy<Value = (NetworkKind, usize, Vec<usize>, Vec<usize>)> {
    let recurrent = prop_oneof![Just(NetworkKind::Gru), Just(NetworkKind::Lstm)];
    let units = prop::collection::vec(1..90_usize, 1..=3);
    let wide = || prop::collection::vec(1..130_usize, 1..=3);
    let heads = || prop::collection::vec(1..20_usize, 1..=3);
    prop_oneof![
        4 => (recurrent, 1..70_usize, units, heads()),
        1 => (Just(NetworkKind::Mlp), 1..70_usize, wide(), heads()),
        1 => (Just(NetworkKind::Logistic), 1..200_usize, Just(Vec::new()), heads()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn int8_is_the_same_on_all_instruction_sets(
        (kind, inputs, hidden, outputs) in shapes(),
        gain in prop_oneof![Just(1.0_f32), Just(4.0), Just(30.0)],
        seed in any::<u64>(),
    ) {
        // Outputs of dense layers are not squashed, so their weights are kept within the format.
        let gain = if kind.is_recurrent() { gain } else { gain.min(4.0) };
        let stored = random_model(shape(kind, inputs, &hidden, &outputs), gain, seed);
        let int8 = random_int8(&stored, seed);
        let features = sequence(&mut Seed(seed).derive("run").rng(), inputs, 24);
        let reference = Int8Model::new(&int8).unwrap().with_isa(Isa::Scalar).unwrap();
        let mut state = reference.zero_state();
        let outputs = reference.run(&mut state, &features).unwrap();
        for isa in Isa::available() {
            let model = Int8Model::new(&int8).unwrap().with_isa(isa).unwrap();
            let mut own = model.zero_state();
            prop_assert_eq!(&model.run(&mut own, &features).unwrap(), &outputs, "{:?}", isa);
            prop_assert_eq!(&own, &state, "{:?}", isa);
        }
    }

    #[test]
    fn f32_is_the_same_on_all_instruction_sets(
        (kind, inputs, hidden, outputs) in shapes(),
        seed in any::<u64>(),
    ) {
        let stored = random_model(shape(kind, inputs, &hidden, &outputs), 2.0, seed);
        let features = sequence(&mut Seed(seed).derive("run").rng(), inputs, 6);
        let bits = |isa| {
            let model = FloatModel::new(&stored).unwrap().with_isa(isa).unwrap();
            let outputs = model.run(&mut model.zero_state(), &features).unwrap();
            outputs.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let reference = bits(Isa::Scalar);
        for isa in Isa::available() {
            prop_assert_eq!(bits(isa), reference.clone(), "{:?}", isa);
        }
    }

    #[test]
    fn a_carried_state_equals_the_whole_sequence(
        (kind, inputs, hidden, outputs) in shapes(),
        cut in 0..24_usize,
        seed in any::<u64>(),
    ) {
        let stored = random_model(shape(kind, inputs, &hidden, &outputs), 1.0, seed);
        let features = sequence(&mut Seed(seed).derive("run").rng(), inputs, 24);
        let model = FloatModel::new(&stored).unwrap();
        let whole = model.run(&mut model.zero_state(), &features).unwrap();
        let mut state = model.zero_state();
        let mut parts = model.run(&mut state, &features[..cut * inputs]).unwrap();
        parts.extend(model.run(&mut state, &features[cut * inputs..]).unwrap());
        prop_assert_eq!(parts, whole);

        let model = Int8Model::new(&random_int8(&stored, seed)).unwrap();
        let whole = model.run(&mut model.zero_state(), &features).unwrap();
        let State { mut hidden, mut cell } = model.zero_state();
        let (mut scratch, mut other) = (model.scratch(), model.scratch());
        let mut parts = Vec::new();
        for (step, features) in features.chunks_exact(inputs).enumerate() {
            // The scratch carries nothing from step to step.
            let scratch = if step == cut { &mut other } else { &mut scratch };
            parts.extend_from_slice(
                model.step(scratch, &mut hidden, &mut cell, features).unwrap(),
            );
        }
        prop_assert_eq!(parts, whole);
    }
}

#[test]
fn inputs_that_are_int8_already_give_the_same_step() {
    let stored = random_model(shape(NetworkKind::Gru, 22, &[32], &[2]), 1.0, 1);
    let model = Int8Model::new(&random_int8(&stored, 1)).unwrap();
    let features = sequence(&mut Seed(2).rng(), 22, 1);
    let mut inputs = [0; 22];
    model.quantise_inputs(&features, &mut inputs);
    let (mut a, mut b) = ([0_i8; 32], [0_i8; 32]);
    let (mut first, mut second) = (model.scratch(), model.scratch());
    let outputs = model.step(&mut first, &mut a, &mut [], &features).unwrap();
    assert_eq!(model.step_quantised(&mut second, &mut b, &mut [], &inputs).unwrap(), outputs);
    assert_eq!(a, b);
    assert!(a.iter().any(|unit| *unit != 0));
}

#[test]
fn wild_states_and_inputs_give_the_same_bits_and_no_panic() {
    for (kind, seed) in [(NetworkKind::Gru, 3), (NetworkKind::Lstm, 4)] {
        let stored = random_int8(&random_model(shape(kind, 5, &[37], &[3]), 1.0, seed), seed);
        let mut rng = Seed(seed).derive("wild").rng();
        let hidden: Vec<i8> = (0..37).map(|_| rng.next_u64() as i8 | i8::MIN).collect();
        let cell = vec![i16::MIN; if kind == NetworkKind::Lstm { 37 } else { 0 }];
        let features = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e38, -1e38];
        let run = |isa| {
            let model = Int8Model::new(&stored).unwrap().with_isa(isa).unwrap();
            let (mut hidden, mut cell) = (hidden.clone(), cell.clone());
            let mut scratch = model.scratch();
            let outputs = model.step(&mut scratch, &mut hidden, &mut cell, &features).unwrap();
            let quantised = [i8::MIN; 5];
            let outputs = outputs.to_vec();
            let more = model.step_quantised(&mut scratch, &mut hidden, &mut cell, &quantised);
            (outputs, more.unwrap().to_vec(), hidden, cell)
        };
        for isa in Isa::available() {
            assert_eq!(run(isa), run(Isa::Scalar), "{isa:?}");
        }
    }
}

/// FNV-1a of the bits of 200 steps' outputs.
fn fingerprint(outputs: impl IntoIterator<Item = u32>) -> u64 {
    outputs.into_iter().flat_map(u32::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[test]
fn all_machines_give_the_bits_that_one_gave() {
    // Found on x86-64 and again on emulated 64-bit Arm.
    let expected = [
        (NetworkKind::Gru, 22, vec![32], [0xd8b9e0fcc49cd237, 0x18e3ba62bcaf442c]),
        (NetworkKind::Lstm, 5, vec![50; 3], [0x12edc61cdcd59def, 0x07da0ad4c86adb7b]),
        (NetworkKind::Mlp, 16, vec![64, 32], [0xc69e982f638d86a3, 0x4f2e463d3fcb7c08]),
    ];
    for (kind, inputs, hidden, expected) in expected {
        let stored = random_model(shape(kind, inputs, &hidden, &[2, 3]), 1.5, 77);
        let features = sequence(&mut Seed(78).rng(), inputs, 200);
        let float = FloatModel::new(&stored).unwrap();
        let int8 = Int8Model::new(&random_int8(&stored, 77)).unwrap();
        let a = float.run(&mut float.zero_state(), &features).unwrap();
        let b = int8.run(&mut int8.zero_state(), &features).unwrap();
        let found = [
            fingerprint(a.into_iter().map(f32::to_bits)),
            fingerprint(b.into_iter().map(i32::cast_unsigned)),
        ];
        assert_eq!(found, expected, "{kind:?}");
    }
}
