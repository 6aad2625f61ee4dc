//! How often longer each request takes on its backing device than on the cache device.
//!
//! For: the benefit of caching a block (RC-RNN, equation 3). Must never know: who weighs it. Both
//! devices serve the whole trace alone, one request at a time; the log of a `flash-store` is left
//! out, its requests go to the device below.

use super::backing_of;
use crate::ExperimentError;
use crate::case::Case;
use crate::progress::Progress;
use crate::spec::Front;
use crate::workload::Workload;
use cachewright_device::AnyDevice;
use cachewright_system::RecordError;
use cachewright_system::machines::service::{ratios, service_times};

impl Workload<'_> {
    /// One ratio per request of the recording. Errors: a device that cannot be built, cancelled.
    pub(crate) fn ratios(&self, case: &Case) -> Result<Vec<f32>, ExperimentError> {
        let Some(stack) = &case.spec.stack else { return Ok(Vec::new()) };
        let Front::Device(cache) = &stack.front else { return Ok(Vec::new()) };
        let refuse = |message| case.refuse(message);
        let tenants = self.recording.totals.len();
        let backing = backing_of(stack, tenants).into_iter().map(|number| number - 1);
        let backing: Vec<usize> = backing.collect();
        let count = backing.iter().max().map_or(0, |last| last + 1);
        let disks: Result<Vec<AnyDevice>, String> =
            (0..count).map(|_| stack.backing.build()).collect();
        let slow = self.served(disks.map_err(refuse)?, &backing)?;
        let fast = self.served(vec![cache.build().map_err(refuse)?], &vec![0; tenants])?;
        Ok(ratios(&self.placed()?.requests, &slow, &fast))
    }

    fn served(
        &self,
        devices: Vec<AnyDevice>,
        device_of: &[usize],
    ) -> Result<Vec<u64>, ExperimentError> {
        let requests = &self.placed()?.requests;
        let total = Some(requests.len() as u64);
        let mut tell =
            |done| (self.progress)(Progress { stage: "measuring service times", done, total });
        service_times(requests, devices, device_of, &mut tell).map_err(|error| match error {
            RecordError::Cancelled => ExperimentError::Cancelled,
            other => other.into(),
        })
    }
}
