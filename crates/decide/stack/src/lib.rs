//! The stack file: one TOML file that describes tenants, cache, flash and replay.
//!
//! For: every key of the file declared once ([`tables`]), text to a checked [`Stack`], and the file
//! with every default filled in. Must never know: files, devices, how anything is carried out. The
//! tables `[device]` and `[machine]` are passed on unread to the rooms that simulate.

pub mod cache;
pub mod deciding;
pub mod document;
pub mod flash;
pub mod kinds;
pub mod names;
pub mod schemes;
pub mod serve;
pub mod stack;
pub mod tables;
pub mod tenant;

pub use cache::CacheSpec;
pub use cache::{CharacterizerSpec, KindsSpec, ModelFile};
pub use cachewright_types::declare::Scheme;
pub use deciding::{DecidingModels, ServerTenants};
pub use document::Reader;
pub use document::{apply, full_key};
pub use flash::FlashSpec;
pub use kinds::{Stop, Warmup};
pub use schemes::{NamedScheme, SCHEMES};
pub use serve::{ListenAddress, ServeSpec, TlsFiles};
pub use stack::{
    MAX_BYTES, MachineTables, ResolvedEntry, Rest, Shared, Stack, StackFile, tables_of_file,
};
pub use tables::{FlashTable, IoEngine, ReplayTable};
pub use tenant::Goal;
pub use tenant::{TenantSpec, without_trace};
