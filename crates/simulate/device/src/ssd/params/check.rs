//! Drives that cannot be: each refused by key, value and what was expected.
//!
//! For: rules that tie several parameters together; the range of each alone is in the table. Must
//! never know: how the parts work. Units: bytes, pages, blocks of one plane.

use super::{AddressableBytes, ChannelGroups, Scheme, SsdParams};
use cachewright_ftl::layer;
use cachewright_ftl::reclaim;
use cachewright_types::declare::ValueKind;
use cachewright_types::registry::{RegistryError, Resolved};
use cachewright_types::{SettingError, Value};

/// Most sectors of a page: which of them are touched is a 64-bit mask.
const SECTORS_LIMIT: u64 = 64;
/// Blocks of a plane that are open for writing at most: for the host, for cleaning, for the map.
const OPEN_BLOCKS: u32 = 3;
/// Pages of a drive are counted in 32 bits.
const PAGES_LIMIT: u64 = 1 << 31;

impl SsdParams {
    /// Pages of an erase block.
    pub fn pages_per_block(&self) -> u32 {
        (self.block.0 / self.page.0.max(1)) as u32
    }

    /// Planes of the whole drive.
    pub fn plane_count(&self) -> u64 {
        u64::from(self.channels)
            * u64::from(self.chips)
            * u64::from(self.dies)
            * u64::from(self.planes)
    }

    /// Pages of the whole drive, spare ones included.
    pub fn raw_pages(&self) -> u64 {
        self.plane_count() * u64::from(self.blocks) * u64::from(self.pages_per_block())
    }

    /// The share of pages kept from the host: `over_provisioning`, or what `capacity` leaves.
    pub fn spare_share(&self) -> f64 {
        match self.capacity {
            AddressableBytes::Auto => self.over_provisioning,
            AddressableBytes::Bytes(bytes) => {
                let pages = (bytes.0 / self.page.0.max(1)) as f64;
                1.0 - (pages + 0.5) / self.raw_pages() as f64
            }
        }
    }

    /// Refuses a drive that cannot be. Errors: the first rule broken, by key.
    pub fn check(&self) -> Result<(), SettingError> {
        self.check_pages()?;
        self.check_spare()?;
        self.check_groups()?;
        self.check_schemes()
    }

    fn check_pages(&self) -> Result<(), SettingError> {
        let (page, sector, block) = (self.page.0, self.sector.0, self.block.0);
        if !sector.is_power_of_two() {
            return refuse("sector", &self.sector, "a power of two");
        }
        if !page.is_multiple_of(sector) || page / sector > SECTORS_LIMIT {
            let sector = self.sector;
            let expected = format!("1 to {SECTORS_LIMIT} whole sectors of {sector}");
            return refuse("page", &self.page, &expected);
        }
        if !block.is_multiple_of(page) || !(2..=1 << 16).contains(&(block / page)) {
            let expected = format!("2 to 65536 whole pages of {}", self.page);
            return refuse("block", &self.block, &expected);
        }
        let pages = self.raw_pages();
        if pages >= PAGES_LIMIT {
            let expected = format!(
                "fewer than {PAGES_LIMIT} pages on the drive, not {pages}: take larger pages"
            );
            return refuse("blocks", &self.blocks, &expected);
        }
        Ok(())
    }

    /// The largest `clean_below` that leaves room for the data; nothing where none does.
    pub fn largest_clean_below(&self) -> Option<f64> {
        let spare = (self.spare_share() * f64::from(self.blocks)).floor();
        let free = spare - f64::from(OPEN_BLOCKS);
        // Rounded down, so that no block too many is kept free.
        (free >= 1.0).then(|| (free / f64::from(self.blocks) * 1e4).floor() / 1e4)
    }

    /// Beside the data, a plane needs the blocks kept free and those open for writing.
    fn check_spare(&self) -> Result<(), SettingError> {
        let free = (self.clean_below * f64::from(self.blocks)).ceil() as u32;
        let needed = free + OPEN_BLOCKS;
        let spare = self.spare_share() * f64::from(self.blocks);
        if self.clean_hard_below > self.clean_below {
            let expected = format!("at most clean_below = {}", self.clean_below);
            return refuse("clean_hard_below", &self.clean_hard_below, &expected);
        }
        if spare >= f64::from(needed) {
            return Ok(());
        }
        let why = format!(
            "{needed} of the {} blocks of a plane are spare: {free} kept free (clean_below = {}) \
             and {OPEN_BLOCKS} open for writing",
            self.blocks, self.clean_below
        );
        match self.capacity {
            AddressableBytes::Auto => {
                let min = f64::from(needed) / f64::from(self.blocks);
                let expected = format!("at least {:.4}, so that {why}", (min * 1e4).ceil() / 1e4);
                refuse("over_provisioning", &self.over_provisioning, &expected)
            }
            AddressableBytes::Bytes(_) => {
                let share = 1.0 - f64::from(needed) / f64::from(self.blocks);
                let max = (share.max(0.0) * self.raw_pages() as f64) as u64 * self.page.0;
                let max = cachewright_types::Bytes(max);
                refuse("capacity", &self.capacity, &format!("at most {max}, so that {why}"))
            }
        }
    }

    fn check_groups(&self) -> Result<(), SettingError> {
        let ChannelGroups::Lists(lists) = &self.channel_groups else { return Ok(()) };
        let mut seen = vec![false; self.channels as usize];
        for channel in lists.iter().flatten() {
            match seen.get_mut(*channel as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    let expected = format!(
                        "each channel below {} at most once, not {channel} again or beyond",
                        self.channels
                    );
                    return refuse("channel_groups", &self.channel_groups, &expected);
                }
            }
        }
        Ok(())
    }

    fn check_schemes(&self) -> Result<(), SettingError> {
        let entries = reclaim::entries();
        let known: Vec<&'static str> = entries.iter().map(|entry| entry.name).collect();
        check_scheme("reclaim", &self.reclaim, &known, reclaim::resolved)?;
        check_scheme("separation", &self.separation, &layer::names(), layer::resolved)
    }
}

/// Reads the settings of a scheme by name.
type Read = fn(&str, &[(String, Value)]) -> Result<Resolved, RegistryError>;

fn check_scheme(
    key: &str,
    scheme: &Scheme,
    known: &[&'static str],
    read: Read,
) -> Result<(), SettingError> {
    match read(&scheme.name, &scheme.pairs) {
        Ok(_) => Ok(()),
        Err(RegistryError::Setting { error, .. }) => {
            Err(SettingError { key: format!("{key}.{}", error.key), ..error })
        }
        Err(_) => {
            let near = cachewright_types::nearest(&scheme.name, known.iter().copied());
            let hint = near.map_or(String::new(), |near| format!("; nearest is `{near}`"));
            refuse(key, scheme, &format!("one of {}{hint}", known.join(", ")))
        }
    }
}

fn refuse<K: ValueKind>(key: &str, found: &K, expected: &str) -> Result<(), SettingError> {
    let found = found.value().map(|value| value.shown()).unwrap_or_default();
    Err(SettingError { key: key.to_owned(), found, expected: expected.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::super::{Declared, SsdParams};
    use cachewright_types::Value;

    fn refusal(pairs: &[(&str, Value)]) -> String {
        let mut params = SsdParams::default();
        for (key, value) in pairs {
            if let Err(error) = params.set(key, value) {
                return error.to_string();
            }
        }
        params.check().unwrap_err().to_string()
    }

    fn text(words: &str) -> Value {
        Value::Text(words.to_owned())
    }

    #[test]
    fn the_default_drive_is_possible() {
        let params = SsdParams::default();
        assert_eq!(params.check(), Ok(()));
        assert_eq!(params.plane_count(), 128);
        assert_eq!(params.raw_pages() * 8192, 512 << 30);
    }

    #[test]
    fn impossible_drives_are_refused_by_key_and_value() {
        assert_eq!(
            refusal(&[("channels", Value::Int(0))]),
            "`channels`: found `0`, expected a whole number from 1 to 256 (channels)"
        );
        assert_eq!(
            refusal(&[("block", text("4KiB"))]),
            "`block`: found 4KiB, expected 2 to 65536 whole pages of 8KiB"
        );
        assert_eq!(
            refusal(&[("page", text("64KiB"))]),
            "`page`: found 64KiB, expected 1 to 64 whole sectors of 512B"
        );
        let spare = refusal(&[("over_provisioning", Value::Float(0.02))]);
        let start = "`over_provisioning`: found 0.02, expected at least 0.0518, so that 106 of";
        assert!(spare.starts_with(start), "{spare}");
        let spare = refusal(&[("capacity", text("512GiB"))]);
        assert!(
            spare.starts_with("`capacity`: found 512GiB, expected at most 485.5GiB"),
            "{spare}"
        );
        let blocks = refusal(&[("blocks", Value::Int(1 << 20))]);
        assert!(blocks.starts_with("`blocks`: found 1048576, expected fewer than"), "{blocks}");
    }

    #[test]
    fn groups_and_schemes_are_checked() {
        let groups = refusal(&[("channel_groups", text("0-3 3-7"))]);
        assert!(groups.starts_with("`channel_groups`: found 0,1,2,3 3,4,"), "{groups}");
        let scheme = refusal(&[("reclaim", text("gready"))]);
        assert!(scheme.ends_with("nearest is `greedy`"), "{scheme}");
        let setting = refusal(&[("reclaim.d", Value::Int(0))]);
        assert!(setting.starts_with("`reclaim.d`: found "), "{setting}");
        let setting = refusal(&[("reclaim.e", Value::Int(1))]);
        assert!(setting.starts_with("`reclaim.e`: found an unknown key"), "{setting}");
    }
}
