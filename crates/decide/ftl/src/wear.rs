//! How evenly blocks are worn.
//!
//! For: studies of write amplification, drives under simulated time. Must never know: why a block
//! was erased. Units: erases.

/// Erases of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EraseCounts {
    /// Fewest of any block.
    pub min: u32,
    /// On average.
    pub mean: f64,
    /// Most of any block.
    pub max: u32,
    /// Standard deviation between blocks.
    pub deviation: f64,
}

impl EraseCounts {
    /// The wear of blocks that were erased so often; none at all is no wear.
    pub fn from_erases(erases: impl IntoIterator<Item = u32>) -> EraseCounts {
        let (mut min, mut max) = (u32::MAX, 0);
        let (mut blocks, mut sum, mut squares) = (0_u64, 0_u64, 0_u128);
        for count in erases {
            min = min.min(count);
            max = max.max(count);
            blocks += 1;
            sum += u64::from(count);
            squares += u128::from(count).pow(2);
        }
        if blocks == 0 {
            return EraseCounts::default();
        }
        // In whole numbers, so that even wear has a deviation of exactly 0.
        let variance = u128::from(blocks) * squares - u128::from(sum).pow(2);
        let count = blocks as f64;
        let deviation = (variance as f64).sqrt() / count;
        EraseCounts { min, mean: sum as f64 / count, max, deviation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_is_least_mean_most_and_spread() {
        assert_eq!(EraseCounts::from_erases([]), EraseCounts::default());
        let even = EraseCounts::from_erases([7; 100]);
        assert_eq!((even.min, even.mean, even.max, even.deviation), (7, 7.0, 7, 0.0));
        let found = EraseCounts::from_erases([2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((found.min, found.mean, found.max, found.deviation), (2, 5.0, 9, 2.0));
    }
}
