//! The `[device.cache]`, `[device.backing]`, `[device.ssd]` and `[machine]` tables.
//!
//! For: which devices a timed replay runs on and how plans are carried out on them. Must never
//! know: how a device works; its parameters are checked by its own table. Without these tables a
//! replay has no devices, and answers in hits.

use super::section::{Section, setting};
use super::store::{self, FLASH_STORE};
use super::{FlashSpec, ReplaySpec, overrides};
use cachewright_device::parameters::Parameters;
use cachewright_device::ssd::params::Fill;
use cachewright_device::ssd::{Ssd, SsdParams, preset};
use cachewright_device::store::StoreSettings;
use cachewright_device::{AnyDevice, ArraySettings, Device, Striped, model};
use cachewright_system::ssd::DataCacheParams;
use cachewright_system::timed::MachineSettings;
use cachewright_types::{Bytes, Seed, SettingError, Value};
use serde_json::{Map, json};

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
    /// The kind of machine: `tiered`, `buffer-cache`, which reads ahead, `ssd` or `flash-store`.
    pub system: &'static str,
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

/// The kinds of machine.
const SYSTEMS: [&str; 4] = ["tiered", "buffer-cache", SSD, FLASH_STORE];
/// The kind that is one drive with a data cache.
const SSD: &str = "ssd";

impl DeviceSpec {
    /// The table of that role in `[device]`, which must be there; `own` are keys that are not the
    /// device's.
    fn from_section(
        devices: &Section<'_>,
        role: &'static str,
        key: &'static str,
        own: &[&str],
    ) -> Result<DeviceSpec, String> {
        let Some(toml::Value::Table(table)) = devices.get(role) else {
            return Err(format!("found no `[{key}]` table, expected one with a `model`"));
        };
        let Some(model) = table.get("model").and_then(toml::Value::as_str) else {
            return Err(format!("found no `{key}.model`, expected the name of a device"));
        };
        let (mut pairs, mut array) = (Vec::new(), ArraySettings::default());
        let of_array: Vec<&str> = ArraySettings::table().iter().map(|entry| entry.name).collect();
        let known = |name: &str| name == "model" || own.contains(&name);
        for (name, value) in table.iter().filter(|(name, _)| !known(name)) {
            let value = setting(value).ok_or_else(|| {
                format!("`{key}.{name}`: found `{value}`, expected a number, true, false or text")
            })?;
            if of_array.contains(&name.as_str()) {
                array.set(name, &value).map_err(|error| refusal(key, &error.to_string()))?;
            } else {
                pairs.push((name.clone(), value));
            }
        }
        if table.contains_key("stripe") && array.count == 1 {
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
    fn resolved(&self) -> Result<Map<String, serde_json::Value>, String> {
        let found = model(&self.model).map_err(|error| error.to_string())?;
        let values = found.resolved(&self.pairs).map_err(|e| self.refusal(&e.to_string()))?;
        let mut map = Map::new();
        map.insert("model".to_owned(), self.model.clone().into());
        let one = self.array.count == 1;
        let array = self.array.values().into_iter().filter(|(name, _)| *name != "stripe" || !one);
        let all = array.chain(values);
        map.extend(all.map(|(name, text)| (name.to_owned(), json_of(&text))));
        Ok(map)
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
    /// The tables, if the file has them.
    pub(super) fn from_section(
        top: &Section<'_>,
        replay: &ReplaySpec,
        block: Bytes,
        flash: Option<&FlashSpec>,
    ) -> Result<Option<StackSpec>, String> {
        if top.get("device").is_none() {
            return match top.get("machine") {
                None => Ok(None),
                Some(_) => Err("found `[machine]`, expected `[device.cache]` and \
                                `[device.backing]` with it, or `[device.ssd]`"
                    .to_owned()),
            };
        }
        if replay.unit {
            let expected = "expected `split`, since devices need sizes";
            return Err(format!("`replay.blocks`: found `unit` with devices, {expected}"));
        }
        let devices = top.table("device", &["cache", "backing", "ssd"])?;
        if system(top) == Some(SSD) {
            store::from_section(SSD, top, top, flash)?;
            return StackSpec::one_drive(top, &devices, block).map(Some);
        }
        if devices.get("ssd").is_some() {
            return Err("found `[device.ssd]`, expected `machine.system = \"ssd\"` with it, or \
                        `[device.cache]` and `[device.backing]` instead"
                .to_owned());
        }
        let cache = DeviceSpec::from_section(&devices, "cache", "device.cache", &[])?.checked()?;
        let own = ["per_tenant"];
        let backing = DeviceSpec::from_section(&devices, "backing", "device.backing", &own)?;
        let backing = backing.checked()?;
        let per_tenant = match devices.get("backing").and_then(|table| table.get("per_tenant")) {
            None => false,
            Some(toml::Value::Boolean(flag)) => *flag,
            Some(other) => {
                let expected = "expected true or false";
                return Err(format!("`device.backing.per_tenant`: found `{other}`, {expected}"));
            }
        };
        let (system, alone, machine, store) = machine(top, flash)?;
        let front = Front::Device(cache);
        Ok(Some(StackSpec { front, backing, per_tenant, system, store, alone, machine }))
    }

    /// One drive with a data cache as the whole machine.
    fn one_drive(
        top: &Section<'_>,
        devices: &Section<'_>,
        block: Bytes,
    ) -> Result<StackSpec, String> {
        if let Some(role) = ["cache", "backing"].iter().find(|role| devices.get(role).is_some()) {
            return Err(format!(
                "found `[device.{role}]` with `machine.system = \"ssd\"`, expected only \
                 `[device.ssd]`: the drive caches in its own memory"
            ));
        }
        let backing = DeviceSpec::from_section(devices, "ssd", "device.ssd", &[])?;
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
        let (alone, machine, axes) = drive_machine(top)?;
        let front = Front::DataCache(axes);
        Ok(StackSpec {
            front,
            backing,
            per_tenant: false,
            system: SSD,
            store: None,
            alone,
            machine,
        })
    }

    /// Bytes of a device that holds everything. Errors: it cannot be built.
    pub fn capacity(&self) -> Result<Bytes, String> {
        match &self.front {
            Front::Device(_) => Ok(self.backing.build()?.capacity()),
            Front::DataCache(_) => {
                let params = SsdParams { fill: Fill::Empty, ..self.backing.drive()? };
                let drive = Ssd::new(&params, &[], Seed(1));
                let refused = |error: SettingError| self.backing.refusal(&error.to_string());
                Ok(drive.map_err(refused)?.capacity())
            }
        }
    }

    /// The two tables with every default filled in: `device` and `machine`.
    pub(super) fn resolved(&self) -> Result<[serde_json::Value; 2], String> {
        let cache = match &self.front {
            Front::Device(cache) => cache,
            Front::DataCache(axes) => return self.resolved_drive(axes),
        };
        let mut backing = self.backing.resolved()?;
        backing.insert("per_tenant".to_owned(), self.per_tenant.into());
        let mut machine = Map::new();
        machine.insert("system".to_owned(), self.system.into());
        machine.insert("alone".to_owned(), self.alone.into());
        let store = self.store.as_ref().map(Parameters::values).unwrap_or_default();
        for (name, text) in self.machine.values().into_iter().chain(store) {
            machine.insert(name.to_owned(), json_of(&text));
        }
        let devices = json!({"cache": cache.resolved()?, "backing": backing});
        Ok([devices, machine.into()])
    }

    fn resolved_drive(&self, axes: &DataCacheParams) -> Result<[serde_json::Value; 2], String> {
        let mut machine = Map::new();
        machine.insert("system".to_owned(), self.system.into());
        machine.insert("alone".to_owned(), self.alone.into());
        machine.insert("layout".to_owned(), self.machine.layout.word().into());
        let axes = axes.values();
        machine.extend(axes.iter().map(|(name, text)| ((*name).to_owned(), json_of(text))));
        Ok([json!({"ssd": self.backing.resolved()?}), machine.into()])
    }
}

/// The kind of machine as it stands in the file, checked or not.
fn system<'a>(top: &Section<'a>) -> Option<&'a str> {
    top.get("machine")?.get("system")?.as_str()
}

/// The `[machine]` table of one drive: whether tenants run alone too, the layout, and how the
/// drive's cache treats pages.
fn drive_machine(top: &Section<'_>) -> Result<(bool, MachineSettings, DataCacheParams), String> {
    let own = ["system", "alone", "layout"];
    let names: Vec<&str> = DataCacheParams::table().iter().map(|entry| entry.name).collect();
    let section = top.table("machine", &[&own[..], &names].concat())?;
    let refused =
        |error: SettingError| format!("`machine.{}", error.to_string().trim_start_matches('`'));
    let given = |name: &str| match section.get(name) {
        None => Ok(None),
        Some(found) => match setting(found) {
            Some(value) => Ok(Some((name.to_owned(), value))),
            None => Err(section.refuse(name, found, "a number, true, false or text")),
        },
    };
    let mut settings = MachineSettings::default();
    if let Some((name, value)) = given("layout")? {
        settings.set(&name, &value).map_err(refused)?;
    }
    let mut pairs = Vec::new();
    for name in names {
        pairs.extend(given(name)?);
    }
    let axes = DataCacheParams::from_pairs(&pairs).map_err(refused)?;
    Ok((section.boolean("alone", false)?, settings, axes))
}

/// A `[machine]` table: its kind, whether tenants run alone too, the settings, those of a store.
type MachineTable = (&'static str, bool, MachineSettings, Option<StoreSettings>);

fn machine(top: &Section<'_>, flash: Option<&FlashSpec>) -> Result<MachineTable, String> {
    let own = ["system", "alone"];
    let names: Vec<&str> = MachineSettings::table().iter().map(|entry| entry.name).collect();
    // A kind that does not exist is refused as such below.
    let other = |system: &str| system != FLASH_STORE && SYSTEMS.contains(&system);
    let of_store = if system(top).is_none_or(other) { Vec::new() } else { store::keys() };
    let section = top.table("machine", &[&own[..], &names, &of_store].concat())?;
    let system = SYSTEMS[section.choice("system", &SYSTEMS, 0)?];
    let mut settings = MachineSettings::default();
    let mut set = |name: &str, value: &Value| {
        let refused = |error: cachewright_types::SettingError| {
            format!("`machine.{}", error.to_string().trim_start_matches('`'))
        };
        settings.set(name, value).map_err(refused)
    };
    if system == "buffer-cache" {
        set("read_ahead", &Value::Text("linux".to_owned()))?;
    }
    for name in names {
        let Some(found) = section.get(name) else { continue };
        let value = setting(found)
            .ok_or_else(|| section.refuse(name, found, "a number, true, false or text"))?;
        set(name, &value)?;
    }
    if settings.dirty_low > settings.dirty_high {
        let (low, high) = (settings.dirty_low, settings.dirty_high);
        let expected = format!("expected at most `machine.dirty_high`, {high}");
        return Err(format!("`machine.dirty_low`: found {low}, {expected}"));
    }
    let store = store::from_section(system, top, &section, flash)?;
    Ok((system, section.boolean("alone", false)?, settings, store))
}

/// A parameter's text as JSON.
fn json_of(text: &str) -> serde_json::Value {
    match overrides::read(text) {
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}
