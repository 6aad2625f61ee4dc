//! Tenants' miss-ratio curves averaged over intervals.
//!
//! For: partitioners that read curves and must not follow noise. Must never know: how the averages
//! are used. Units: blocks, misses; the average is exponential.

use crate::TenantView;
use cachewright_curve::Curve;

/// Knots kept of each interval's curve when it is averaged.
pub const KNOTS: usize = 512;

/// One averaged curve per tenant; nothing before its first.
#[derive(Clone, Debug, Default)]
pub struct Averages {
    curves: Vec<Option<Curve>>,
}

impl Averages {
    /// Adds the curves of the last interval to the averages. Earlier intervals count for
    /// `share_of_past` (0 to 1), except those before a tenant's first access. The average of an
    /// idle tenant fades. If all tenants are idle, nothing changes.
    pub fn learn(&mut self, tenants: &[TenantView], share_of_past: f64) {
        self.curves.resize(tenants.len(), None);
        if tenants.iter().all(|tenant| tenant.accesses == 0) && self.all().is_some() {
            return;
        }
        for (average, tenant) in self.curves.iter_mut().zip(tenants) {
            let Some(curve) = tenant.signals.curves.map(|curves| &curves.all) else { continue };
            *average = Some(match average {
                Some(past) if past.accesses() > 0 => curve.blended(past, share_of_past, KNOTS),
                _ => curve.resampled(KNOTS),
            });
        }
    }

    /// All curves, once every tenant has one.
    pub fn all(&self) -> Option<Vec<&Curve>> {
        self.curves.iter().map(Option::as_ref).collect()
    }
}
