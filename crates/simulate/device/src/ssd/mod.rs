//! A solid-state drive: host interface, memory timing and flash, each a value of its own.
//!
//! [`Ssd`] is the drive without a data cache; a data cache goes between interface and flash. Units:
//! bytes, nanoseconds of simulated time.

pub mod dram;
pub mod drive;
pub mod flash;
pub mod host;
pub mod import;
pub mod life;
pub mod link;
pub mod pages;
pub mod params;
pub mod presets;

pub use drive::Ssd;
pub use life::{Life, Rated};
pub use params::SsdParams;
pub use presets::{PRESETS, Preset, preset};
