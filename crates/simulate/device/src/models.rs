//! Every device by name: models with their settings, and presets of published devices.
//!
//! Adding a model is one line in [`MODELS`], a preset of it one more.

use crate::device::AnyDevice;
use crate::disk::{CHEETAH_9LP, Disk, DiskSettings};
use crate::served::{
    FixedLatency, FixedSettings, MeasuredLatency, MeasuredSettings, Null, NullSettings, Ram,
    RamSettings,
};
use crate::ssd::presets::under;
use crate::ssd::{PRESETS, Preset, Ssd, SsdParams};
use cachewright_types::declare::Declared;
use cachewright_types::registry::Resolved;
use cachewright_types::{Key, Seed, SettingError, Value, nearest};
use thiserror::Error;

/// Draws of a drive (victims of cleaning) come from here: the same in every run.
const DRIVE_SEED: Seed = Seed(1);

/// What can be named as a device's `model`.
pub struct DeviceModel {
    /// The name in stack files.
    pub name: &'static str,
    /// One sentence in lower case.
    pub doc: &'static str,
    /// Where its parameters come from.
    pub source: &'static str,
    /// What it sets over the defaults.
    preset: &'static [(&'static str, &'static str)],
    keys: fn() -> Vec<Key>,
    values: DeviceMaker<Resolved>,
    build: DeviceMaker<AnyDevice>,
}

/// Makes something of parameters set over the defaults.
type DeviceMaker<T> = fn(&[(String, Value)]) -> Result<T, SettingError>;

/// Why no device could be made.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DeviceModelError {
    /// No such name.
    #[error("found `{name}`, expected one of {known}{hint}")]
    Unknown {
        /// The name as found.
        name: String,
        /// All names.
        known: String,
        /// `; nearest is ...`, or empty.
        hint: String,
    },
    /// A parameter was refused.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

/// Makes the entry of a model from its settings' type and its constructor.
macro_rules! model {
    ($name:literal, $doc:literal, $source:literal, $preset:expr, $settings:ty, $device:ty) => {
        DeviceModel {
            name: $name,
            doc: $doc,
            source: $source,
            preset: $preset,
            keys: <$settings as Declared>::keys,
            values: |pairs| Ok(<$settings>::from_pairs(pairs)?.values()),
            build: |pairs| Ok(Box::new(<$device>::new(&<$settings>::from_pairs(pairs)?)?)),
        }
    };
}

/// Every model and preset, in the order of tables.
pub static MODELS: [DeviceModel; 13] = [
    model!(
        "hdd-7200-2tb",
        "a 2 TB disk of 7,200 revolutions per minute",
        "Seagate Constellation ES (ST32000644NS), product manual 100516232; rest typical",
        &[],
        DiskSettings,
        Disk
    ),
    model!(
        "hdd-10045-9gb",
        "a 9.1 GB disk of 10,045 revolutions per minute with 5 ms average seek",
        "the disk of Patrick et al. (soft-qos); the rest as the Seagate Cheetah 9LP (ST39102)",
        &CHEETAH_9LP,
        DiskSettings,
        Disk
    ),
    model!("ram", "memory: latency, bandwidth, channels", "JESD79-4", &[], RamSettings, Ram),
    model!(
        "fixed-latency",
        "so long per read and per write, so many at once",
        "none",
        &[],
        FixedSettings,
        FixedLatency
    ),
    model!(
        "measured-latency",
        "times that were measured per read, write and flush, so many at once",
        "cachewrightd calibrate",
        &[],
        MeasuredSettings,
        MeasuredLatency
    ),
    model!("null", "takes no time", "none", &[], NullSettings, Null),
    drive(&PRESETS[0]),
    drive(&PRESETS[1]),
    drive(&PRESETS[2]),
    drive(&PRESETS[3]),
    drive(&PRESETS[4]),
    drive(&PRESETS[5]),
    drive(&PRESETS[6]),
];

/// The entry of a solid-state drive without a data cache.
const fn drive(preset: &'static Preset) -> DeviceModel {
    DeviceModel {
        name: preset.name,
        doc: preset.doc,
        source: preset.source,
        preset: preset.pairs,
        keys: <SsdParams as Declared>::keys,
        values: |pairs| {
            let params = SsdParams::from_pairs(pairs)?;
            params.check()?;
            Ok(params.values())
        },
        build: |pairs| Ok(Box::new(Ssd::new(&SsdParams::from_pairs(pairs)?, &[], DRIVE_SEED)?)),
    }
}

/// The model called `name`. Errors: no such name.
pub fn model(name: &str) -> Result<&'static DeviceModel, DeviceModelError> {
    MODELS.iter().find(|model| model.name == name).ok_or_else(|| {
        let names: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
        let hint = match nearest(name, names.iter().copied()) {
            Some(near) => format!("; nearest is `{near}`"),
            None => String::new(),
        };
        DeviceModelError::Unknown { name: name.to_owned(), known: names.join(", "), hint }
    })
}

impl DeviceModel {
    /// What it sets over the defaults, as text of a stack file without quotes.
    pub fn preset(&self) -> &'static [(&'static str, &'static str)] {
        self.preset
    }

    /// Every parameter.
    pub fn keys(&self) -> Vec<Key> {
        (self.keys)()
    }

    /// Every parameter's value under `pairs`. Errors: a parameter is refused.
    pub fn resolved(&self, pairs: &[(String, Value)]) -> Result<Resolved, DeviceModelError> {
        Ok((self.values)(&self.with_preset(pairs))?)
    }

    /// The device under `pairs`. Errors: a parameter is refused, or all of them together.
    pub fn build(&self, pairs: &[(String, Value)]) -> Result<AnyDevice, DeviceModelError> {
        Ok((self.build)(&self.with_preset(pairs))?)
    }

    fn with_preset(&self, pairs: &[(String, Value)]) -> Vec<(String, Value)> {
        let preset =
            under(self.preset, pairs).map(|(key, text)| ((*key).to_owned(), Value::read(text)));
        preset.chain(pairs.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_builds_and_its_resolved_values_build_it_again() {
        for model in &MODELS {
            let resolved = model.resolved(&[]).unwrap();
            assert_eq!(resolved.len(), model.keys().len(), "{}", model.name);
            let given = resolved.iter().cloned();
            let pairs: Vec<(String, Value)> =
                given.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
            assert_eq!(model.resolved(&pairs).unwrap(), resolved, "{}", model.name);
            let (built, again) = (model.build(&[]).unwrap(), model.build(&pairs).unwrap());
            assert_eq!(built.capacity(), again.capacity());
        }
    }

    #[test]
    fn refusals_name_what_was_found_and_expected() {
        let words = |name: &str, key: &str, value: Value| {
            let pairs = [(key.to_owned(), value)];
            let built = model(name).and_then(|model| model.build(&pairs).map(|_| ()));
            built.unwrap_err().to_string()
        };
        let none = Value::Int(0);
        assert!(words("hdd-720-2tb", "rpm", none.clone()).contains("nearest is `hdd-7200-2tb`"));
        assert!(words("hdd-7200-2tb", "rpms", none.clone()).contains("nearest is `rpm`"));
        assert!(words("hdd-7200-2tb", "zones", none.clone()).contains("found `0`"));
        assert!(words("ram", "channels", none).contains("`channels`: found `0`"));
        let inner = words("hdd-7200-2tb", "inner_mb_per_s", Value::Float(200.0));
        assert!(inner.contains("expected at most `outer_mb_per_s`, 140"), "{inner}");
        let seek = words("hdd-7200-2tb", "average_seek", Value::Text("18ms".into()));
        assert!(seek.contains("`average_seek`: found `18ms`, expected "), "{seek}");
        let schedule = words("hdd-7200-2tb", "schedule", Value::Text("saft".into()));
        assert!(schedule.contains("nearest is `satf`"), "{schedule}");
    }
}
