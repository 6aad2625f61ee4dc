//! The refusal of devices that cannot be.
//!
//! For: every parameter in its range, before anything is built. Must never know: stack files.
//! Units: as in `params`.

use super::calendar::MAX_INDEX;
use super::error::FlashError;
use super::params::{FlashParams, InitialFill, MapCache};
use super::shape::MAX_PLANES;

/// Units of a channel: their mask is one word.
const MAX_UNITS: u32 = 64;

/// Checks all parameters. Errors: the first one out of its range, by key and value.
pub fn check(params: &FlashParams) -> Result<(), FlashError> {
    shape(params)?;
    shares(params)?;
    groups(params)?;
    let cell = &params.cell;
    let longest = 1_000_000_000_000;
    for (key, times) in [("read", cell.read_ns), ("program", cell.program_ns)] {
        for time in times {
            range(key, time, 1, longest)?;
        }
    }
    range("erase", cell.erase_ns, 1, longest)?;
    range("bus unit", params.bus.unit_ps, 1, longest)?;
    range("bus unit bytes", params.bus.unit_bytes.into(), 1, 64)?;
    if let MapCache::Cached { bytes, entry_bytes, stored_bytes, tenants, read_bytes } = params.map {
        let page = u64::from(params.shape.page_bytes);
        range("map entry bytes", entry_bytes.into(), 1, page)?;
        range("stored map entry bytes", stored_bytes.into(), 1, page)?;
        range("map cache tenants", tenants.into(), 1, u64::from(u16::MAX))?;
        let min = u64::from(entry_bytes) * u64::from(tenants);
        range("map cache bytes", bytes, min, u64::from(u32::MAX - 1) * u64::from(entry_bytes))?;
        range("map read bytes", read_bytes.into(), 1, page)?;
    }
    Ok(())
}

fn shape(params: &FlashParams) -> Result<(), FlashError> {
    let shape = &params.shape;
    let max = u64::from(u16::MAX);
    range("channels", shape.channels.into(), 1, max)?;
    range("chips per channel", shape.chips_per_channel.into(), 1, MAX_UNITS.into())?;
    range("dies per chip", shape.dies_per_chip.into(), 1, MAX_UNITS.into())?;
    range("planes per die", shape.planes_per_die.into(), 1, MAX_PLANES.into())?;
    range("blocks per plane", shape.blocks_per_plane.into(), 4, 1 << 24)?;
    range("pages per block", shape.pages_per_block.into(), 2, 1 << 20)?;
    range("page bytes", shape.page_bytes.into(), shape.sector_bytes.max(1).into(), 1 << 24)?;
    let sectors = shape.page_bytes / shape.sector_bytes.max(1);
    if !shape.page_bytes.is_multiple_of(shape.sector_bytes) || sectors > 64 {
        let found = format!("{} of a page of {} bytes", shape.sector_bytes, shape.page_bytes);
        let expected = "1 to 64 whole sectors in a page".to_owned();
        return Err(FlashError::Range { key: "sector bytes", found, expected });
    }
    let dies = if params.schedule.die_interleave { shape.dies_per_chip } else { 1 };
    let units = u64::from(shape.chips_per_channel) * u64::from(dies);
    range("units per channel", units, 1, MAX_UNITS.into())?;
    range("units", units * u64::from(shape.channels), 1, u64::from(MAX_INDEX))?;
    let per_unit = u64::from(shape.planes_per_die) * u64::from(shape.dies_per_chip);
    range("planes of a chip", per_unit, 1, 64)?;
    let planes = u64::from(shape.channels)
        * u64::from(shape.chips_per_channel)
        * u64::from(shape.dies_per_chip)
        * u64::from(shape.planes_per_die);
    let pages = planes * u64::from(shape.blocks_per_plane) * u64::from(shape.pages_per_block);
    range("pages of the device", pages, 1, u64::from(u32::MAX - 1))
}

fn shares(params: &FlashParams) -> Result<(), FlashError> {
    let collect = &params.collect;
    let share = |key, found: f64, low: f64, high: f64| {
        if (low..=high).contains(&found) {
            return Ok(());
        }
        let expected = format!("{low} to {high}");
        Err(FlashError::Range { key, found: found.to_string(), expected })
    };
    share("over-provisioning", collect.over_provisioning, 0.0, 0.95)?;
    share("soft threshold", collect.soft_threshold, 0.0, 0.5)?;
    share("hard threshold", collect.hard_threshold, 0.0, collect.soft_threshold)?;
    match params.fill {
        InitialFill::Empty => Ok(()),
        InitialFill::Analytic { occupancy } => share("occupancy", occupancy, 0.0, 1.0),
        InitialFill::Replay { occupancy, overwrites } => {
            share("occupancy", occupancy, 0.0, 1.0)?;
            share("overwrites", overwrites, 0.0, 1000.0)
        }
    }
}

fn groups(params: &FlashParams) -> Result<(), FlashError> {
    let channels = params.shape.channels;
    let mut taken = vec![false; channels as usize];
    for (group, members) in params.layout.groups.iter().enumerate() {
        if members.is_empty() {
            let expected = "at least one channel".to_owned();
            let found = format!("group {group} without channels");
            return Err(FlashError::Range { key: "channel groups", found, expected });
        }
        for channel in members {
            match taken.get_mut(*channel as usize) {
                Some(taken) if !*taken => *taken = true,
                _ => {
                    let expected = format!("each of 0..{channels} in one group at most");
                    return Err(FlashError::Group { group, channel: *channel, expected });
                }
            }
        }
    }
    Ok(())
}

fn range(key: &'static str, found: u64, low: u64, high: u64) -> Result<(), FlashError> {
    if (low..=high).contains(&found) {
        return Ok(());
    }
    let expected = format!("{low} to {high}");
    Err(FlashError::Range { key, found: found.to_string(), expected })
}

#[cfg(test)]
mod tests {
    use super::super::Backend;
    use super::*;
    use cachewright_types::Seed;

    fn refusal(change: impl Fn(&mut FlashParams)) -> String {
        let mut params = FlashParams::small();
        change(&mut params);
        Backend::new(&params, Seed(1)).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn devices_that_cannot_be_are_refused_by_parameter_and_value() {
        let zero = refusal(|params| params.shape.channels = 0);
        assert_eq!(zero, "`channels`: found 0, expected 1 to 65535");
        let sectors = refusal(|params| params.shape.sector_bytes = 3000);
        assert!(sectors.starts_with("`sector bytes`: found 3000 of a page of 8192 bytes"));
        let wide = refusal(|params| params.shape.page_bytes = 1 << 17);
        assert!(wide.ends_with("expected 1 to 64 whole sectors in a page"), "{wide}");
        let share = refusal(|params| params.collect.soft_threshold = 0.9);
        assert_eq!(share, "`soft threshold`: found 0.9, expected 0 to 0.5");
        let spare = refusal(|params| params.collect.over_provisioning = 0.01);
        assert!(spare.contains("expected at least") && spare.contains("kept free"), "{spare}");
        let (entry_bytes, stored_bytes) = (8, 8);
        let (tenants, read_bytes) = (1, 512);
        let map = MapCache::Cached { bytes: 4, entry_bytes, stored_bytes, tenants, read_bytes };
        let memory = refusal(|params| params.map = map);
        assert!(memory.starts_with("`map cache bytes`: found 4, expected 8 to"), "{memory}");
        let twice = refusal(|params| params.layout.groups = vec![vec![0, 1], vec![1]]);
        assert!(twice.starts_with("channel group 1: found channel 1, expected each of"), "{twice}");
        let name = refusal(|params| params.collect.separation = "sepbitt".to_owned());
        assert!(name.contains("sepbitt") && name.contains("nearest is `sepbit`"), "{name}");
        let future = refusal(|params| params.collect.separation = "future-knowledge".to_owned());
        assert!(future.contains("future"), "{future}");
        assert_eq!(refusal(|_| ()), "");
    }
}
