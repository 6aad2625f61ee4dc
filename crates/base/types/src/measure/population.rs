//! How many are inside something over time.
//!
//! For: utilisation, mean queue length, and Little's law as a check of a simulation. Must never
//! know: what is inside. Units: nanoseconds.

/// Those inside, and the integral of their number over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Population {
    inside: u64,
    max: u64,
    entered: u64,
    since_ns: u64,
    inside_ns: u128,
    busy_ns: u64,
}

impl Population {
    /// Lets time pass until `now_ns`, which never goes back.
    fn pass(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.since_ns);
        self.inside_ns += u128::from(passed_ns) * u128::from(self.inside);
        if self.inside > 0 {
            self.busy_ns += passed_ns;
        }
        self.since_ns = self.since_ns.max(now_ns);
    }

    /// One enters.
    pub fn enter(&mut self, now_ns: u64) {
        self.pass(now_ns);
        self.inside += 1;
        self.entered += 1;
        self.max = self.max.max(self.inside);
    }

    /// One leaves.
    pub fn leave(&mut self, now_ns: u64) {
        self.pass(now_ns);
        self.inside = self.inside.saturating_sub(1);
    }

    /// Those inside now.
    pub fn inside(&self) -> u64 {
        self.inside
    }

    /// The most that were inside at once.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// All that ever entered.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// Time with at least one request inside.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// The integral of the number inside over time: by Little's law the sum of all stays, once
    /// everybody has left.
    pub fn inside_ns(&self) -> u128 {
        self.inside_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integral_is_the_sum_of_the_stays() {
        let mut population = Population::default();
        population.enter(10);
        population.enter(20);
        population.leave(25);
        population.leave(40);
        population.enter(100);
        population.leave(101);
        assert_eq!(population.inside_ns(), (15 + 20 + 1));
        assert_eq!((population.busy_ns(), population.max(), population.entered()), (31, 2, 3));
        assert_eq!(population.inside(), 0);
    }
}
