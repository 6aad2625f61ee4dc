//! How evenly blocks are worn.
//!
//! For: studies of write amplification, drives under simulated time. Must never know: why a block
//! was erased. Units: erases.

/// Erases of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wear {
    /// Fewest of any block.
    pub least: u32,
    /// On average.
    pub mean: f64,
    /// Most of any block.
    pub most: u32,
    /// Standard deviation between blocks.
    pub deviation: f64,
}

impl Wear {
    /// The wear of blocks that were erased so often; none at all is no wear.
    pub fn of(erases: impl IntoIterator<Item = u32>) -> Wear {
        let (mut least, mut most) = (u32::MAX, 0);
        let (mut blocks, mut sum, mut squares) = (0_u64, 0_u64, 0_u128);
        for count in erases {
            least = least.min(count);
            most = most.max(count);
            blocks += 1;
            sum += u64::from(count);
            squares += u128::from(count).pow(2);
        }
        if blocks == 0 {
            return Wear::default();
        }
        // In whole numbers, so that even wear has a deviation of exactly 0.
        let variance = u128::from(blocks) * squares - u128::from(sum).pow(2);
        let count = blocks as f64;
        let deviation = (variance as f64).sqrt() / count;
        Wear { least, mean: sum as f64 / count, most, deviation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_is_least_mean_most_and_spread() {
        assert_eq!(Wear::of([]), Wear::default());
        let even = Wear::of([7; 100]);
        assert_eq!((even.least, even.mean, even.most, even.deviation), (7, 7.0, 7, 0.0));
        let found = Wear::of([2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((found.least, found.mean, found.most, found.deviation), (2, 5.0, 9, 2.0));
    }
}
