//! The stack file: one TOML file that describes tenants, cache, flash and replay.
//!
//! For: every key of the file declared once ([`tables`]), text to a checked [`Stack`], and the file
//! with every default filled in. Must never know: files, devices, how anything is carried out. The
//! tables `[device]` and `[machine]` are passed on unread to the rooms that simulate.

pub mod auto;
pub mod cache;
mod decisions;
pub mod document;
pub mod flash;
pub mod goal;
pub mod kinds;
pub mod models;
pub mod names;
mod needs;
mod reader;
mod resolved;
pub mod schemes;
pub mod serve;
pub mod shares;
mod stack;
pub mod tables;
pub mod tenant;

pub use cache::CacheSpec;
pub use cachewright_types::declare::Scheme;
pub use document::{apply, full_key};
pub use flash::FlashSpec;
pub use goal::Goal;
pub use kinds::{Stop, Warmup};
pub use models::{CharacterizerSpec, KindsSpec, ModelFile};
pub use reader::Reader;
pub use resolved::ResolvedEntry;
pub use schemes::{NamedScheme, SCHEMES};
pub use serve::{ListenAddress, ServeSpec, TlsFiles};
pub use shares::Shared;
pub use stack::{MAX_BYTES, MachineTables, Rest, Stack, tables_of_file};
pub use tables::{FlashTable, IoEngine, ReplayTable};
pub use tenant::{TenantSpec, without_trace};
