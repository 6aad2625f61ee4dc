//! Published drives, as what each sets over the defaults.
//!
//! The defaults are the first preset; units are those of the parameters. What a source does not say
//! is typical of its time, and the sentence says so.

use super::params::{Declared, SsdParams};
use cachewright_types::{SettingError, Value, nearest};

/// What a preset sets: keys and values as text of a stack file, without quotes.
type PresetPairs = &'static [(&'static str, &'static str)];

/// A drive by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name in stack files.
    pub name: &'static str,
    /// One sentence in lower case.
    pub doc: &'static str,
    /// Where its values come from.
    pub source: &'static str,
    /// What it sets over the defaults.
    pub pairs: PresetPairs,
}

/// Every preset, in the order of tables.
pub static PRESETS: [Preset; 7] = [
    Preset {
        name: "mqsim-default",
        doc: "the 512 GB NVMe drive that MQSim ships: memory of 200 MB/s, no overlap of dies",
        source: "MQSim ssdconfig.xml (Tavakkol et al., FAST'18)",
        pairs: MQSIM,
    },
    Preset {
        name: "icache-table1",
        doc: "the drive of icache as published, its mapping table in flash",
        source: "Li, Sun, Qin (icache), table I; what it leaves open as MQSim ships it",
        pairs: ICACHE,
    },
    Preset {
        name: "icache-modern",
        doc: "the same flash with 25.6 GB/s of memory, dies that overlap and exact channels",
        source: "icache, table I; memory as one channel of DDR4-3200",
        pairs: ICACHE_MODERN,
    },
    Preset {
        name: "open-channel-16",
        doc: "16 channels of 100 GB, each with a translation of its own",
        source: "Wang et al. (oc-cache), VI; channel, page and program times as the drive of \
                 Bjørling et al. (LightNVM, FAST'17), table 1; sensing typical",
        pairs: OPEN_CHANNEL,
    },
    Preset {
        name: "sata-850pro",
        doc: "a 512 GB SATA drive: 10,000 reads per second alone, 100,000 at depth 32; 550 and \
              520 MB/s; 36,000 and 90,000 writes per second while new, 5,000 to 10,000 when full",
        source: "Samsung SSD 850 PRO data sheet (rates of a new drive); steady random writes: \
                 10,000 per second (Tom's Hardware, 850 PRO 2 TB, July 2015), nearly the 5,000 to \
                 8,000 of the 850 EVO (AnandTech, December 2014); 7 % spare (AnandTech, July \
                 2014); dies of 86 Gbit; 50 MB/s of programming per die (Park et al., ISSCC'14); \
                 0.4 W idle and 3 W at most (Tom's Hardware, July 2014); 6,000 cycles (AnandTech, \
                 July 2014); link rate, command and write times, buffer and cleaning fitted to \
                 the rates",
        pairs: SATA_850_PRO,
    },
    Preset {
        name: "nvme-tlc",
        doc: "a 2 TB data-centre drive on four lanes of PCIe 4.0",
        source: "typical of 2020: 3D flash of three bits per cell, 1,200 MT/s channels, suspend",
        pairs: NVME_TLC,
    },
    Preset {
        name: "shiro-40gib",
        doc: "the drive of shiro at 40 GiB: 64 dies, superblocks across all of them",
        source: "Sun et al. (shiro), tables II and III; channels cost nothing, as in the emulator \
                 it builds on",
        pairs: SHIRO,
    },
];

/// The sizes of a map entry follow from 2^26 pages of 16 sectors. Memory holds two addresses and a
/// bit per sector, flash one address.
const MQSIM: PresetPairs = &[("map_entry", "9B"), ("map_stored_entry", "6B")];

const ICACHE: PresetPairs = &[
    ("channels", "8"),
    ("chips", "4"),
    ("dies", "2"),
    ("planes", "2"),
    ("blocks", "2048"),
    ("block", "2MiB"),
    ("page", "8KiB"),
    ("read_time", "75us"),
    ("read_time_msb", "75us"),
    ("program_time", "750us"),
    ("program_time_msb", "750us"),
    ("erase_time", "3800us"),
    ("over_provisioning", "0.07"),
    ("mapping", "cached"),
];

const ICACHE_MODERN: PresetPairs = &[
    ("dram_rate", "1600"),
    ("dram_burst", "8B"),
    ("die_interleave", "true"),
    ("channel_timing", "exact"),
    ("mapping", "ideal"),
    ("doorbell", "4B"),
    ("submission_entry", "64B"),
];

const OPEN_CHANNEL: PresetPairs = &[
    ("lanes", "8"),
    ("doorbell", "4B"),
    ("submission_entry", "64B"),
    ("channel_groups", "each"),
    ("channels", "16"),
    ("chips", "8"),
    ("dies", "1"),
    ("planes", "4"),
    ("blocks", "800"),
    ("block", "4MiB"),
    ("page", "16KiB"),
    ("channel_rate", "280"),
    ("channel_timing", "exact"),
    ("die_interleave", "true"),
    ("read_time", "55us"),
    ("read_time_msb", "55us"),
    ("program_time", "1100us"),
    ("program_time_msb", "1100us"),
    ("erase_time", "5ms"),
    ("mapping", "ideal"),
    ("dram_rate", "800"),
    ("dram_burst", "8B"),
    ("endurance", "0"),
];

const SATA_850_PRO: PresetPairs = &[
    ("interface", "sata"),
    ("queue_depth", "32"),
    // 550 MB/s of sequential reads, what the protocol takes beyond its frames included.
    ("sata_rate", "0.555"),
    // 100,000 reads per second at depth 32.
    ("command_time", "10us"),
    // Of 512 MB of memory, which hold the map too; fitted.
    ("write_buffer", "16MiB"),
    // 90,000 writes per second at depth 32, 34,700 alone (data sheet: 36,000).
    ("write_buffer_time", "11us"),
    ("capacity", "512110190592B"),
    ("channels", "8"),
    ("chips", "6"),
    ("dies", "1"),
    ("planes", "2"),
    ("blocks", "917"),
    ("block", "6MiB"),
    ("page", "16KiB"),
    ("channel_rate", "400"),
    ("channel_timing", "exact"),
    ("die_interleave", "true"),
    ("read_time", "70us"),
    ("read_time_msb", "70us"),
    ("program_time", "655us"),
    ("program_time_msb", "655us"),
    ("erase_time", "4ms"),
    ("suspend", "erase"),
    // Cleaning waits for the host while blocks last. Eleven of a plane's 917 blocks are kept free.
    // More would take spare space from the data; fewer leave none while seven are cleaned to gain
    // one.
    ("preemptible_cleaning", "true"),
    ("clean_below", "0.013"),
    ("clean_hard_below", "0.0015"),
    ("reclaim", "greedy"),
    ("mapping", "ideal"),
    ("dram_rate", "800"),
    ("dram_burst", "4B"),
    ("idle_power", "0.4"),
    ("active_power", "2.6"),
    ("endurance", "6000"),
];

const NVME_TLC: PresetPairs = &[
    ("lane_rate", "2.0"),
    ("packet_payload", "256B"),
    ("doorbell", "4B"),
    ("submission_entry", "64B"),
    ("queue_depth", "1024"),
    ("command_time", "600ns"),
    ("channels", "16"),
    ("chips", "4"),
    ("dies", "2"),
    ("planes", "4"),
    ("blocks", "320"),
    ("block", "12MiB"),
    ("page", "16KiB"),
    ("cell", "tlc"),
    ("channel_rate", "1200"),
    ("channel_timing", "exact"),
    ("die_interleave", "true"),
    ("suspend", "both"),
    ("read_time", "50us"),
    ("read_time_csb", "60us"),
    ("read_time_msb", "70us"),
    ("program_time", "220us"),
    ("program_time_csb", "220us"),
    ("program_time_msb", "220us"),
    ("erase_time", "5ms"),
    ("suspend_program_time", "30us"),
    ("suspend_erase_time", "100us"),
    ("clean_below", "0.03"),
    ("preemptible_cleaning", "true"),
    ("reclaim", "greedy"),
    ("mapping", "ideal"),
    ("dram_rate", "1600"),
    ("dram_burst", "8B"),
    ("endurance", "0"),
];

const SHIRO: PresetPairs = &[
    ("lanes", "8"),
    ("doorbell", "4B"),
    ("submission_entry", "64B"),
    ("capacity", "40GiB"),
    ("channels", "8"),
    ("chips", "8"),
    ("dies", "1"),
    ("planes", "1"),
    ("blocks", "171"),
    ("block", "4MiB"),
    ("page", "16KiB"),
    ("cell", "slc"),
    ("channel_rate", "100000"),
    ("channel_timing", "exact"),
    ("die_interleave", "true"),
    ("read_time", "40us"),
    ("program_time", "200us"),
    ("erase_time", "2ms"),
    ("superblock", "true"),
    ("clean_below", "0.02"),
    ("reclaim", "cost-benefit"),
    ("mapping", "ideal"),
    ("dram_rate", "1600"),
    ("dram_burst", "8B"),
    ("endurance", "0"),
];

/// The preset called `name`. Errors: no such name.
pub fn preset(name: &str) -> Result<&'static Preset, SettingError> {
    PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        let hint = match nearest(name, names.iter().copied()) {
            Some(near) => format!("; nearest is `{near}`"),
            None => String::new(),
        };
        SettingError {
            key: "preset".to_owned(),
            found: format!("`{name}`"),
            expected: format!("one of {}{hint}", names.join(", ")),
        }
    })
}

/// The pairs of a preset that hold under `given` ones. A given `over_provisioning` decides how much
/// of the drive can be addressed, in place of the preset's `capacity`.
pub fn under<'a>(
    preset: PresetPairs,
    given: &'a [(String, Value)],
) -> impl Iterator<Item = &'static (&'static str, &'static str)> + use<'a> {
    let gives_spare = given.iter().any(|(key, _)| key == "over_provisioning");
    preset.iter().filter(move |(key, _)| !(gives_spare && *key == "capacity"))
}

impl Preset {
    /// The preset's parameters with `pairs` set over them, checked. Errors: a key or value is
    /// refused, or the drive cannot be.
    pub fn params(&self, pairs: &[(String, Value)]) -> Result<SsdParams, SettingError> {
        let mut params = SsdParams::default();
        for (key, text) in under(self.pairs, pairs) {
            params.set(key, &Value::read(text))?;
        }
        for (key, value) in pairs {
            params.set(key, value)?;
        }
        params.check()?;
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_spare_share_decides_in_place_of_the_presets_capacity() {
        let drive = preset("sata-850pro").unwrap();
        let spare = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(key, text)| ((*key).to_owned(), Value::read(text)));
            drive.params(&pairs.collect::<Vec<_>>()).unwrap().spare_share()
        };
        assert!((spare(&[]) - 0.0752).abs() < 1e-3);
        assert_eq!(spare(&[("over_provisioning", "0.28")]), 0.28);
        // Both are given in the resolved form of a stack: the capacity decides.
        let both = [("over_provisioning", "0.28"), ("capacity", "512110190592B")];
        assert_eq!(spare(&both), spare(&[]));
    }

    #[test]
    fn every_preset_is_a_possible_drive() {
        for preset in &PRESETS {
            let params = preset.params(&[]).unwrap_or_else(|error| {
                panic!("{}: {error}", preset.name);
            });
            let pages = params.raw_pages() as f64 * (1.0 - params.spare_share());
            let gigabytes = pages * params.page.0 as f64 / 1e9;
            let known = match preset.name {
                "mqsim-default" | "icache-table1" | "icache-modern" => 511.3,
                "open-channel-16" => 1_597.8,
                "sata-850pro" => 512.1,
                "nvme-tlc" => 1_917.3,
                _ => 42.9,
            };
            assert!((gigabytes - known).abs() < 0.1, "{}: {gigabytes} GB", preset.name);
        }
    }

    #[test]
    fn overrides_go_over_a_preset_and_are_checked() {
        let tlc = preset("nvme-tlc").unwrap();
        let over = |key: &str, value| tlc.params(&[(key.to_owned(), value)]);
        assert_eq!(over("channels", Value::Int(8)).unwrap().channels, 8);
        assert!(over("channels", Value::Int(0)).is_err());
        assert!(over("page", Value::Text("7KiB".into())).is_err());
        let words = preset("nvme-tcl").unwrap_err().to_string();
        assert!(words.ends_with("nearest is `nvme-tlc`"), "{words}");
    }
}
