//! The nouns of Cachewright: identifiers, requests, units, settings, seeds, counters.
//!
//! Units are in the type or the last word of the name.

pub mod declare;
pub mod ids;
pub mod measure;
pub mod registry;
pub mod request;
pub mod seed;
mod text;
pub mod units;

pub use declare::{Key, SettingError, Value};
pub use ids::{BlockId, BlockKey, TenantId, VolumeKeys};
pub use registry::RegistryError;
pub use request::{Op, Request, block_bytes, block_numbers, whole_block_numbers};
pub use seed::{Rng, Seed};
pub use text::{is_hidden, nearest, visible};
pub use units::{Bytes, Nanos, Size, UnitError, parse_bytes, parse_duration, parse_size};
