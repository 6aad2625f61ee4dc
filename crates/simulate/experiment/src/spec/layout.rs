//! The keys `cache.layout` and `tenant.channels`.
//!
//! For: reading them, and refusing layouts that the machine of the file cannot carry out. Must
//! never know: how a layout is decided. Units: channels. Wishes are for `dedicated`; others do not
//! hear them, so that layouts can be compared on one file.

use super::section::Section;
use super::{Front, Named, StackSpec, TenantSpec};
use cachewright_device::ssd::params::ChannelGroups;
use cachewright_layout::Wish;
use serde_json::Value;

/// What a tenant asks for: a number of channels, or a list of them.
pub fn wish(section: &Section<'_>) -> Result<Option<Wish>, String> {
    let expected = "a number of channels, or a list of them as in `[0, 1]`";
    let Some(found) = section.get("channels") else { return Ok(None) };
    let number = |value: &toml::Value| {
        let number = value.as_integer().and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| section.refuse("channels", found, expected))
    };
    match found {
        toml::Value::Array(list) => {
            let channels: Result<Vec<u32>, String> = list.iter().map(number).collect();
            Ok(Some(Wish::Channels(channels?)))
        }
        other => Ok(Some(Wish::Count(number(other)?))),
    }
}

/// A wish as the stack file has it.
pub fn wish_json(wish: &Wish) -> Value {
    match wish {
        Wish::Count(count) => (*count).into(),
        Wish::Channels(channels) => channels.clone().into(),
    }
}

/// Checks that the machine can carry the layout out.
pub fn check(
    layout: &Named,
    stack: Option<&StackSpec>,
    tenants: &[TenantSpec],
) -> Result<(), String> {
    let name = &layout.name;
    let entry = cachewright_layout::entry(name).map_err(|error| error.to_string())?;
    let wishes = tenants.iter().position(|tenant| tenant.channels.is_some());
    if let (Some(at), None) = (wishes, stack) {
        let at = at + 1;
        return Err(format!("`tenant[{at}].channels`: found without `[device]`, expected it too"));
    }
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
