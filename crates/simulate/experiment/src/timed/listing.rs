//! What can stand in `[device]` and `[machine]` tables.
//!
//! For: `list devices`. Must never know: any device; the tables of parameters speak for themselves.

use cachewright_device::store::StoreSettings;
use cachewright_device::{ArraySettings, MODELS};
use cachewright_result::registry::{SchemeEntry, SettingEntry};
use cachewright_system::machines::MachineSettings;
use cachewright_types::Key;
use cachewright_types::declare::Declared;

/// Every device model with its parameters, and those of arrays, of `[machine]` and of stores as
/// entries of their own.
pub fn devices() -> Vec<SchemeEntry> {
    let models = MODELS.iter().map(|model| {
        // A preset's own values stand where the defaults of its kind would.
        let values = model.resolved(&[]).unwrap_or_default();
        let own = |name: &str| {
            let found = values.iter().find(|(key, _)| *key == name);
            found.and_then(|(_, value)| value.as_ref()).map(ToString::to_string)
        };
        let settings = model.keys().iter().map(|entry| setting(entry, own(entry.name))).collect();
        device(model.name, model.doc, model.source, settings)
    });
    let array = table(
        "array",
        "several devices as one: in the table of a device, beside its parameters",
        ArraySettings::keys(),
    );
    let machine = table(
        "machine",
        "how plans are carried out: the table `[machine]`, not a device",
        MachineSettings::keys(),
    );
    let log = table(
        "log",
        "how a log is kept on the backing device: in `[machine]` of a `flash-store`",
        StoreSettings::keys(),
    );
    models.chain([array, machine, log]).collect()
}

/// An entry that is no device.
fn table(name: &str, doc: &str, entries: Vec<Key>) -> SchemeEntry {
    device(name, doc, "", entries.iter().map(|entry| setting(entry, None)).collect())
}

fn device(name: &str, doc: &str, source: &str, settings: Vec<SettingEntry>) -> SchemeEntry {
    let [name, doc, source] = [name, doc, source].map(str::to_owned);
    SchemeEntry { name, doc, source, needs: Vec::new(), settings }
}

/// What a list says of a key; `value` stands for its default where it is another one.
pub fn setting(entry: &Key, value: Option<String>) -> SettingEntry {
    let default = value.unwrap_or_else(|| entry.default_text());
    SettingEntry {
        name: entry.name.to_owned(),
        doc: entry.doc.to_owned(),
        unit: entry.unit.to_owned(),
        default: default.trim_matches('"').to_owned(),
        accepted: entry.accepted.clone(),
        source: entry.source.to_owned(),
    }
}
