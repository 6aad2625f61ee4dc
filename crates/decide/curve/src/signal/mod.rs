//! Signals of an interval that partitioners read besides counts of accesses and hits; their meters
//! cost O(1) per access. A new signal is a field in each of the three structs.

pub mod response_times;
pub mod reuse;
pub mod steps;

use crate::Curves;
pub use response_times::{Price, Prices, ResponseClasses};
pub use reuse::{BINS, ReuseMeter};
pub use steps::{FEATURES, StepCounts, StepMeter};

/// Which signals are measured in each interval; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalSet {
    /// Miss curves.
    pub curves: bool,
    /// Features of each step.
    pub steps: bool,
    /// Reuse distances of writes.
    pub reuse: bool,
    /// Response times of hits and misses.
    pub prices: bool,
}

/// Measurements of one interval. Each list has an entry per tenant; the list of a signal that is
/// not measured is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signals {
    /// Misses by cache size.
    pub curves: Vec<Curves>,
    /// Features of each step, the earliest first.
    pub steps: Vec<Vec<StepCounts>>,
    /// Writes by reuse distance.
    pub reuse: Vec<[u32; BINS]>,
    /// Response times of hits and misses.
    pub prices: Vec<Prices>,
}

/// The signals of one tenant in one interval; nothing for a signal that is not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TenantSignals<'a> {
    /// Misses by cache size, of all accesses and of reads and writes apart.
    pub curves: Option<&'a Curves>,
    /// Features of each step, the earliest first; fewer steps at the start of a run.
    pub steps: Option<&'a [StepCounts]>,
    /// Writes by reuse distance.
    pub reuse: Option<&'a [u32; BINS]>,
    /// Response times of hits and misses.
    pub prices: Option<&'a Prices>,
}

impl SignalSet {
    /// No signal.
    pub const NONE: SignalSet =
        SignalSet { curves: false, steps: false, reuse: false, prices: false };

    /// The signals of both sets.
    #[must_use]
    pub fn union(self, other: SignalSet) -> SignalSet {
        SignalSet {
            curves: self.curves || other.curves,
            steps: self.steps || other.steps,
            reuse: self.reuse || other.reuse,
            prices: self.prices || other.prices,
        }
    }
}

impl Signals {
    /// The signals of one tenant.
    pub fn of_tenant(&self, tenant: usize) -> TenantSignals<'_> {
        TenantSignals {
            curves: self.curves.get(tenant),
            steps: self.steps.get(tenant).map(Vec::as_slice),
            reuse: self.reuse.get(tenant),
            prices: self.prices.get(tenant),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_not_measured_is_absent() {
        let reuse = vec![[0; BINS], [7; BINS]];
        let signals = Signals { reuse, ..Signals::default() };
        let second = TenantSignals { reuse: Some(&[7; BINS]), ..TenantSignals::default() };
        assert_eq!(signals.of_tenant(1), second);
        assert_eq!(signals.of_tenant(2), TenantSignals::default());
        let (steps, reuse) = (
            SignalSet { steps: true, ..SignalSet::NONE },
            SignalSet { reuse: true, ..SignalSet::NONE },
        );
        assert_eq!(steps.union(reuse), SignalSet { steps: true, reuse: true, ..SignalSet::NONE });
    }
}
