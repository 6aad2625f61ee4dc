//! What `machine.system = "flash-store"` adds to a stack file: a log on the backing device.
//!
//! For: which tables and keys a log-structured store needs, and which it has no use for. Must never
//! know: how the store works. What decides stands in `[flash]`, as for the drive under a cache; how
//! it is carried out in `[machine]`.

use super::FlashSpec;
use cachewright_device::store::StoreSettings;
use cachewright_stack::Reader;
use cachewright_types::declare::Declared;

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
