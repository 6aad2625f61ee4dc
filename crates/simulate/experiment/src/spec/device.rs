//! The devices of a stack: the `[device.cache]`, `[device.backing]` and `[device.ssd]` tables, and
//! what can stand in them.

use cachewright_device::ssd::drive::layout_of;
use cachewright_device::ssd::{SsdParams, preset};
use cachewright_device::store::StoreSettings;
use cachewright_device::{AnyDevice, ArraySettings, MODELS, Striped, model};
use cachewright_result::registry::{SchemeEntry, SettingEntry};
use cachewright_stack::Reader;
use cachewright_system::machines::MachineSettings;
use cachewright_system::ssd::DataCacheParams;
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Key, SettingError, Value, choices, declare};

/// A device by its model.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSpec {
    /// The table's key, for messages.
    key: &'static str,
    /// The registered name.
    pub model: String,
    /// Parameters given; the others keep the model's.
    pub pairs: Vec<(String, Value)>,
    /// How many of them are used as one.
    pub array: ArraySettings,
}

/// The devices of a stack and how plans are carried out on them.
#[derive(Clone, Debug, PartialEq)]
pub struct StackSpec {
    /// Holds cached blocks.
    pub front: Front,
    /// Holds everything.
    pub backing: DeviceSpec,
    /// Each tenant has a backing device of its own.
    pub per_tenant: bool,
    /// The kind of machine.
    pub system: System,
    /// How the log is kept on the backing devices, in a `flash-store`.
    pub store: Option<StoreSettings>,
    /// Replay each tenant alone too, for slowdowns.
    pub alone: bool,
    /// How plans are carried out.
    pub machine: MachineSettings,
}

/// What holds cached blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum Front {
    /// A device before the backing devices.
    Device(DeviceSpec),
    /// The data cache of the drive that holds everything: how it treats pages.
    DataCache(DataCacheParams),
}

choices! {
    /// The kinds of machine.
    pub enum System {
        /// A cache device before backing devices.
        Tiered = "tiered",
        /// The same, which reads ahead.
        BufferCache = "buffer-cache",
        /// One drive with a data cache.
        Ssd = "ssd",
        /// A cache device before a log on a backing device.
        FlashStore = "flash-store",
    }
}

declare! {
    /// The keys of `[machine]` that every kind has.
    pub struct MachineTable {
        /// the kind of machine
        system: System = System::Tiered, "word";
        /// replay each tenant alone too, for slowdowns
        alone: bool = false, "";
    }
}

impl DeviceSpec {
    /// The table of that role in `[device]`, which must be there; `own` are keys that are not the
    /// device's.
    pub(super) fn read(
        devices: &Reader<'_>,
        role: &'static str,
        key: &'static str,
        own: &[&str],
    ) -> Result<DeviceSpec, String> {
        let reader = devices.table(role)?;
        if !reader.is_there() {
            return Err(format!("found no `[{key}]` table, expected one with a `model`"));
        }
        let Some(model) = reader.get("model").and_then(Value::as_text) else {
            return Err(format!("found no `{key}.model`, expected the name of a device"));
        };
        let (mut pairs, mut array) = (Vec::new(), ArraySettings::default());
        let of_array: Vec<&str> = ArraySettings::keys().iter().map(|entry| entry.name).collect();
        let known = |name: &str| name == "model" || own.contains(&name);
        for (name, value) in reader.pairs().iter().filter(|(name, _)| !known(name)) {
            if of_array.contains(&name.as_str()) {
                array.set(name, value).map_err(|error| reader.refusal(&error))?;
            } else {
                pairs.push((name.clone(), value.clone()));
            }
        }
        if reader.get("stripe").is_some() && array.count == 1 {
            let (found, expected) = (array.stripe, format!("`{key}.count` of 2 or more with it"));
            return Err(format!(
                "`{key}.stripe`: found {found} for one device, expected {expected}"
            ));
        }
        Ok(DeviceSpec { key, model: model.to_owned(), pairs, array })
    }

    /// Checked by building it.
    pub(super) fn checked(self) -> Result<DeviceSpec, String> {
        self.build()?;
        Ok(self)
    }

    /// The parameters of a drive. Errors: no such drive, or a parameter is refused.
    pub fn drive(&self) -> Result<SsdParams, String> {
        let found = preset(&self.model).map_err(|error| {
            let (key, expected) = (self.key, error.expected);
            format!("`{key}.model`: found `{}`, expected {expected}", self.model)
        })?;
        found.params(&self.pairs).map_err(|error| self.refusal(&error.to_string()))
    }

    /// The device, or several as one, idle. Errors: no such model, or a parameter is refused.
    pub fn build(&self) -> Result<AnyDevice, String> {
        let found = model(&self.model).map_err(|error| format!("`{}.model`: {error}", self.key))?;
        let member = || found.build(&self.pairs).map_err(|error| self.refusal(&error.to_string()));
        if self.array.count == 1 {
            return member();
        }
        let devices: Result<Vec<AnyDevice>, String> =
            (0..self.array.count).map(|_| member()).collect();
        let striped = Striped::new(devices?, self.array.stripe);
        Ok(Box::new(striped.map_err(|error| self.refusal(&error.to_string()))?))
    }

    /// Every parameter with its value.
    pub(super) fn resolved(&self) -> Result<GivenPairs, String> {
        let found = model(&self.model).map_err(|error| error.to_string())?;
        let values = found.resolved(&self.pairs).map_err(|e| self.refusal(&e.to_string()))?;
        let single = self.array.count == 1;
        let array =
            self.array.values().into_iter().filter(|(name, _)| *name != "stripe" || !single);
        Ok([text("model", &self.model)].into_iter().chain(given(array.chain(values))).collect())
    }

    pub(super) fn refusal(&self, error: &str) -> String {
        refusal(self.key, error)
    }
}

/// A refusal that begins with a parameter's name, under the full key.
fn refusal(key: &str, error: &str) -> String {
    match error.strip_prefix('`') {
        Some(rest) => format!("`{key}.{rest}"),
        None => format!("`{key}`: {error}"),
    }
}

impl StackSpec {
    /// Bytes of a device that holds everything. Errors: it cannot be built.
    pub fn capacity(&self) -> Result<Bytes, String> {
        match &self.front {
            Front::Device(_) => Ok(self.backing.build()?.capacity()),
            Front::DataCache(_) => {
                let layout = layout_of(&self.backing.drive()?);
                let refused = |error: SettingError| self.backing.refusal(&error.to_string());
                Ok(layout.map_err(refused)?.capacity())
            }
        }
    }
}

/// Keys and values of a table.
pub(super) type GivenPairs = Vec<(String, Value)>;

pub(super) fn text(key: &str, value: &str) -> (String, Value) {
    (key.to_owned(), Value::Text(value.to_owned()))
}

/// The values that are there.
pub(super) fn given(
    values: impl IntoIterator<Item = (&'static str, Option<Value>)>,
) -> impl Iterator<Item = (String, Value)> {
    values.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)))
}

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
