//! The `[cache]` table: what is cached and how that is decided.
//!
//! For: schemes that exist, a block size that fits, the files of models. Must never know: how a
//! scheme decides.

use crate::models::{KindsSpec, ModelFile};
use crate::reader::Reader;
use crate::tables::{CacheTable, Trim};
use cachewright_cache::WriteMode;
use cachewright_types::declare::Scheme;
use cachewright_types::{Bytes, Size};
use std::path::Path;

/// The `[cache]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSpec {
    /// Size of the cache.
    pub capacity: Size,
    /// Size of a block in bytes; a power of two.
    pub block: Bytes,
    /// Which block stays.
    pub policy: Scheme,
    /// How much each tenant gets.
    pub partition: Scheme,
    /// The file of a model of all tenants together, for partitioners that predict by one.
    pub model: Option<ModelFile>,
    /// Models by kind of workload, for policies that decide by one.
    pub kinds: KindsSpec,
    /// Which channels hold which tenant's blocks.
    pub layout: Scheme,
    /// Where writes go.
    pub write: WriteMode,
    /// Whether trims drop cached blocks.
    pub trim: bool,
}

impl CacheSpec {
    /// The table of a file in `folder`. Errors: there is none, a key is refused, no such scheme.
    pub fn read(file: &Reader<'_>, folder: &Path) -> Result<(CacheSpec, CacheTable), String> {
        let reader = file.table("cache")?;
        if !reader.is_there() {
            return Err("found no `[cache]` table, expected one".to_owned());
        }
        let mut table: CacheTable = reader.read()?;
        let block = table.block;
        if !block.0.is_power_of_two() {
            return Err(format!(
                "`cache.block`: found `{block}`, expected a power of two from 512B to 1GiB"
            ));
        }
        let known = cachewright_policy::entry(&table.policy.name);
        known.map_err(|error| format!("`cache.policy`: {error}"))?;
        let known = cachewright_partition::entry(&table.partition.name);
        known.map_err(|error| format!("`cache.partition`: {error}"))?;
        let known = cachewright_layout::boxed(&table.layout.name, &table.layout.pairs);
        known.map_err(|error| format!("`cache.layout`: {error}"))?;
        let capacity = table.capacity.ok_or(
            "found no `cache.capacity`, expected a size such as `64MiB` or `10%wss`".to_owned(),
        )?;
        let kinds = KindsSpec::of(&table, folder)?;
        table.workload.clone_from(&kinds.first);
        let cache = CacheSpec {
            capacity,
            block,
            policy: table.policy.clone(),
            partition: table.partition.clone(),
            model: table.model.as_deref().map(|text| ModelFile::new(text, folder)),
            kinds,
            layout: table.layout.clone(),
            write: table.write,
            trim: table.trim == Trim::Drop,
        };
        Ok((cache, table))
    }
}
