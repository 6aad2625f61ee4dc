//! Inputs in bins, so that a split is sought among a few thresholds.
//!
//! For: growing trees. Must never know: targets. A bin holds the values above the threshold before
//! it, up to its own; thresholds are values of a sample of the rows, as far as possible such that
//! bins hold equally many. Layout: a column per input, a byte per row.

/// Bins of an input, at most.
pub const BINS: usize = 64;
/// Rows by which thresholds are chosen, at most.
const SAMPLED: usize = 4096;

/// The inputs of all rows, by the number of their bin.
pub struct BinnedRows {
    rows: usize,
    columns: Vec<u8>,
    /// Per input the highest value of each bin but the last.
    thresholds: Vec<Vec<f32>>,
}

impl BinnedRows {
    /// Rows of `inputs` numbers each, one after the other.
    pub fn new(inputs: usize, rows: &[f32]) -> BinnedRows {
        let count = rows.len() / inputs.max(1);
        let mut columns = vec![0; rows.len()];
        let mut thresholds = Vec::with_capacity(inputs);
        for (input, column) in columns.chunks_exact_mut(count.max(1)).enumerate() {
            let values = || rows.iter().skip(input).step_by(inputs).copied();
            let chosen = choose(values().step_by(count.div_ceil(SAMPLED).max(1)).collect());
            for (bin, value) in column.iter_mut().zip(values()) {
                *bin = chosen.partition_point(|threshold| *threshold < value) as u8;
            }
            thresholds.push(chosen);
        }
        BinnedRows { rows: count, columns, thresholds }
    }

    /// The bins of an input, by row.
    pub fn column(&self, input: usize) -> &[u8] {
        &self.columns[input * self.rows..(input + 1) * self.rows]
    }

    /// The thresholds of an input: that of a bin is its highest value.
    pub fn thresholds(&self, input: usize) -> &[f32] {
        &self.thresholds[input]
    }
}

/// Thresholds that part the values as evenly as they can; the highest value is none.
fn choose(mut values: Vec<f32>) -> Vec<f32> {
    values.sort_unstable_by(f32::total_cmp);
    let mut chosen: Vec<f32> = Vec::with_capacity(BINS - 1);
    let distinct = {
        let mut distinct = values.clone();
        distinct.dedup();
        distinct
    };
    if distinct.len() <= BINS {
        chosen.extend(distinct.iter().take(distinct.len().saturating_sub(1)));
        return chosen;
    }
    for bin in 1..BINS {
        let threshold = values[bin * values.len() / BINS];
        let is_new = chosen.last().is_none_or(|last| *last < threshold);
        if is_new && distinct.last().is_some_and(|last| threshold < *last) {
            chosen.push(threshold);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_a_bin_each_and_many_share_them_evenly() {
        let rows = [3.0, 0.0, 1.0, f32::INFINITY, 3.0, 2.0, -1.0, 9.0];
        let binned = BinnedRows::new(2, &rows);
        assert_eq!(binned.thresholds(0), [-1.0, 1.0]);
        assert_eq!(
            (binned.column(0), binned.thresholds(1)),
            (&[2, 1, 2, 0][..], &[0.0, 2.0, 9.0][..])
        );
        assert_eq!(binned.column(1), [0, 3, 1, 2]);
        let many: Vec<f32> = (0..10_000).map(|value| (value * 7 % 10_000) as f32).collect();
        let binned = BinnedRows::new(1, &many);
        let mut sizes = [0; BINS];
        binned.column(0).iter().for_each(|bin| sizes[usize::from(*bin)] += 1);
        assert!(sizes.iter().all(|size| (100..220).contains(size)), "{sizes:?}");
    }
}
