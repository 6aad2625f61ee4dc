//! A drive with a data cache in its memory, between host interface and flash.
//!
//! [`CachedSsd`] is a device whose cache engine decides and whose memory, flash and back-pressure
//! cost time; partitioners change its quotas from outside. Source: the data cache of MQSim
//! (Tavakkol et al., FAST'18); choices are settings here, differences in docs/design/devices.md.
//! Invariants (audited): a dirty page is in the cache; bytes on their way to flash are those of the
//! write-backs under way; a write is placed unless they are at their limit; while space changes
//! hands memory holds no more than its size.
//!
//! A command's reads and writes ([`data_cache`]) become accesses to memory and pages of flash
//! ([`traffic`]); pages go back to flash by the [`destager`]; space changes hands at divisions or
//! with requests ([`division`]). The memory is protected against loss of power: a flush has nothing
//! to wait for. Sectors are bits of a page.

mod cached_drive;
mod contents;
mod data_cache;
mod destager;
mod division;
mod params;
mod traffic;

pub use cached_drive::{
    AnyCachedDrive, BuildError, CachedParts, CachedSsd, DataCached, DriveDescription, build, cached,
};
pub use data_cache::{CacheStats, DataCache};
pub use params::{DataCacheParams, Handover, WriteBack, WriteWaits};
