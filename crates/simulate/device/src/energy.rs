//! The energy of a device: joules by what they were spent on.
//!
//! For: adding up powers over time and energies of operations. Must never know: which device.
//! Units: joules, watts, nanoseconds. A rate of 0 is one that is not given: its part is left out,
//! and a device without any rate has no energy.

/// Joules by part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Energy {
    parts: Vec<(&'static str, f64)>,
}

impl Energy {
    /// Adds a part that draws so many watts for so long.
    pub fn draw(&mut self, part: &'static str, watts: f64, time_ns: u64) {
        self.add(part, watts, time_ns as f64 / 1e9);
    }

    /// Adds a part made of operations of so many joules each.
    pub fn spend(&mut self, part: &'static str, joules_each: f64, operations: u64) {
        self.add(part, joules_each, operations as f64);
    }

    fn add(&mut self, part: &'static str, rate: f64, amount: f64) {
        if rate > 0.0 {
            self.parts.push((part, rate * amount));
        }
    }

    /// The parts whose rates are given, in the order they were added.
    pub fn parts(&self) -> &[(&'static str, f64)] {
        &self.parts
    }

    /// The sum of all parts; nothing where no rate is given.
    pub fn joules(&self) -> Option<f64> {
        let sum = self.parts.iter().map(|(_, joules)| joules).sum();
        (!self.parts.is_empty()).then_some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_without_a_rate_are_left_out() {
        let mut energy = Energy::default();
        energy.draw("idle", 0.0, 1_000_000_000);
        assert_eq!((energy.parts(), energy.joules()), (&[][..], None));
        energy.draw("idle", 7.0, 1_500_000_000);
        energy.spend("reads", 50e-6, 0);
        energy.spend("writes", 0.25, 3);
        assert_eq!(energy.parts(), [("idle", 10.5), ("reads", 0.0), ("writes", 0.75)]);
        assert_eq!(energy.joules(), Some(11.25));
    }
}
