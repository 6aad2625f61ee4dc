//! The energy of a timed replay, as the result file has it.
//!
//! For: devices whose power or energies are given. Must never know: how a device spends it. Units:
//! joules, watts; a request of a device is a command to it, one of all devices together is a
//! tenant's.

use cachewright_device::{DeviceUse, Use};
use cachewright_result::energy::{DeviceEnergy, EnergyRates, TotalEnergy};
use cachewright_system::event_loop::Times;
use cachewright_types::Op;

/// Commands and bytes that a device read and wrote.
fn done(used: &Use) -> (u64, u64) {
    let both = |counts: &[u64; 4]| counts[Op::Read as usize] + counts[Op::Write as usize];
    (both(&used.commands), both(&used.bytes))
}

/// What a device spent by part, if it is known.
pub(super) fn device_energy(device: &DeviceUse, end_ns: u64) -> Option<DeviceEnergy> {
    let joules = device.report.energy.joules()?;
    let rates = rates(joules, end_ns, done(&device.used));
    Some(DeviceEnergy { rates, parts: device.report.energy.parts().iter().copied().collect() })
}

/// Joules as a power, and over what they were spent for; nothing where that is nothing.
fn rates(joules: f64, end_ns: u64, (requests, bytes): (u64, u64)) -> EnergyRates {
    let each = |amount: f64| (amount > 0.0).then(|| joules / amount);
    EnergyRates {
        joules,
        watts: each(end_ns as f64 / 1e9),
        joules_per_request: each(requests as f64),
        joules_per_gib: each(bytes as f64 / f64::from(1 << 30)),
    }
}

/// What all devices spent whose power is known, over the requests of all tenants; how many devices
/// are not known is said.
pub(super) fn total_energy(times: &Times) -> Option<TotalEnergy> {
    let devices: Vec<&DeviceUse> = times.devices.iter().flat_map(DeviceUse::leaves).collect();
    let known: Vec<f64> =
        devices.iter().filter_map(|device| device.report.energy.joules()).collect();
    if known.is_empty() {
        return None;
    }
    let total = times.total();
    let done = (total.responses().count(), total.bytes);
    let rates = rates(known.iter().sum(), times.end_ns, done);
    Some(TotalEnergy { rates, unknown_devices: devices.len() - known.len() })
}
