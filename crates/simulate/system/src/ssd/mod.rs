//! A drive with a data cache in its memory, between host interface and flash.
//!
//! For: [`CachedSsd`], a device whose cache engine decides and whose memory, flash and
//! back-pressure cost time. Must never know: stack files, partitioners (they change its quotas from
//! outside). Units: pages, sectors (bits of a page), nanoseconds. Source: the data cache of MQSim
//! (Tavakkol et al., FAST'18); choices are settings here, differences in docs/design/devices.md.
//! Invariants (audited): a dirty page is in the cache; bytes on their way to flash are those of the
//! write-backs under way; a write waits only while they are at their limit; while space changes
//! hands memory holds no more than its size.
//!
//! A command's reads ([`reader`]) and writes ([`writer`]) become accesses to memory and pages of
//! flash ([`traffic`]); pages go back to flash by the [`destager`]; space changes hands at
//! divisions ([`division`]) or with requests ([`elastic`]). No part knows those before it. The
//! memory is protected against loss of power: a flush has nothing to wait for.

mod account;
pub mod build;
mod cached_drive;
mod commands;
mod contents;
mod data_cache;
mod destager;
mod division;
mod elastic;
mod ids;
mod jobs;
mod pages;
pub mod params;
mod parts;
mod reader;
mod stats;
mod traffic;
mod writer;

pub use build::{BuildError, CachedParts, DriveDescription, build, cached};
pub use cached_drive::{AnyCachedDrive, CachedSsd, DataCached};
pub use data_cache::DataCache;
pub use params::{DataCacheParams, Handover, WriteBack};
pub use stats::CacheStats;
