//! A whole stack file, read and checked.
//!
//! The tables of the machine that carries it out are read by that machine, through
//! [`MachineTables`].
//!
//! What two cases of one file can share. A key is compared unless its declaration names what cases
//! that differ in it can share, so that a new key is compared.

use crate::cache::{CacheSpec, StackFacts};
use crate::document::{self, Reader};
use crate::flash::FlashSpec;
use crate::kinds::Warmup;
use crate::names;
use crate::serve::ServeSpec;
use crate::tables::{
    Blocks, CacheTable, ClockChoice, FlashTable, Loop, Offers, ReplayTable, ServeTable, Shadow,
    TenantTable, TopTable,
};
use crate::tenant::{self, TenantSpec};
use cachewright_cache::Shrink;
use cachewright_policy::foreign::is_foreign;
use cachewright_trace::MergeClock;
use cachewright_types::declare::{Declared, Scheme};
use cachewright_types::registry::{RegistryError, Resolved};
use cachewright_types::{Bytes, Key, Nanos, Seed, Value};
use std::path::{Path, PathBuf};

/// Bytes of a stack file at most.
pub const MAX_BYTES: usize = 4 << 20;
/// Narrowest window of throughput.
const NARROWEST: Nanos = Nanos(1_000_000);

/// A machine that carries a stack out, with tables of its own in the file.
pub trait MachineTables: Sized {
    /// The names of its tables.
    const TABLES: &'static [&'static str];
    /// Whether requests have measured response times even without its tables.
    const MEASURES: bool = false;
    /// Its tables, if the file has them. Errors: a key is refused, or does not fit the rest.
    fn read(file: &Reader<'_>, rest: &Rest<'_>) -> Result<Option<Self>, String>;
    /// Checks what only the whole file shows; `machine` is none where it has no tables of it.
    fn check(machine: Option<&Self>, rest: &Rest<'_>) -> Result<(), String>;
    /// Its tables with every default filled in, by name.
    fn resolved(&self) -> Result<Vec<(&'static str, Value)>, String>;
}

/// What a machine may know of the rest of a file.
#[derive(Clone, Copy, Debug)]
pub struct Rest<'a> {
    /// The cache.
    pub cache: &'a CacheSpec,
    /// The `[flash]` table and whether it sets `trim_evicted`.
    pub flash: Option<&'a FlashSpec>,
    /// The replay.
    pub replay: &'a ReplayTable,
}

/// A whole stack file.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack<M> {
    /// The file's path, for messages and for files beside it.
    pub origin: PathBuf,
    /// Shown in tables and reports.
    pub name: String,
    /// Root of all randomness.
    pub seed: Seed,
    /// The cache.
    pub cache: CacheSpec,
    /// The drive under it, if its writes are to be followed, or the log of a store.
    pub flash: Option<FlashSpec>,
    /// The devices, if the replay is to be timed.
    pub stack: Option<M>,
    /// The replay.
    pub replay: ReplayTable,
    /// The live server, if there is one.
    pub serve: Option<ServeSpec>,
    /// The tenants, in order.
    pub tenants: Vec<TenantSpec>,
}

/// The tables of a stack file that are declared here, by name, with their keys.
pub fn tables_of_file() -> Vec<(&'static str, Vec<Key>)> {
    vec![
        ("", TopTable::keys()),
        ("cache", CacheTable::keys()),
        ("flash", FlashTable::keys()),
        ("replay", ReplayTable::keys()),
        ("serve", ServeTable::keys()),
        ("tenant", TenantTable::keys()),
        ("tenant.noise", crate::tables::NoiseTable::keys()),
    ]
}

impl ReplayTable {
    /// Whether requests wait for answers instead of arriving at their trace times.
    pub fn closed(&self) -> bool {
        self.r#loop == Loop::Closed
    }

    /// Whether each request is one block instead of all blocks it touches.
    pub fn unit(&self) -> bool {
        self.blocks == Blocks::Unit
    }

    /// What time zero is in each trace.
    pub fn clock(&self) -> MergeClock {
        match self.clock {
            ClockChoice::Own => MergeClock::Own,
            ClockChoice::Common => MergeClock::Common,
        }
    }

    fn read(file: &Reader<'_>) -> Result<ReplayTable, String> {
        let replay: ReplayTable = file.table("replay")?.read()?;
        if replay.stop == Some(Nanos(0)) {
            return Err("`replay.stop`: found `0s`, expected a time above 0s".to_owned());
        }
        if replay.closed() && replay.warmup.time().is_none() {
            return Err(format!(
                "`replay.warmup`: found `{}`, expected a time in a closed loop, in which requests \
                 have no order before they are sent",
                replay.warmup.text()
            ));
        }
        let window = replay.throughput_window;
        if window.0 > 0 && window < NARROWEST {
            let expected = format!("at least {NARROWEST}, or 0s for none");
            return Err(format!(
                "`replay.throughput_window`: found `{window}`, expected {expected}"
            ));
        }
        Ok(replay)
    }
}

impl<M> Stack<M> {
    /// Checks that every tenant has a trace to be replayed. Errors: one has none.
    pub fn check_traces(&self) -> Result<(), String> {
        match self.tenants.iter().position(|own| own.trace.is_empty()) {
            Some(index) => Err(tenant::without_trace(index)),
            None => Ok(()),
        }
    }

    /// The keys of the whole file.
    pub(crate) fn top(&self) -> TopTable {
        TopTable { name: Some(self.name.clone()), seed: self.seed.0 }
    }
}

/// A stack file whose text was read, and what is set over it.
#[derive(Clone, Debug)]
pub struct StackFile {
    document: Value,
    origin: PathBuf,
}

impl StackFile {
    /// Reads a stack file's text; `origin` is its path, for names and relative traces. Errors: a
    /// text that is too long or no TOML, with line and column.
    pub fn read(text: &str, origin: &Path) -> Result<StackFile, String> {
        if text.len() > MAX_BYTES {
            let found = Bytes(text.len() as u64);
            let expected = Bytes(MAX_BYTES as u64);
            return Err(format!("found a stack of {found}, expected at most {expected}"));
        }
        Ok(StackFile { document: document::parse(text)?, origin: origin.to_owned() })
    }

    /// The path of the file.
    pub fn origin(&self) -> &Path {
        &self.origin
    }

    /// The file with `key=value` pairs set over it, the later over the earlier. Errors: a key that
    /// cannot be set.
    pub fn with(&self, overrides: &[(String, String)]) -> Result<StackFile, String> {
        let mut file = self.clone();
        for (key, value) in overrides {
            document::apply(&mut file.document, key, value)?;
        }
        Ok(file)
    }

    /// The stack that it describes. Errors: the key, what was found and what was expected.
    pub fn stack<M: MachineTables>(&self) -> Result<Stack<M>, String> {
        names::check_texts(&self.document)?;
        Stack::read(&self.document, &self.origin)
    }

    /// The same with each tenant that is `by_volume` replaced by a tenant per volume of its trace.
    /// Errors: also those of `volumes_of`, which finds the volumes.
    pub fn stack_by_volume<M: MachineTables>(
        &self,
        volumes_of: impl Fn(&TenantSpec) -> Result<Vec<String>, String>,
    ) -> Result<Stack<M>, String> {
        let stack = self.stack()?;
        if !stack.tenants.iter().any(|tenant| tenant.by_volume) {
            return Ok(stack);
        }
        let mut document = self.document.clone();
        let Value::Table(pairs) = &mut document else { return Ok(stack) };
        for (_, tables) in pairs.iter_mut().filter(|(key, _)| key == "tenant") {
            let Value::List(tables) = tables else { continue };
            let mut all = Vec::new();
            for (table, tenant) in std::mem::take(tables).into_iter().zip(&stack.tenants) {
                if tenant.by_volume {
                    all.extend(tenant::by_volume(&table, &tenant.name, &volumes_of(tenant)?));
                } else {
                    all.push(table);
                }
            }
            *tables = all;
        }
        Stack::read(&document, &self.origin)
    }
}

impl<M: MachineTables> Stack<M> {
    /// Reads a stack file's text; `origin` is its path, for names and relative traces; `overrides`
    /// are `key=value` pairs set over it. Errors: the key, what was found and what was expected.
    pub fn parse(
        text: &str,
        origin: &Path,
        overrides: &[(String, String)],
    ) -> Result<Stack<M>, String> {
        StackFile::read(text, origin)?.with(overrides)?.stack()
    }

    fn read(document: &Value, origin: &Path) -> Result<Stack<M>, String> {
        let file = Reader::new("", Some(document));
        let own = TopTable::keys();
        let known: Vec<&str> = own.iter().map(|key| key.name).collect();
        let tables = ["cache", "flash", "replay", "serve", "tenant"];
        file.check_known(&[&known, &tables[..], M::TABLES].concat())?;
        let top = top_table(&file, &known)?;
        let stem = origin.file_stem().map_or("stack".into(), |stem| stem.to_string_lossy());
        let name = top.name.unwrap_or_else(|| stem.into_owned());
        names::stack(&name)?;
        let folder = origin.parent().unwrap_or(Path::new(""));
        let mut cache = CacheSpec::read(&file, folder)?;
        let flash = FlashSpec::read(&file, cache.block)?;
        let replay = ReplayTable::read(&file)?;
        let serve = ServeSpec::read(&file, folder)?;
        let machine =
            M::read(&file, &Rest { cache: &cache, flash: flash.as_ref(), replay: &replay })?;
        let live = serve.as_ref().is_some_and(|serve| !serve.devices.is_empty());
        let offers = Offers { devices: machine.is_some(), closed: replay.closed(), live };
        let readers = tenant::readers(&file)?;
        let tenants = tenant::read(&readers, folder, &replay)?;
        offers.check(&file.table("replay")?, &replay)?;
        for (reader, tenant) in readers.iter().zip(&tenants) {
            offers.check::<TenantTable>(reader, tenant)?;
        }
        check_behaviour(&tenants)?;
        cache.choose_schemes(StackFacts {
            tenants: tenants.len(),
            goals: tenants.iter().any(|tenant| tenant.goal.is_some()),
            // Recorded divisions are those of a live server, and so are states.
            responses: M::MEASURES
                || machine.is_some()
                || replay.divisions.is_some()
                || tenants.iter().any(TenantSpec::continues_a_server),
        })?;
        let rest = Rest { cache: &cache, flash: flash.as_ref(), replay: &replay };
        M::check(machine.as_ref(), &rest)?;
        let seed = Seed(top.seed);
        let origin = origin.to_owned();
        let measured = M::MEASURES || machine.is_some();
        let whole =
            Stack { origin, name, seed, cache, flash, stack: machine, replay, serve, tenants };
        whole.check_shadow(measured)?;
        whole.cache.check_shrink()?;
        Ok(whole)
    }
}

/// The keys of the whole file, which stand beside its tables.
fn top_table(file: &Reader<'_>, known: &[&str]) -> Result<TopTable, String> {
    let own = file.pairs().iter().filter(|(key, _)| known.contains(&key.as_str()));
    let own = Value::Table(own.cloned().collect());
    Reader::new("", Some(&own)).read()
}

/// Checks that keys of tenants fit each other.
fn check_behaviour(tenants: &[TenantSpec]) -> Result<(), String> {
    for (index, tenant) in tenants.iter().enumerate() {
        let number = index + 1;
        if tenant.repeat && tenant.recorded_pauses() {
            let expected = "expected `think-time` where a trace is repeated";
            return Err(format!("`tenant[{number}].pauses`: found `recorded`, {expected}"));
        }
        if tenant.repeat && tenant.until.is_none() {
            let expected = "expected a time in `stop` or `replay.stop` at which that ends";
            return Err(format!("`tenant[{number}].repeat`: found without an end, {expected}"));
        }
    }
    Ok(())
}

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
                ("separation", resolved_scheme("flash.separation", separated, separation)?),
                ("reclaim", resolved_scheme("flash.reclaim", cleaned, reclaim)?),
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
        let layouts = cachewright_partition::layout::resolved;
        let divided = partitions(&partition.name, &partition.pairs);
        let laid_out = layouts(&layout.name, &layout.pairs);
        let schemes = [
            ("policy", policy(&self.cache.policy)?),
            ("partition", resolved_scheme("cache.partition", partition, divided)?),
            ("layout", resolved_scheme("cache.layout", layout, laid_out)?),
        ];
        let mut table = with(pairs::<CacheTable>(&self.cache), schemes);
        // These stand there only where they do something, as keys of served volumes do.
        table.retain(|(key, _)| match key.as_str() {
            "shadow" => self.cache.shadow != Shadow::None,
            "shrink" => self.cache.shrink != Shrink::AtOnce,
            _ => true,
        });
        if let Some(characterizer) = &self.cache.kinds.characterizer {
            let named = &characterizer.named;
            let read = cachewright_policy::characterize::resolved(&named.name, &named.pairs);
            let mut whole = resolved_scheme("cache.characterize", named, read)?;
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
    resolved_scheme("cache.policy", scheme, resolved)
}

/// A scheme's name and all its settings. Errors: a setting is refused.
fn resolved_scheme(
    key: &str,
    scheme: &Scheme,
    settings: Result<Resolved, RegistryError>,
) -> Result<Value, String> {
    let settings = settings.map_err(|error| format!("`{key}`: {error}"))?;
    let name = ("name".to_owned(), Value::Text(scheme.name.clone()));
    let given = settings.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Ok(Value::Table([name].into_iter().chain(given).collect()))
}

/// What two cases can share, as declarations name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// The block accesses of all tenants.
    Recording,
    /// A pass over a recording, with the signals of its intervals; these share the recording, too.
    Pass,
    /// The replays of each tenant alone with the whole cache.
    Alone,
    /// The replays alone at every size and interval, which partitioners that know the future read.
    Outlook,
}

impl Shared {
    /// The words of declarations that permit a difference.
    fn words(self) -> &'static [&'static str] {
        match self {
            Shared::Recording => &["recording", "pass"],
            Shared::Pass => &["pass"],
            Shared::Alone => &["alone"],
            Shared::Outlook => &["alone", "outlook"],
        }
    }

    fn permits<T: Declared>(self, a: &T, b: &T) -> bool {
        let known = |word: &str| self.words().contains(&word);
        a.differences(b).iter().all(|shares| shares.split(", ").any(known))
    }
}

impl<M: PartialEq> Stack<M> {
    /// The histories that are replayed before the traces, by tenant; empty where none are.
    fn replayed_first(&self) -> Vec<Option<&Path>> {
        let is_warmup = self.replay.warmup == Warmup::History;
        self.tenants.iter().filter(|_| is_warmup).map(|tenant| tenant.history.as_deref()).collect()
    }

    /// Whether no key in which two stacks differ keeps them from sharing this. Devices matter to
    /// replays alone only.
    pub fn can_share(&self, other: &Stack<M>, shared: Shared) -> bool {
        let flash = |stack: &Stack<M>| stack.flash.as_deref().cloned().unwrap_or_default();
        let on_devices = matches!(shared, Shared::Alone | Shared::Outlook);
        let mut tenants = self.tenants.iter().zip(&other.tenants);
        self.replayed_first() == other.replayed_first()
            && shared.permits(&self.top(), &other.top())
            && shared.permits::<CacheTable>(&self.cache, &other.cache)
            && shared.permits(&self.replay, &other.replay)
            && shared.permits::<FlashTable>(&flash(self), &flash(other))
            && self.tenants.len() == other.tenants.len()
            && tenants.all(|(a, b)| shared.permits::<TenantTable>(a, b))
            && (!on_devices || self.stack == other.stack)
    }
}
