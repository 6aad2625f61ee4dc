//! The `[device.cache]`, `[device.backing]`, `[device.ssd]` and `[machine]` tables.
//!
//! For: which devices a timed replay runs on and how plans are carried out on them. Must never
//! know: how a device works; its parameters are checked by its own table. Without these tables a
//! replay has no devices, and answers in hits.

use super::store;
use super::{FlashSpec, TenantSpec, layout};
use cachewright_device::ssd::params::FillMethod;
use cachewright_device::ssd::{Ssd, SsdParams, preset};
use cachewright_device::store::StoreSettings;
use cachewright_device::{AnyDevice, ArraySettings, Device, Striped, model};
use cachewright_stack::{Machine, Reader, Rest};
use cachewright_system::ssd::DataCacheParams;
use cachewright_system::timed::MachineSettings;
use cachewright_system::timed::settings::ReadAhead;
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Seed, SettingError, Value, choices, declare};

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

/// The kind that is one drive with a data cache.
const SSD: &str = "ssd";

impl DeviceSpec {
    /// The table of that role in `[device]`, which must be there; `own` are keys that are not the
    /// device's.
    fn read(
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
    fn checked(self) -> Result<DeviceSpec, String> {
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
        let one = || found.build(&self.pairs).map_err(|error| self.refusal(&error.to_string()));
        if self.array.count == 1 {
            return one();
        }
        let devices: Result<Vec<AnyDevice>, String> =
            (0..self.array.count).map(|_| one()).collect();
        let striped = Striped::new(devices?, self.array.stripe);
        Ok(Box::new(striped.map_err(|error| self.refusal(&error.to_string()))?))
    }

    /// Every parameter with its value.
    fn resolved(&self) -> Result<Pairs, String> {
        let found = model(&self.model).map_err(|error| error.to_string())?;
        let values = found.resolved(&self.pairs).map_err(|e| self.refusal(&e.to_string()))?;
        let one = self.array.count == 1;
        let array = self.array.values().into_iter().filter(|(name, _)| *name != "stripe" || !one);
        Ok([text("model", &self.model)].into_iter().chain(given(array.chain(values))).collect())
    }

    fn refusal(&self, error: &str) -> String {
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
    /// One drive with a data cache as the whole machine.
    fn one_drive(
        file: &Reader<'_>,
        devices: &Reader<'_>,
        block: Bytes,
    ) -> Result<StackSpec, String> {
        if let Some(role) = ["cache", "backing"].iter().find(|role| devices.get(role).is_some()) {
            return Err(format!(
                "found `[device.{role}]` with `machine.system = \"ssd\"`, expected only \
                 `[device.ssd]`: the drive caches in its own memory"
            ));
        }
        let backing = DeviceSpec::read(devices, "ssd", "device.ssd", &[])?;
        if backing.array.count > 1 {
            let (found, expected) = (backing.array.count, "expected 1: the drive is the machine");
            return Err(format!("`device.ssd.count`: found {found}, {expected}"));
        }
        let params = backing.drive()?;
        if params.page != block {
            return Err(format!(
                "`cache.block`: found `{block}`, expected `{}`, the page of `device.ssd`",
                params.page
            ));
        }
        let (own, machine, axes) = drive_machine(file)?;
        let front = Front::DataCache(axes);
        Ok(StackSpec {
            front,
            backing,
            per_tenant: false,
            system: System::Ssd,
            store: None,
            alone: own.alone,
            machine,
        })
    }

    /// Bytes of a device that holds everything. Errors: it cannot be built.
    pub fn capacity(&self) -> Result<Bytes, String> {
        match &self.front {
            Front::Device(_) => Ok(self.backing.build()?.capacity()),
            Front::DataCache(_) => {
                let params = SsdParams { fill: FillMethod::Empty, ..self.backing.drive()? };
                let drive = Ssd::new(&params, &[], Seed(1));
                let refused = |error: SettingError| self.backing.refusal(&error.to_string());
                Ok(drive.map_err(refused)?.capacity())
            }
        }
    }

    /// A cache device before backing devices.
    fn tiered(
        file: &Reader<'_>,
        devices: &Reader<'_>,
        flash: Option<&FlashSpec>,
    ) -> Result<StackSpec, String> {
        let cache = DeviceSpec::read(devices, "cache", "device.cache", &[])?.checked()?;
        let own = ["per_tenant"];
        let backing = DeviceSpec::read(devices, "backing", "device.backing", &own)?.checked()?;
        let per_tenant = match devices.table("backing")?.get("per_tenant") {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                let expected = "expected true or false";
                return Err(format!("`device.backing.per_tenant`: found `{other}`, {expected}"));
            }
        };
        let (own, machine, store) = machine(file, flash)?;
        let front = Front::Device(cache);
        let (system, alone) = (own.system, own.alone);
        Ok(StackSpec { front, backing, per_tenant, system, store, alone, machine })
    }
}

/// Keys and values of a table.
type Pairs = Vec<(String, Value)>;

fn text(key: &str, value: &str) -> (String, Value) {
    (key.to_owned(), Value::Text(value.to_owned()))
}

/// The values that are there.
fn given(
    values: impl IntoIterator<Item = (&'static str, Option<Value>)>,
) -> impl Iterator<Item = (String, Value)> {
    values.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)))
}

impl Machine for StackSpec {
    const TABLES: &'static [&'static str] = &["device", "machine"];

    fn read(file: &Reader<'_>, rest: &Rest<'_>) -> Result<Option<StackSpec>, String> {
        let devices = file.table("device")?;
        if !devices.is_there() {
            return match file.get("machine") {
                None => Ok(None),
                Some(_) => Err("found `[machine]`, expected `[device.cache]` and \
                                `[device.backing]` with it, or `[device.ssd]`"
                    .to_owned()),
            };
        }
        if rest.replay.unit() {
            let expected = "expected `split`, since devices need sizes";
            return Err(format!("`replay.blocks`: found `unit` with devices, {expected}"));
        }
        devices.check_known(&["cache", "backing", "ssd"])?;
        if system(file) == Some(SSD) {
            store::read(SSD, file, file, rest.flash)?;
            return StackSpec::one_drive(file, &devices, rest.cache.block).map(Some);
        }
        if devices.get("ssd").is_some() {
            return Err("found `[device.ssd]`, expected `machine.system = \"ssd\"` with it, or \
                        `[device.cache]` and `[device.backing]` instead"
                .to_owned());
        }
        StackSpec::tiered(file, &devices, rest.flash).map(Some)
    }

    fn check(machine: Option<&StackSpec>, rest: &Rest<'_>, _: &[TenantSpec]) -> Result<(), String> {
        layout::check(&rest.cache.layout, machine)
    }

    fn resolved(&self) -> Result<Vec<(&'static str, Value)>, String> {
        let alone = ("alone".to_owned(), Value::Bool(self.alone));
        let mut machine = vec![text("system", self.system.word()), alone];
        let devices = match &self.front {
            Front::Device(cache) => {
                let mut backing = self.backing.resolved()?;
                backing.push(("per_tenant".to_owned(), Value::Bool(self.per_tenant)));
                let store = self.store.as_ref().map(Declared::values).unwrap_or_default();
                machine.extend(given(self.machine.values().into_iter().chain(store)));
                let cache = Value::Table(cache.resolved()?);
                vec![("cache".to_owned(), cache), ("backing".to_owned(), Value::Table(backing))]
            }
            Front::DataCache(axes) => {
                machine.push(text("layout", self.machine.layout.word()));
                machine.extend(given(axes.values()));
                vec![("ssd".to_owned(), Value::Table(self.backing.resolved()?))]
            }
        };
        Ok(vec![("device", Value::Table(devices)), ("machine", Value::Table(machine))])
    }
}

/// The kind of machine as it stands in the file, checked or not.
fn system<'a>(file: &Reader<'a>) -> Option<&'a str> {
    file.get("machine")?.get("system")?.as_text()
}

/// The keys that are given of those that `T` declares, set over `settings`.
fn set_given<T: Declared>(reader: &Reader<'_>, settings: &mut T) -> Result<(), String> {
    for key in T::keys() {
        if let Some(value) = reader.get(key.name) {
            settings.set(key.name, value).map_err(|error| reader.refusal(&error))?;
        }
    }
    Ok(())
}

fn names<T: Declared>() -> Vec<&'static str> {
    T::keys().iter().map(|key| key.name).collect()
}

/// The `[machine]` table of one drive: its own keys, the layout, and how the drive's cache treats
/// pages.
fn drive_machine(
    file: &Reader<'_>,
) -> Result<(MachineTable, MachineSettings, DataCacheParams), String> {
    let reader = file.table("machine")?;
    let own = [names::<MachineTable>(), vec!["layout"], names::<DataCacheParams>()].concat();
    reader.check_known(&own)?;
    let (mut table, mut settings) = (MachineTable::default(), MachineSettings::default());
    set_given(&reader, &mut table)?;
    if let Some(value) = reader.get("layout") {
        settings.set("layout", value).map_err(|error| reader.refusal(&error))?;
    }
    let mut axes = DataCacheParams::default();
    set_given(&reader, &mut axes)?;
    axes.check().map_err(|error| reader.refusal(&error))?;
    Ok((table, settings, axes))
}

/// The `[machine]` table of other machines: its own keys, the settings, those of a store.
fn machine(
    file: &Reader<'_>,
    flash: Option<&FlashSpec>,
) -> Result<(MachineTable, MachineSettings, Option<StoreSettings>), String> {
    let reader = file.table("machine")?;
    let mut table = MachineTable::default();
    set_given(&reader, &mut table)?;
    let of_store = if table.system == System::FlashStore { store::keys() } else { Vec::new() };
    reader
        .check_known(&[names::<MachineTable>(), names::<MachineSettings>(), of_store].concat())?;
    let mut settings = MachineSettings::default();
    if table.system == System::BufferCache {
        settings.read_ahead = ReadAhead::Linux;
    }
    set_given(&reader, &mut settings)?;
    if settings.dirty_low > settings.dirty_high {
        let (low, high) = (settings.dirty_low, settings.dirty_high);
        let expected = format!("expected at most `machine.dirty_high`, {high}");
        return Err(format!("`machine.dirty_low`: found {low}, {expected}"));
    }
    let store = store::read(table.system.word(), file, &reader, flash)?;
    Ok((table, settings, store))
}
