//! How evenly tenants fare.
//!
//! For: figures made of slowdowns. Must never know: how they were measured. Source: Jain, Chiu and
//! Hawe, DEC-TR-301, 1984; Li, Sun and Qin (icache) for the ratio of extremes.

/// Jain's index of some shares: 1 when all are equal, 1/n when one has everything; 1 for none.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

/// The smallest over the largest; 1 for none.
pub fn extremes(shares: &[f64]) -> f64 {
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let smallest = shares.iter().copied().fold(largest, f64::min);
    if largest > 0.0 { smallest / largest } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_are_fair_and_one_taking_all_is_not() {
        assert_eq!((jain(&[3.0, 3.0, 3.0]), extremes(&[3.0, 3.0])), (1.0, 1.0));
        assert_eq!((jain(&[1.0, 0.0, 0.0, 0.0]), extremes(&[1.0, 0.0])), (0.25, 0.0));
        assert_eq!((jain(&[]), extremes(&[])), (1.0, 1.0));
        assert!((jain(&[1.0, 2.0]) - 0.9).abs() < 1e-12);
    }
}
