//! What can stand in `[device]` and `[machine]` tables.
//!
//! For: `list devices`. Must never know: any device; the tables of parameters speak for themselves.

use cachewright_device::parameters::{Parameter, Parameters};
use cachewright_device::store::StoreSettings;
use cachewright_device::{ArraySettings, MODELS};
use cachewright_result::registry::{DeviceEntry, DeviceSetting};
use cachewright_system::timed::MachineSettings;

/// Every device model with its parameters, and those of arrays, of `[machine]` and of stores as
/// entries of their own.
pub fn devices() -> Vec<DeviceEntry> {
    let models = MODELS.iter().map(|model| {
        // A preset's own values stand where the defaults of its kind would.
        let values = model.resolved(&[]).unwrap_or_default();
        let own = |name: &str| {
            values.iter().find(|(key, _)| *key == name).map(|(_, text)| text.to_string())
        };
        let settings = model.table().iter().map(|entry| setting(entry, own(entry.name))).collect();
        device(model.name, model.doc, model.source, settings)
    });
    let array = table(
        "array",
        "several devices as one: in the table of a device, beside its parameters",
        ArraySettings::table(),
    );
    let machine = table(
        "machine",
        "how plans are carried out: the table `[machine]`, not a device",
        MachineSettings::table(),
    );
    let log = table(
        "log",
        "how a log is kept on the backing device: in `[machine]` of a `flash-store`",
        StoreSettings::table(),
    );
    models.chain([array, machine, log]).collect()
}

/// An entry that is no device.
fn table(name: &str, doc: &str, entries: Vec<Parameter>) -> DeviceEntry {
    device(name, doc, "", entries.iter().map(|entry| setting(entry, None)).collect())
}

fn device(name: &str, doc: &str, source: &str, settings: Vec<DeviceSetting>) -> DeviceEntry {
    let [name, doc, source] = [name, doc, source].map(str::to_owned);
    DeviceEntry { name, doc, source, needs: Vec::new(), settings }
}

fn setting(entry: &Parameter, value: Option<String>) -> DeviceSetting {
    let default = value.unwrap_or_else(|| entry.default.clone());
    DeviceSetting {
        name: entry.name.to_owned(),
        doc: entry.doc.to_owned(),
        unit: entry.unit.to_owned(),
        default: default.trim_matches('"').to_owned(),
        accepted: entry.accepted.clone(),
        source: entry.source.to_owned(),
    }
}
