//! Steps that let time pass.
//!
//! For: the order in which they end. Must never know: why they wait. Units: nanoseconds. Steps that
//! end at the same time end in the order in which they began.

use super::ids::StepId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Delays under way.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// When each ends, its order among all, the step.
    heap: BinaryHeap<Reverse<(u64, u64, StepId)>>,
    begun: u64,
}

impl Delays {
    /// A step waits until `end_ns`.
    pub fn begin(&mut self, step: StepId, end_ns: u64) {
        self.heap.push(Reverse((end_ns, self.begun, step)));
        self.begun += 1;
    }

    /// When the next one ends.
    pub fn next_end_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(delay)| delay.0)
    }

    /// The next step that ends at or before `now_ns`.
    pub fn take_ended(&mut self, now_ns: u64) -> Option<StepId> {
        if self.next_end_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, step))| step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_by_time_and_then_in_the_order_in_which_they_began() {
        let mut delays = Delays::default();
        for (step, end_ns) in [(5, 30), (4, 10), (3, 30), (2, 20)] {
            delays.begin(StepId(step), end_ns);
        }
        assert_eq!((delays.next_end_ns(), delays.take_ended(9)), (Some(10), None));
        let ended: Vec<u32> =
            std::iter::from_fn(|| delays.take_ended(30)).map(|step| step.0).collect();
        assert_eq!(ended, [4, 2, 5, 3]);
        assert_eq!(delays.next_end_ns(), None);
    }
}
