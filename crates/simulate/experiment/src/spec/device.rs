//! The `[device.cache]`, `[device.backing]` and `[machine]` tables.
//!
//! For: which devices a timed replay runs on and how plans are carried out on them. Must never
//! know: how a device works; its parameters are checked by its own table. Without these tables a
//! replay has no devices, and answers in hits.

use super::section::{Section, setting};
use super::{ReplaySpec, overrides};
use cachewright_device::parameters::Parameters;
use cachewright_device::{AnyDevice, model};
use cachewright_system::timed::MachineSettings;
use cachewright_types::Value;
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
}

/// The devices of a stack and how plans are carried out on them.
#[derive(Clone, Debug, PartialEq)]
pub struct StackSpec {
    /// Holds cached blocks.
    pub cache: DeviceSpec,
    /// Holds everything.
    pub backing: DeviceSpec,
    /// Each tenant has a backing device of its own.
    pub per_tenant: bool,
    /// The kind of machine: `tiered` or `buffer-cache`, which reads ahead.
    pub system: &'static str,
    /// Replay each tenant alone too, for slowdowns.
    pub alone: bool,
    /// How plans are carried out.
    pub machine: MachineSettings,
}

/// The kinds of machine.
const SYSTEMS: [&str; 2] = ["tiered", "buffer-cache"];

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
        let mut pairs = Vec::new();
        let known = |name: &str| name == "model" || own.contains(&name);
        for (name, value) in table.iter().filter(|(name, _)| !known(name)) {
            let value = setting(value).ok_or_else(|| {
                format!("`{key}.{name}`: found `{value}`, expected a number, true, false or text")
            })?;
            pairs.push((name.clone(), value));
        }
        let spec = DeviceSpec { key, model: model.to_owned(), pairs };
        spec.build()?;
        Ok(spec)
    }

    /// The device, idle. Errors: no such model, or a parameter is refused.
    pub fn build(&self) -> Result<AnyDevice, String> {
        let found = model(&self.model).map_err(|error| format!("`{}.model`: {error}", self.key))?;
        found.build(&self.pairs).map_err(|error| self.refusal(&error.to_string()))
    }

    /// Every parameter with its value.
    fn resolved(&self) -> Result<Map<String, serde_json::Value>, String> {
        let found = model(&self.model).map_err(|error| error.to_string())?;
        let values = found.resolved(&self.pairs).map_err(|e| self.refusal(&e.to_string()))?;
        let mut map = Map::new();
        map.insert("model".to_owned(), self.model.clone().into());
        map.extend(values.iter().map(|(name, text)| ((*name).to_owned(), json_of(text))));
        Ok(map)
    }

    /// A refusal that begins with a parameter's name, under the full key.
    fn refusal(&self, error: &str) -> String {
        match error.strip_prefix('`') {
            Some(rest) => format!("`{}.{rest}", self.key),
            None => format!("`{}`: {error}", self.key),
        }
    }
}

impl StackSpec {
    /// The tables, if the file has them.
    pub(super) fn from_section(
        top: &Section<'_>,
        replay: &ReplaySpec,
    ) -> Result<Option<StackSpec>, String> {
        if top.get("device").is_none() {
            return match top.get("machine") {
                None => Ok(None),
                Some(_) => Err("found `[machine]`, expected `[device.cache]` and \
                                `[device.backing]` with it"
                    .to_owned()),
            };
        }
        if replay.unit {
            let expected = "expected `split`, since devices need sizes";
            return Err(format!("`replay.blocks`: found `unit` with devices, {expected}"));
        }
        if top.get("flash").is_some() {
            return Err("found `[flash]` and `[device]`, expected one of them: the drive of \
                        `[flash]` has no time, an SSD of `[device.cache]` cleans by itself"
                .to_owned());
        }
        let devices = top.table("device", &["cache", "backing"])?;
        let cache = DeviceSpec::from_section(&devices, "cache", "device.cache", &[])?;
        let own = ["per_tenant"];
        let backing = DeviceSpec::from_section(&devices, "backing", "device.backing", &own)?;
        let per_tenant = match devices.get("backing").and_then(|table| table.get("per_tenant")) {
            None => false,
            Some(toml::Value::Boolean(flag)) => *flag,
            Some(other) => {
                let expected = "expected true or false";
                return Err(format!("`device.backing.per_tenant`: found `{other}`, {expected}"));
            }
        };
        let (system, alone, machine) = machine(top)?;
        Ok(Some(StackSpec { cache, backing, per_tenant, system, alone, machine }))
    }

    /// The two tables with every default filled in: `device` and `machine`.
    pub(super) fn resolved(&self) -> Result<[serde_json::Value; 2], String> {
        let mut backing = self.backing.resolved()?;
        backing.insert("per_tenant".to_owned(), self.per_tenant.into());
        let mut machine = Map::new();
        machine.insert("system".to_owned(), self.system.into());
        machine.insert("alone".to_owned(), self.alone.into());
        for (name, text) in self.machine.values() {
            machine.insert(name.to_owned(), json_of(&text));
        }
        let devices = json!({"cache": self.cache.resolved()?, "backing": backing});
        Ok([devices, machine.into()])
    }
}

/// The `[machine]` table: its kind, whether tenants run alone too, and the settings.
fn machine(top: &Section<'_>) -> Result<(&'static str, bool, MachineSettings), String> {
    let own = ["system", "alone"];
    let names: Vec<&str> = MachineSettings::table().iter().map(|entry| entry.name).collect();
    let section = top.table("machine", &[&own[..], &names].concat())?;
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
    Ok((system, section.boolean("alone", false)?, settings))
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
