//! Additions and products of vectors, in a fixed order.
//!
//! For: the inner loops of the forward and the backward pass. Must never know: networks.

/// Adds `factor` times `numbers` to `sums`.
#[inline]
pub fn add(sums: &mut [f32], factor: f32, numbers: &[f32]) {
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum += factor * number;
    }
}

/// Adds each column times its input. An input of 0 costs nothing: most digits are 0.
#[inline]
pub fn add_columns(sums: &mut [f32], columns: &[f32], inputs: &[f32]) {
    for (column, input) in columns.chunks_exact(sums.len()).zip(inputs) {
        if *input != 0.0 {
            add(sums, *input, column);
        }
    }
}

/// Adds the outer product of `inputs` and `column` to a matrix that is stored by columns.
#[inline]
pub fn add_outer(matrix: &mut [f32], inputs: &[f32], column: &[f32]) {
    for (sums, input) in matrix.chunks_exact_mut(column.len()).zip(inputs) {
        if *input != 0.0 {
            add(sums, *input, column);
        }
    }
}

/// The inner product. Eight lanes are added at the end, then what is beyond a multiple of eight.
#[inline]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut lanes = [0.0_f32; 8];
    for (a, b) in a.iter().zip(b) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    a_rest.iter().zip(b_rest).fold(lanes.iter().sum(), |sum, (a, b)| sum + a * b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inner_product_counts_every_number_once() {
        let ones = [1.0; 19];
        let numbers: Vec<f32> = (1..=19_u8).map(f32::from).collect();
        for count in 0..=19 {
            let expected: f32 = numbers[..count].iter().sum();
            assert_eq!(dot(&ones[..count], &numbers[..count]), expected, "{count}");
        }
    }

    #[test]
    fn columns_and_outer_products_by_hand() {
        let mut sums = [1.0, 2.0];
        add_columns(&mut sums, &[1.0, 0.0, 5.0, 5.0, 0.0, 1.0], &[3.0, 0.0, 4.0]);
        assert_eq!(sums, [4.0, 6.0]);
        let mut matrix = [0.5; 4];
        add_outer(&mut matrix, &[2.0, 0.0], &[1.0, 10.0]);
        assert_eq!(matrix, [2.5, 20.5, 0.5, 0.5]);
    }
}
