//! Layouts that the machine of a file cannot carry out.
//!
//! For: refusing them. Must never know: how a layout is decided.

use super::{Front, Scheme, StackSpec};
use cachewright_device::ssd::params::ChannelGroups;

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
