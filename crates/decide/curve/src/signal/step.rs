//! Features of a tenant's requests in one step of time.
//!
//! For: inputs of models that predict a tenant's demand. Must never know: models, normalisation.
//! Units: requests of at most a page each, as a drive splits them. Source: Li, Sun, Qin, iCache
//! (TCAD 2025), section IV-B, whose step is a second.

/// The features of a step, in their order.
pub const FEATURES: [&str; 4] = ["intensity", "write_ratio", "request_bytes", "unique_ratio"];

/// The requests of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCounts {
    /// Requests.
    pub requests: u32,
    /// Requests that write.
    pub writes: u32,
    /// Bytes read and written.
    pub bytes: u64,
    /// Pages with exactly one request.
    pub unique: u32,
}

impl StepCounts {
    /// The features, named by [`FEATURES`]: requests, share of writes, mean bytes, share of pages
    /// with one request. All are 0 in a step without requests.
    pub fn features(&self) -> [f32; FEATURES.len()] {
        if self.requests == 0 {
            return [0.0; FEATURES.len()];
        }
        let per_request = |sum: f64| (sum / f64::from(self.requests)) as f32;
        [
            self.requests as f32,
            per_request(f64::from(self.writes)),
            per_request(self.bytes as f64),
            per_request(f64::from(self.unique)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_requests_and_idle_steps_are_zero() {
        let step = StepCounts { requests: 8, writes: 2, bytes: 16 << 10, unique: 4 };
        assert_eq!(step.features(), [8.0, 0.25, 2048.0, 0.5]);
        assert_eq!(StepCounts::default().features(), [0.0; 4]);
    }
}
