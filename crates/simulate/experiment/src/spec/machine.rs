//! The devices and the `[machine]` table of a stack file, read together: which machine a stack runs
//! on, and what that machine cannot carry out.
//!
//! Without these tables a replay has no devices, and answers in hits. With `machine.system =
//! "flash-store"` the backing device holds a log: what decides stands in `[flash]`, as for the
//! drive under a cache; how it is carried out in `[machine]`.

use super::device::{DeviceSpec, Front, MachineTable, StackSpec, System, given, text};
use super::{FlashSpec, Scheme};
use cachewright_cache::Shrink;
use cachewright_device::ssd::params::ChannelGroups;
use cachewright_device::store::StoreSettings;
use cachewright_stack::tables::ExplainedMisses;
use cachewright_stack::{MachineTables, Reader, Rest};
use cachewright_system::machines::{MachineSettings, ReadAhead};
use cachewright_system::ssd::DataCacheParams;
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Value};

/// One drive with a data cache as the whole machine.
fn one_drive(file: &Reader<'_>, devices: &Reader<'_>, block: Bytes) -> Result<StackSpec, String> {
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

/// The kind that is one drive with a data cache.
const SSD: &str = "ssd";

impl MachineTables for StackSpec {
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
            read(SSD, file, file, rest.flash)?;
            return one_drive(file, &devices, rest.cache.block).map(Some);
        }
        if devices.get("ssd").is_some() {
            return Err("found `[device.ssd]`, expected `machine.system = \"ssd\"` with it, or \
                        `[device.cache]` and `[device.backing]` instead"
                .to_owned());
        }
        tiered(file, &devices, rest.flash).map(Some)
    }

    fn check(machine: Option<&StackSpec>, rest: &Rest<'_>) -> Result<(), String> {
        let in_drive = machine.is_some_and(|machine| matches!(machine.front, Front::DataCache(_)));
        if in_drive && let Some(cutoff) = rest.cache.cutoff() {
            return Err(format!(
                "`cache.sequential_cutoff`: found `{}`, expected `0B` with `machine.system = \
                 \"ssd\"`: the data cache of a drive sees pages, not requests",
                Bytes(cutoff.bytes).exact()
            ));
        }
        if in_drive && rest.cache.shrink != Shrink::AtOnce {
            return Err("`cache.shrink`: found `as-needed`, expected `at-once` with \
                        `machine.system = \"ssd\"`"
                .to_owned());
        }
        if in_drive && rest.replay.causes != ExplainedMisses::None {
            return Err(format!(
                "`replay.causes`: found `{}`, expected `none` with `machine.system = \"ssd\"`: the \
                 data cache of a drive explains no misses",
                rest.replay.causes.word()
            ));
        }
        check(&rest.cache.layout, machine)
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
    let of_store = if table.system == System::FlashStore { keys() } else { Vec::new() };
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
    let store = read(table.system.word(), file, &reader, flash)?;
    Ok((table, settings, store))
}

/// The kind of machine that keeps a log.
pub const FLASH_STORE: &str = "flash-store";

/// The keys of `[machine]` that only a store has.
pub fn keys() -> Vec<&'static str> {
    StoreSettings::keys().iter().map(|entry| entry.name).collect()
}

/// The settings of the store of a machine of this kind: nothing for other kinds. Errors: a
/// `[flash]` table without a store or a store without that, keys that mean nothing to it.
pub fn read(
    system: &str,
    file: &Reader<'_>,
    machine: &Reader<'_>,
    flash: Option<&FlashSpec>,
) -> Result<Option<StoreSettings>, String> {
    let flash = match (flash, system == FLASH_STORE) {
        (None, false) => return Ok(None),
        (Some(_), false) => {
            return Err("found `[flash]` and `[device]`, expected one of them: the drive of \
                        `[flash]` has no time, an SSD of `[device]` cleans by itself; with \
                        `machine.system = \"flash-store\"` it is a log on the backing device"
                .to_owned());
        }
        (None, true) => {
            return Err("`machine.system`: found `flash-store` without a `[flash]` table, \
                        expected one with `separation`, `reclaim` and `over_provisioning`"
                .to_owned());
        }
        (Some(flash), true) => flash,
    };
    if file.table("flash")?.get("trim_evicted").is_some() {
        return Err("`flash.trim_evicted`: found with `machine.system = \"flash-store\"`, \
                    expected it left out: what leaves the cache stays in the store"
            .to_owned());
    }
    let mut settings = StoreSettings::default();
    for name in keys() {
        let Some(value) = machine.get(name) else { continue };
        settings.set(name, value).map_err(|error| machine.refusal(&error))?;
    }
    if settings.command < flash.page {
        let expected = format!("expected at least `flash.page`, {}", flash.page);
        return Err(format!("`machine.command`: found {}, {expected}", settings.command));
    }
    Ok(Some(settings))
}

/// Checks that the machine can carry the layout out.
pub fn check(layout: &Scheme, stack: Option<&StackSpec>) -> Result<(), String> {
    let name = &layout.name;
    let entry = cachewright_partition::layout::entry(name).map_err(|error| error.to_string())?;
    if entry.needs.is_empty() {
        return Ok(());
    }
    let Some(stack) = stack else {
        let expected = "expected `striped` without `[device]`";
        return Err(format!("`cache.layout`: found `{name}`, {expected}"));
    };
    if let Front::DataCache(_) = stack.front {
        if name != "dedicated" {
            let expected = "expected `striped` or `dedicated` with `machine.system = \"ssd\"`";
            return Err(format!("`cache.layout`: found `{name}`, {expected}"));
        }
        if stack.backing.drive()?.channel_groups != ChannelGroups::All {
            let expected = "expected `all`: each tenant's channels become a group";
            return Err(format!("`device.ssd.channel_groups`: found with `{name}`, {expected}"));
        }
    }
    Ok(())
}
