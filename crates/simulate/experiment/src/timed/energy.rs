//! The energy of a timed replay, as the result file has it.
//!
//! For: devices whose power or energies are given. Must never know: how a device spends it. Units:
//! joules, watts; a request of a device is a command to it, one of all devices together is a
//! tenant's.

use cachewright_device::Use;
use cachewright_system::timed::{DeviceUse, Times};
use cachewright_types::Op;
use serde_json::{Map, Value, json};

/// Commands and bytes that a device read and wrote.
fn done(used: &Use) -> (u64, u64) {
    let both = |counts: &[u64; 4]| counts[Op::Read as usize] + counts[Op::Write as usize];
    (both(&used.commands), both(&used.bytes))
}

/// What a device spent by part, if it is known.
pub(super) fn energy_json(device: &DeviceUse, end_ns: u64) -> Option<Value> {
    let joules = device.energy.joules()?;
    let parts = device.energy.parts().iter();
    let parts: Map<String, Value> =
        parts.map(|(part, joules)| ((*part).to_owned(), (*joules).into())).collect();
    let mut found = per(joules, end_ns, done(&device.used));
    found["parts"] = parts.into();
    Some(found)
}

/// Joules as a power, and over what they were spent for; nothing where that is nothing.
fn per(joules: f64, end_ns: u64, (requests, bytes): (u64, u64)) -> Value {
    let each = |amount: f64| (amount > 0.0).then(|| joules / amount);
    json!({
        "joules": joules,
        "watts": each(end_ns as f64 / 1e9),
        "joules_per_request": each(requests as f64),
        "joules_per_gib": each(bytes as f64 / f64::from(1 << 30)),
    })
}

/// What all devices spent whose power is known, over the requests of all tenants; how many devices
/// are not known is said.
pub(super) fn whole_energy(times: &Times) -> Option<Value> {
    let devices: Vec<&DeviceUse> = times.devices.iter().flat_map(DeviceUse::leaves).collect();
    let known: Vec<f64> = devices.iter().filter_map(|device| device.energy.joules()).collect();
    if known.is_empty() {
        return None;
    }
    let total = times.total();
    let done = (total.responses().count(), total.bytes);
    let mut found = per(known.iter().sum(), times.end_ns, done);
    found["unknown_devices"] = (devices.len() - known.len()).into();
    Some(found)
}
