//! The knots to keep when a curve must be small.
//!
//! For: plots, smoothing and averages over a few hundred knots. Must never know: the meaning of
//! curves. Source: Ramer, Computer Graphics and Image Processing 1972; Douglas and Peucker,
//! Cartographica 1973; here ordered by a heap, so that the number of knots is given and not a
//! tolerance. O(knots x depth), depth about log2(points) for curves that fall steeply first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A stretch between two kept knots and the knot of it furthest from the chord.
struct CurveStretch {
    deviation: f64,
    first: usize,
    worst: usize,
    last: usize,
}

impl PartialEq for CurveStretch {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for CurveStretch {}
impl PartialOrd for CurveStretch {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for CurveStretch {
    fn cmp(&self, other: &Self) -> Ordering {
        self.deviation.total_cmp(&other.deviation).then(other.first.cmp(&self.first))
    }
}

/// Indices of at most `points` knots (at least the two ends), ascending.
pub(crate) fn keep(sizes: &[u32], values: &[f64], points: usize) -> Vec<usize> {
    if sizes.len() <= points.max(2) {
        return (0..sizes.len()).collect();
    }
    let mut kept = vec![0, sizes.len() - 1];
    let mut heap = BinaryHeap::from_iter(stretch(sizes, values, 0, sizes.len() - 1));
    while kept.len() < points {
        let Some(next) = heap.pop() else { break };
        kept.push(next.worst);
        heap.extend(stretch(sizes, values, next.first, next.worst));
        heap.extend(stretch(sizes, values, next.worst, next.last));
    }
    kept.sort_unstable();
    kept
}

/// The stretch from `first` to `last`, unless every knot between lies on the chord.
fn stretch(sizes: &[u32], values: &[f64], first: usize, last: usize) -> Option<CurveStretch> {
    let (x0, y0) = (f64::from(sizes[first]), values[first]);
    let slope = (values[last] - y0) / (f64::from(sizes[last]) - x0);
    let mut found = CurveStretch { deviation: 0.0, first, worst: first, last };
    for index in first + 1..last {
        let deviation = (values[index] - y0 - slope * (f64::from(sizes[index]) - x0)).abs();
        if deviation > found.deviation {
            found.deviation = deviation;
            found.worst = index;
        }
    }
    (found.worst != first).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::keep;

    #[test]
    fn the_knee_is_kept_first() {
        let sizes: Vec<u32> = (0..=100).collect();
        let values: Vec<f64> = sizes.iter().map(|&s| f64::from(100 - s.min(30))).collect();
        assert_eq!(keep(&sizes, &values, 3), vec![0, 30, 100]);
        assert_eq!(keep(&sizes, &values, 50), vec![0, 30, 100], "the rest lies on chords");
        assert_eq!(keep(&sizes[..2], &values[..2], 50), vec![0, 1]);
    }
}
