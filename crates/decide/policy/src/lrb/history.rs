//! What LRB knows of a block: when it was used, and how often lately.
//!
//! For: `lrb`. Must never know: residence, models. Source: Song et al., NSDI'20, section 4.3: the
//! distances between its last 32 uses, and ten exponentially decayed counters whose half-lives
//! double from 2^10 accesses on. The size of an object and its type fall away: blocks are alike.
//! Unit: accesses. Memory: 172 bytes per id.

/// Distances between uses that are kept.
pub const DISTANCES: usize = 31;
/// Decayed counters.
pub const COUNTERS: usize = 10;
/// Inputs of the model: age, distances from the last one on, how many of them lie within the memory
/// window, counters.
pub const INPUTS: usize = 1 + DISTANCES + 1 + COUNTERS;
/// log2 of the half-life of the first counter.
const FIRST_HALF_LIFE_LOG2: u32 = 10;

/// The history of one block.
#[derive(Clone, Copy, Debug)]
pub struct BlockHistory {
    /// The time of its last use, modulo 2^32.
    pub used: u32,
    /// A circle of the last distances; those there are, and the next place.
    distances: [u32; DISTANCES],
    count: u8,
    next: u8,
    /// At its last use.
    counters: [f32; COUNTERS],
}

impl BlockHistory {
    /// A block that is used for the first time.
    pub fn first(now: u32) -> BlockHistory {
        BlockHistory {
            used: now,
            distances: [0; DISTANCES],
            count: 0,
            next: 0,
            counters: [1.0; COUNTERS],
        }
    }

    /// Accesses since the last use.
    #[inline(always)]
    pub fn age(&self, now: u32) -> u32 {
        now.wrapping_sub(self.used)
    }

    /// The block is used.
    #[inline(always)]
    pub fn use_now(&mut self, now: u32) {
        let distance = self.age(now);
        self.used = now;
        self.distances[usize::from(self.next)] = distance;
        self.next = (self.next + 1) % DISTANCES as u8;
        self.count = (self.count + 1).min(DISTANCES as u8);
        for (number, counter) in self.counters.iter_mut().enumerate() {
            *counter = *counter * decay(distance, number) + 1.0;
        }
    }

    /// Appends the inputs of the model at a time, with a memory window of so many accesses. A
    /// distance that is not known is infinite.
    #[inline(always)]
    pub fn inputs(&self, now: u32, window: u32, inputs: &mut Vec<f32>) {
        let age = self.age(now);
        inputs.push(age as f32);
        let (mut sum, mut within) = (0_u64, 0.0);
        for back in 1..=DISTANCES {
            if back > usize::from(self.count) {
                inputs.push(f32::INFINITY);
                continue;
            }
            let place = (usize::from(self.next) + DISTANCES - back) % DISTANCES;
            let distance = self.distances[place];
            sum += u64::from(distance);
            within += if sum < u64::from(window) { 1.0 } else { 0.0 };
            inputs.push(distance as f32);
        }
        inputs.push(within);
        for (number, counter) in self.counters.iter().enumerate() {
            inputs.push(counter * decay(age, number));
        }
    }
}

/// One half to the number of whole half-lives of a counter.
#[inline(always)]
fn decay(accesses: u32, counter: usize) -> f32 {
    let halvings = accesses >> (FIRST_HALF_LIFE_LOG2 + counter as u32);
    if halvings > 126 { 0.0 } else { f32::from_bits((127 - halvings) << 23) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Used at 100, 1200 and 4000, asked at 4100 with a window of 3000: age 100; distances 2800 and
    /// 1100, of which the first is within. The first counter: 1 halved once by 1100, and 1; halved
    /// twice by 2800, and 1: 1.375. The second: 2, halved once, and 1: 2. The third: 3.
    #[test]
    fn inputs_by_hand() {
        let mut block = BlockHistory::first(100);
        block.use_now(1200);
        block.use_now(4000);
        let mut inputs = Vec::new();
        block.inputs(4100, 3000, &mut inputs);
        assert_eq!(inputs.len(), INPUTS);
        assert_eq!(inputs[..4], [100.0, 2800.0, 1100.0, f32::INFINITY]);
        assert_eq!(inputs[1 + DISTANCES..][..4], [1.0, 1.375, 2.0, 3.0]);
        (0..40).for_each(|step| block.use_now(4000 + 10 * (step + 1)));
        inputs.clear();
        block.inputs(4400, 3000, &mut inputs);
        assert_eq!(inputs[..DISTANCES + 2], [&[0.0][..], &[10.0; DISTANCES], &[31.0]].concat());
    }
}
