//! What can stand in `[device]` and `[machine]` tables.
//!
//! For: `list devices`. Must never know: any device; the tables of parameters speak for themselves.

use cachewright_device::store::StoreSettings;
use cachewright_device::{ArraySettings, MODELS};
use cachewright_system::timed::MachineSettings;
use cachewright_types::Key;
use cachewright_types::declare::Declared;
use serde_json::{Value, json};

/// Every device model with its parameters, and those of arrays, of `[machine]` and of stores as
/// entries of their own.
pub fn devices() -> Value {
    let models = MODELS.iter().map(|model| {
        // A preset's own values stand where the defaults of its kind would.
        let values = model.resolved(&[]).unwrap_or_default();
        let own = |name: &str| {
            let found = values.iter().find(|(key, _)| *key == name);
            found.and_then(|(_, value)| value.as_ref()).map(|value| value.to_string())
        };
        let settings: Vec<Value> =
            model.keys().iter().map(|entry| setting(entry, own(entry.name))).collect();
        json!({"name": model.name, "doc": model.doc, "source": model.source, "needs": [],
               "settings": settings})
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
fn table(name: &str, doc: &str, entries: Vec<Key>) -> Value {
    let settings: Vec<Value> = entries.iter().map(|entry| setting(entry, None)).collect();
    json!({"name": name, "doc": doc, "source": "", "needs": [], "settings": settings})
}

fn setting(entry: &Key, value: Option<String>) -> Value {
    let default = value.unwrap_or_else(|| entry.default_text());
    json!({
        "name": entry.name,
        "doc": entry.doc,
        "unit": entry.unit,
        "default": default.trim_matches('"'),
        "accepted": entry.accepted,
        "source": entry.source,
    })
}
