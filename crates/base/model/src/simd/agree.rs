//! Tests: each kernel equals the scalar definition on extreme numbers that no trained model has.

use proptest::prelude::*;

use super::{Isa, Kernels, scalar};
use crate::packed::{GateScales, LANES, Lanes, PackedMatrix};

fn lanes(count: usize, max: i32) -> impl Strategy<Value = Vec<Lanes>> {
    let number = prop_oneof![4 => -max..=max, 1 => Just(max), 1 => Just(-max), 1 => Just(0)];
    prop::collection::vec(prop::array::uniform16(number).prop_map(Lanes), count)
}

fn kernels() -> Vec<Kernels> {
    Isa::available().into_iter().filter_map(|isa| Kernels::new(isa).ok()).collect()
}

fn parts(sums: &mut [Vec<Lanes>; 2]) -> [&mut [Lanes]; 2] {
    sums.each_mut().map(Vec::as_mut_slice)
}

/// Sums as large as 1024 columns give; multipliers and biases over their whole range.
fn gates(gates: usize) -> impl Strategy<Value = (GateScales, [Vec<Lanes>; 2], usize)> {
    (1..4_usize, 8..=12_u32).prop_flat_map(move |(units, cell_bits)| {
        let blocks = gates * units;
        let positive = |max: i32| {
            let size = |lanes: Lanes| Lanes(lanes.0.map(i32::abs));
            lanes(blocks, max).prop_map(move |all| all.into_iter().map(size).collect())
        };
        let multipliers = || prop_oneof![positive(i32::MAX), positive(1 << 16), positive(1 << 8)];
        let sums = || lanes(blocks, 1024 * 127 * 127);
        let biases = (lanes(blocks, 1 << 26), lanes(units, 1 << 26));
        (multipliers(), multipliers(), biases, sums(), sums()).prop_map(
            move |(input, hidden, (bias, hidden_bias), a, b)| {
                let scales = GateScales { input, hidden, bias, hidden_bias, cell_bits };
                (scales, [a, b], units)
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn products(
        (weights, columns, x) in (1..90_usize, 1..80_usize).prop_flat_map(|(rows, columns)| {
            let extreme = prop_oneof![4 => -127..=127_i8, 1 => Just(127), 1 => Just(-127)];
            let input = prop_oneof![4 => any::<i8>(), 1 => Just(-128), 1 => Just(127)];
            (
                prop::collection::vec(extreme, rows * columns),
                Just(columns),
                prop::collection::vec(input, columns),
            )
        }),
    ) {
        let rows = weights.len() / columns;
        let blocks = rows.div_ceil(LANES);
        let matrix = PackedMatrix::new(&weights, columns, blocks, |row| row);
        let mut padded = vec![[0_i8; 4]; columns.div_ceil(4)];
        padded.as_flattened_mut()[..columns].copy_from_slice(&x);
        for kernels in kernels() {
            let mut sums = vec![Lanes([7; LANES]); blocks];
            kernels.multiply(&matrix, &padded, &mut sums);
            let sums = sums.as_slice();
            for (row, weights) in weights.chunks_exact(columns).enumerate() {
                let exact: i32 =
                    weights.iter().zip(&x).map(|(w, x)| i32::from(*w) * i32::from(*x)).sum();
                prop_assert_eq!(sums[row / LANES].0[row % LANES], exact, "{:?}", kernels.isa());
            }
        }
    }

    #[test]
    fn gru_gates(
        (scales, sums, units) in gates(3),
        state in prop::collection::vec(prop::array::uniform16(any::<i8>()), 3),
    ) {
        let mut expected = state[..units].to_vec();
        scalar::gru(&scales, parts(&mut sums.clone()), &mut expected);
        for kernels in kernels() {
            let mut found = state[..units].to_vec();
            kernels.gru(&scales, parts(&mut sums.clone()), &mut found);
            prop_assert_eq!(&found, &expected, "{:?}", kernels.isa());
        }
    }

    #[test]
    fn lstm_gates(
        (scales, sums, units) in gates(4),
        cells in prop::collection::vec(prop::array::uniform16(any::<i16>()), 3),
    ) {
        let (mut cell, mut hidden) = (cells[..units].to_vec(), vec![[0; LANES]; units]);
        scalar::lstm(&scales, parts(&mut sums.clone()), &mut cell, &mut hidden);
        for kernels in kernels() {
            let (mut own_cell, mut own) = (cells[..units].to_vec(), vec![[0; LANES]; units]);
            kernels.lstm(&scales, parts(&mut sums.clone()), &mut own_cell, &mut own);
            prop_assert_eq!(&own, &hidden, "{:?}", kernels.isa());
            prop_assert_eq!(&own_cell, &cell, "{:?}", kernels.isa());
        }
    }
}

#[test]
fn the_best_instruction_set_is_available_and_others_are_refused() {
    assert!(Isa::best().is_available());
    for isa in Isa::ALL {
        assert_eq!(Kernels::new(isa).is_ok(), isa.is_available(), "{isa:?}");
    }
}
