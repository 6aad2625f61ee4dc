//! The stack file: one TOML file that describes tenants, cache and replay.
//!
//! For: checked settings with defaults filled in. Must never know: how they are carried out. Every
//! key is declared once, here; unknown keys are refused with the nearest known one. `check` prints
//! the resolved form.

pub mod device;
pub mod flash;
mod goal;
pub mod layout;
pub mod manner;
mod model;
pub mod names;
mod overrides;
mod resolved;
mod section;
mod stop;
mod store;
mod tenant;

pub use device::{DeviceSpec, Front, StackSpec};
pub use flash::FlashSpec;
pub use goal::Goal;
pub use manner::NoiseSpec;
pub use model::{JudgeSpec, KindsSpec, ModelFile};
pub use overrides::{apply, full_key};
pub use stop::Stop;
pub use tenant::TenantSpec;

use crate::ExperimentError;
use cachewright_cache::WriteMode;
use cachewright_system::BlockKind;
use cachewright_trace::Clock;
use cachewright_types::{Bytes, Nanos, Seed, Size, Value};
use section::Section;
use std::path::Path;

/// Bytes of a stack file at most.
pub const MAX_BYTES: usize = 4 << 20;

/// A scheme chosen by name, with its own settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The registered name.
    pub name: String,
    /// Settings given; the others keep their defaults.
    pub pairs: Vec<(String, Value)>,
}

/// The `[cache]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSpec {
    /// Size of the cache.
    pub capacity: Size,
    /// Size of a block in bytes; a power of two.
    pub block: Bytes,
    /// Which block stays.
    pub policy: Named,
    /// How much each tenant gets.
    pub partition: Named,
    /// The file of a model of all tenants together, for partitioners that predict by one.
    pub model: Option<ModelFile>,
    /// Models by kind of workload, for policies that decide by one.
    pub kinds: KindsSpec,
    /// Which channels hold whose blocks.
    pub layout: Named,
    /// Where writes go.
    pub write: WriteMode,
    /// Whether trims drop cached blocks.
    pub trim: bool,
}

/// The `[replay]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplaySpec {
    /// Requests wait for answers instead of arriving at their trace times.
    pub closed: bool,
    /// What time zero is in each trace.
    pub clock: Clock,
    /// One block per request instead of all blocks it touches.
    pub unit: bool,
    /// Time between two divisions of the cache.
    pub interval: Nanos,
    /// Windows of the time series.
    pub windows: u32,
    /// What arrives before is replayed and left out of what is counted.
    pub warmup: Nanos,
    /// When everybody stops who does not say when.
    pub stop: Option<Nanos>,
    /// Width of the windows in which answers are counted by tenant; 0 for none.
    pub throughput_window: Nanos,
    /// Requests under way per tenant (closed loop).
    pub queue_depth: u32,
    /// Pause after an answer (closed loop).
    pub think_time: Nanos,
    /// Duration of a hit (closed loop).
    pub hit_time: Nanos,
    /// Duration of a miss (closed loop).
    pub miss_time: Nanos,
    /// Share of each tenant's accesses, from its first, with which a partitioner that needs goals
    /// is profiled ahead of the run.
    pub profile_share: f64,
    /// Measure every tenant's exact LRU curve beside the caches.
    pub curves: bool,
    /// Bound on the block accesses kept in memory.
    pub max_accesses: u64,
}

/// A whole stack file.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Shown in tables and reports.
    pub name: String,
    /// Root of all randomness.
    pub seed: Seed,
    /// The cache.
    pub cache: CacheSpec,
    /// The drive under it, if its writes are to be followed, or the log of a store.
    pub flash: Option<FlashSpec>,
    /// The devices, if the replay is to be timed.
    pub stack: Option<StackSpec>,
    /// The replay.
    pub replay: ReplaySpec,
    /// The tenants, in order.
    pub tenants: Vec<TenantSpec>,
}

impl Named {
    /// A scheme as an option gives it: a bare name, or an inline table with `name` and settings.
    /// `key` is the option, for messages.
    pub fn from_option(key: &str, text: &str) -> Result<Named, String> {
        let mut table = toml::Table::new();
        table.insert(key.to_owned(), overrides::read(text));
        Section::new("", &table, &[key])?.named(key, "")
    }
}

impl Spec {
    /// Reads a stack file's text; `origin` is its path, for messages and relative trace paths;
    /// `overrides` are `key=value` pairs set over it.
    pub fn parse(
        text: &str,
        origin: &Path,
        overrides: &[(String, String)],
    ) -> Result<Spec, ExperimentError> {
        let refuse = |message: String| ExperimentError::Spec { origin: origin.to_owned(), message };
        if text.len() > MAX_BYTES {
            let found = Bytes(text.len() as u64);
            let expected = Bytes(MAX_BYTES as u64);
            return Err(refuse(format!("found a stack of {found}, expected at most {expected}")));
        }
        let mut table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| refuse(syntax(text, &error)))?;
        for (key, value) in overrides {
            apply(&mut table, key, value).map_err(refuse)?;
        }
        names::check_texts(&table).map_err(refuse)?;
        Spec::from_table(&table, origin).map_err(refuse)
    }

    fn from_table(table: &toml::Table, origin: &Path) -> Result<Spec, String> {
        let keys = ["name", "seed", "cache", "flash", "device", "machine", "replay", "tenant"];
        let top = Section::new("", table, &keys)?;
        let stem = origin.file_stem().map_or("stack".into(), |stem| stem.to_string_lossy());
        let name = names::stack(&top, &stem)?;
        let seed = Seed(top.whole("seed", 1, 0..=u64::MAX >> 1)?);
        let cache = CacheSpec::from_section(&top, origin)?;
        let flash = FlashSpec::from_section(&top, cache.block)?;
        let replay = ReplaySpec::from_section(&top)?;
        let stack = StackSpec::from_section(&top, &replay, cache.block, flash.as_ref())?;
        if replay.warmup.0 > 0 && replay.closed && stack.is_none() {
            let expected = "expected `replay.loop = \"open\"`, or devices";
            let found = replay.warmup;
            return Err(format!(
                "`replay.warmup`: found {found} in a closed loop without devices, {expected}"
            ));
        }
        let tenants = tenant::from_section(&top, origin, &replay)?;
        layout::check(&cache.layout, stack.as_ref(), &tenants)?;
        manner::check(&replay, stack.as_ref(), &tenants)?;
        Ok(Spec { name, seed, cache, flash, stack, replay, tenants })
    }

    /// How requests become blocks.
    pub fn block_kind(&self) -> BlockKind {
        if self.replay.unit {
            BlockKind::Unit
        } else {
            BlockKind::Split { shift: self.cache.block.0.trailing_zeros() }
        }
    }
}

impl CacheSpec {
    fn from_section(top: &Section<'_>, origin: &Path) -> Result<CacheSpec, String> {
        let keys = [
            "capacity",
            "block",
            "policy",
            "partition",
            "model",
            "models",
            "workload",
            "characterize",
            "layout",
            "write",
            "trim",
        ];
        let section = top.required_table("cache", &keys)?;
        let block = section.bytes("block", Bytes(4096))?;
        if !block.0.is_power_of_two() || !(512..=1 << 30).contains(&block.0) {
            return Err(format!(
                "`cache.block`: found `{block}`, expected a power of two from 512B to 1GiB"
            ));
        }
        let policy = section.named("policy", "lru")?;
        let known = cachewright_policy::entry(&policy.name);
        known.map_err(|error| format!("`cache.policy`: {error}"))?;
        let partition = section.named("partition", "shared")?;
        let known = cachewright_partition::entry(&partition.name);
        known.map_err(|error| format!("`cache.partition`: {error}"))?;
        let layout = section.named("layout", "striped")?;
        let known = cachewright_layout::boxed(&layout.name, &layout.pairs);
        known.map_err(|error| format!("`cache.layout`: {error}"))?;
        let folder = origin.parent().unwrap_or(Path::new(""));
        let modes = WriteMode::ALL.map(WriteMode::name);
        let write = section.choice("write", &modes, 0)?;
        let trim = section.choice("trim", &["drop", "ignore"], 0)?;
        Ok(CacheSpec {
            capacity: section.size("capacity")?,
            block,
            policy,
            partition,
            model: ModelFile::from_section(&section, folder)?,
            kinds: KindsSpec::from_section(&section, folder)?,
            layout,
            write: WriteMode::ALL[write],
            trim: trim == 0,
        })
    }
}

impl ReplaySpec {
    fn from_section(top: &Section<'_>) -> Result<ReplaySpec, String> {
        let keys = [
            "loop",
            "clock",
            "blocks",
            "interval",
            "windows",
            "warmup",
            "stop",
            "throughput_window",
            "queue_depth",
            "think_time",
            "hit_time",
            "miss_time",
            "profile_share",
            "curves",
            "max_accesses",
        ];
        let section = top.table("replay", &keys)?;
        Ok(ReplaySpec {
            closed: section.choice("loop", &["open", "closed"], 0)? == 1,
            clock: [Clock::Own, Clock::Common][section.choice("clock", &["own", "common"], 0)?],
            unit: section.choice("blocks", &["split", "unit"], 0)? == 1,
            interval: section.duration("interval", Nanos(2_000_000_000))?,
            windows: section.whole("windows", 100, 0..=10_000)? as u32,
            warmup: section.duration("warmup", Nanos(0))?,
            stop: stop(&section)?,
            throughput_window: throughput_window(&section)?,
            queue_depth: section.whole("queue_depth", 8, 1..=65_536)? as u32,
            think_time: section.duration("think_time", Nanos(0))?,
            hit_time: section.duration("hit_time", Nanos(100_000))?,
            miss_time: section.duration("miss_time", Nanos(5_000_000))?,
            profile_share: section.share("profile_share", 0.1)?,
            curves: section.boolean("curves", true)?,
            max_accesses: section.whole("max_accesses", 1 << 30, 1..=u64::from(u32::MAX - 1))?,
        })
    }
}

/// What is wrong with a text that is no TOML, and where, in one line of bounded length.
fn syntax(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().lines().collect::<Vec<_>>().join("; ");
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return message;
    };
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
    format!("line {line}, column {column}: {message}")
}

/// When everybody stops, if that is said.
fn stop(section: &Section<'_>) -> Result<Option<Nanos>, String> {
    let Some(found) = section.get("stop") else { return Ok(None) };
    match section.duration("stop", Nanos(0))? {
        Nanos(0) => Err(section.refuse("stop", found, "a time above 0s")),
        time => Ok(Some(time)),
    }
}

/// Narrowest window of throughput.
const NARROWEST: Nanos = Nanos(1_000_000);

fn throughput_window(section: &Section<'_>) -> Result<Nanos, String> {
    let Some(found) = section.get("throughput_window") else { return Ok(Nanos(0)) };
    let window = section.duration("throughput_window", Nanos(0))?;
    if window.0 == 0 || window >= NARROWEST {
        return Ok(window);
    }
    let expected = format!("at least {NARROWEST}, or 0s for none");
    Err(section.refuse("throughput_window", found, &expected))
}
