//! The `[cache]` table: what is cached and how that is decided.
//!
//! For: schemes that exist, a block size that fits, the files of models. Must never know: how a
//! scheme decides.

use crate::auto::{self, StackFacts};
use crate::models::{KindsSpec, ModelFile};
use crate::reader::Reader;
use crate::tables::{CacheTable, Trim};
use cachewright_cache::SequentialCutoff;
use cachewright_types::Size;
use cachewright_types::declare::Scheme;
use std::ops::Deref;
use std::path::Path;

/// The `[cache]` table with every default filled in, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSpec {
    table: CacheTable,
    /// Size of the cache, which has no default.
    pub capacity: Size,
    /// The file of a model of all tenants together, for partitioners that predict by one.
    pub model: Option<ModelFile>,
    /// Models by kind of workload, for policies that decide by one.
    pub kinds: KindsSpec,
}

impl Deref for CacheSpec {
    type Target = CacheTable;

    fn deref(&self) -> &CacheTable {
        &self.table
    }
}

impl CacheTable {
    /// Whether trims drop cached blocks.
    pub fn drops_trimmed(&self) -> bool {
        self.trim == Trim::Drop
    }

    /// When requests go past the cache, if some do.
    pub fn cutoff(&self) -> Option<SequentialCutoff> {
        let (bytes, streams) = (self.sequential_cutoff.0, self.sequential_streams);
        (bytes > 0).then_some(SequentialCutoff { bytes, streams })
    }
}

impl CacheSpec {
    /// Sets another policy with its default settings, unless it is that one already.
    pub fn set_policy(&mut self, name: &str) {
        if self.policy.name != name {
            self.table.policy = Scheme::named(name);
        }
    }

    /// Puts the schemes that fit in the place of each `auto`. Errors: settings of `auto`.
    pub(crate) fn choose_schemes(&mut self, facts: StackFacts) -> Result<(), String> {
        self.table.policy = auto::policy(&self.table.policy, facts)?;
        self.table.partition = auto::partition(&self.table.partition, facts)?;
        Ok(())
    }

    /// The table of a file in `folder`. Errors: there is none, a key is refused, no such scheme.
    pub fn read(file: &Reader<'_>, folder: &Path) -> Result<CacheSpec, String> {
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
        if table.policy.name != auto::AUTO {
            let known = cachewright_policy::entry(&table.policy.name);
            known.map_err(|error| format!("`cache.policy`: {error}"))?;
        }
        if table.partition.name != auto::AUTO {
            let known = cachewright_partition::entry(&table.partition.name);
            known.map_err(|error| format!("`cache.partition`: {error}"))?;
        }
        let known = cachewright_partition::layout::boxed(&table.layout.name, &table.layout.pairs);
        known.map_err(|error| format!("`cache.layout`: {error}"))?;
        let capacity = table.capacity.ok_or(
            "found no `cache.capacity`, expected a size such as `64MiB` or `10%wss`".to_owned(),
        )?;
        let kinds = KindsSpec::new(&table, folder)?;
        table.workload.clone_from(&kinds.first);
        let model = table.model.as_deref().map(|text| ModelFile::new(text, folder));
        Ok(CacheSpec { table, capacity, model, kinds })
    }
}
