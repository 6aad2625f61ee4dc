//! A stack file with every default filled in.
//!
//! For: `check`, the result file and telling cases apart. Must never know: what is done with it.

use crate::stack::{MachineTables, Stack};
use crate::tables::{CacheTable, ServeTable, Shadow, TenantTable};
use cachewright_policy::foreign::is_foreign;
use cachewright_types::Value;
use cachewright_types::declare::{Declared, Scheme};
use cachewright_types::registry::{RegistryError, Resolved};

/// Keys and values of a table.
type ResolvedPairs = Vec<(String, Option<Value>)>;

/// A table of a resolved file: keys without a value stand in it, too.
#[derive(Clone, Debug, PartialEq)]
pub enum ResolvedEntry {
    /// A value; nothing where there is none.
    Value(Option<Value>),
    /// A table.
    Table(Vec<(String, ResolvedEntry)>),
    /// Tables in order.
    List(Vec<ResolvedEntry>),
}

impl<M: MachineTables> Stack<M> {
    /// Every table with every key: schemes with all their settings, sizes and times with units.
    /// Errors: a scheme's setting is refused.
    pub fn resolved(&self) -> Result<ResolvedEntry, String> {
        let tenants = self.tenants.iter().map(|own| tenant(pairs::<TenantTable>(own))).collect();
        let mut whole = values(pairs(&self.top()));
        whole.extend([
            ("cache".to_owned(), self.cache_table()?),
            ("replay".to_owned(), entry(given(pairs(&self.replay), &["divisions"]))),
            ("tenant".to_owned(), ResolvedEntry::List(tenants)),
        ]);
        if let Some(table) = self.flash.as_deref() {
            let (separated, cleaned) = (&table.separation, &table.reclaim);
            let separation =
                cachewright_ftl::separation::resolved(&separated.name, &separated.pairs);
            let reclaim = cachewright_ftl::reclaim::resolved(&cleaned.name, &cleaned.pairs);
            let schemes = [
                ("separation", scheme("flash.separation", separated, separation)?),
                ("reclaim", scheme("flash.reclaim", cleaned, reclaim)?),
            ];
            whole.push(("flash".to_owned(), entry(with(pairs(table), schemes))));
        }
        if let Some(serve) = self.serve.as_deref() {
            whole.push(("serve".to_owned(), entry(pairs::<ServeTable>(serve))));
        }
        for (name, table) in self.stack.as_ref().map_or(Ok(Vec::new()), MachineTables::resolved)? {
            whole.push((name.to_owned(), ResolvedEntry::Value(Some(table))));
        }
        Ok(ResolvedEntry::Table(whole))
    }

    fn cache_table(&self) -> Result<ResolvedEntry, String> {
        let (partition, layout) = (&self.cache.partition, &self.cache.layout);
        let partitions = cachewright_partition::registry::resolved;
        let layouts = cachewright_partition::layout::registry::resolved;
        let divided = partitions(&partition.name, &partition.pairs);
        let laid_out = layouts(&layout.name, &layout.pairs);
        let schemes = [
            ("policy", policy(&self.cache.policy)?),
            ("partition", scheme("cache.partition", partition, divided)?),
            ("layout", scheme("cache.layout", layout, laid_out)?),
        ];
        let mut table = with(pairs::<CacheTable>(&self.cache), schemes);
        // Shadow partitions stand there only where they are, as keys of served volumes do.
        table.retain(|(key, _)| key != "shadow" || self.cache.shadow != Shadow::None);
        if let Some(characterizer) = &self.cache.kinds.characterizer {
            let named = &characterizer.named;
            let read =
                cachewright_policy::characterize::registry::resolved(&named.name, &named.pairs);
            let mut whole = scheme("cache.characterize", named, read)?;
            if let Value::Table(pairs) = &mut whole {
                pairs.push(("model".to_owned(), Value::Text(characterizer.model.text.clone())));
                pairs.push(("every".to_owned(), Value::Text(characterizer.every.exact())));
            }
            table = with(table, [("characterize", whole)]);
        }
        Ok(entry(table))
    }
}

fn pairs<T: Declared>(table: &T) -> ResolvedPairs {
    table.values().into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A table with some values replaced.
fn with<const N: usize>(mut table: ResolvedPairs, values: [(&str, Value); N]) -> ResolvedPairs {
    for (key, value) in values {
        for (_, old) in table.iter_mut().filter(|(name, _)| name == key) {
            *old = Some(value.clone());
        }
    }
    table
}

fn entry(table: ResolvedPairs) -> ResolvedEntry {
    ResolvedEntry::Table(values(table))
}

fn values(table: ResolvedPairs) -> Vec<(String, ResolvedEntry)> {
    table.into_iter().map(|(key, value)| (key, ResolvedEntry::Value(value))).collect()
}

/// A tenant's table; lists of models, goals in response time, and what is served, stand in it only
/// where there are some.
fn tenant(table: ResolvedPairs) -> ResolvedEntry {
    let optional = [
        "by_volume",
        "history",
        "model_updates",
        "schedule",
        "goal_response",
        "goal_p99",
        "backing",
        "export",
        "clients",
        "read_only",
        "max_iops",
        "max_bandwidth",
    ];
    entry(given(table, &optional))
}

/// A table in which `optional` keys stand only where they have a value that is not false.
fn given(table: ResolvedPairs, optional: &[&str]) -> ResolvedPairs {
    let shown = |(key, value): &(String, Option<Value>)| {
        let is_given = value.as_ref().is_some_and(|value| *value != Value::Bool(false));
        is_given || !optional.contains(&key.as_str())
    };
    table.into_iter().filter(shown).collect()
}

fn policy(scheme: &Scheme) -> Result<Value, String> {
    let resolved = cachewright_policy::registry::resolved(&scheme.name, &scheme.pairs);
    if is_foreign(&scheme.name) {
        // Only the code knows its defaults.
        let given = scheme.pairs.iter().cloned();
        let name = ("name".to_owned(), Value::Text(scheme.name.clone()));
        return Ok(Value::Table([name].into_iter().chain(given).collect()));
    }
    self::scheme("cache.policy", scheme, resolved)
}

/// A scheme's name and all its settings. Errors: a setting is refused.
fn scheme(
    key: &str,
    scheme: &Scheme,
    settings: Result<Resolved, RegistryError>,
) -> Result<Value, String> {
    let settings = settings.map_err(|error| format!("`{key}`: {error}"))?;
    let name = ("name".to_owned(), Value::Text(scheme.name.clone()));
    let given = settings.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Ok(Value::Table([name].into_iter().chain(given).collect()))
}
