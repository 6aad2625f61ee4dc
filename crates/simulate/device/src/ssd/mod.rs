//! A solid-state drive: host interface, memory timing and flash.
//!
//! For: the parts of a drive as separate values, and the drive without a data cache made of them.
//! Must never know: caches, policies. Units: bytes, nanoseconds of simulated time.

mod buffer;
pub mod direct;
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

pub use direct::Ssd;
pub use life::{Life, Rated};
pub use params::SsdParams;
pub use presets::{PRESETS, Preset, preset};
