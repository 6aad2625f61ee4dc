//! What operators are told of a server that starts or ends.
//!
//! For: lines of text. Must never know: how requests are carried out. Units: bytes, blocks.

use crate::layout::LaidOut;
use crate::plan::LivePlan;
use cachewright_live::blocks::{BlockServer, Restored, ServeCounts, ServedVolume};
use cachewright_live::log::UnreadablePage;
use cachewright_types::{Bytes, TenantId};
use std::path::PathBuf;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It is as wanted.
    Info,
    /// Something has failed, or was refused.
    Warning,
}

/// Something that operators are told while a server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorLine {
    /// How much it matters.
    pub severity: Severity,
    /// A sentence.
    pub text: String,
}

impl OperatorLine {
    /// Something that is as wanted.
    pub fn info(text: impl Into<String>) -> OperatorLine {
        OperatorLine { severity: Severity::Info, text: text.into() }
    }

    /// Something that has failed, or was refused.
    pub fn warning(text: impl Into<String>) -> OperatorLine {
        OperatorLine { severity: Severity::Warning, text: text.into() }
    }
}

/// A line for each export: what its requests found in the cache; then one for the log.
pub fn found(exports: &[String], blocks: &BlockServer) -> Vec<String> {
    let line = |(tenant, name): (usize, &String)| {
        let counts = blocks.cache().engine().counts(TenantId(tenant as u16));
        format!(
            "`{name}`: {} of {} blocks read were in the cache, {} of {} written; {} admitted, {} \
             evicted",
            counts.read_hits,
            counts.reads,
            counts.write_hits,
            counts.writes,
            counts.admissions(),
            counts.evictions
        )
    };
    exports.iter().enumerate().map(line).chain([appended(blocks)]).collect()
}

/// What went to the log, and why.
fn appended(blocks: &BlockServer) -> String {
    let counts = blocks.counts();
    let ServeCounts { written, moved, dropped, cleaned, .. } = counts;
    let dropped = match dropped {
        0 => String::new(),
        dropped => format!(", {dropped} dropped"),
    };
    format!(
        "log: {written} blocks written, {moved} moved by the cleaning of {cleaned} \
         segments{dropped}; write amplification {:.3}",
        counts.write_amplification()
    )
}

/// A line for each export.
pub fn described(
    (plan, laid_out): (&LivePlan, &LaidOut),
    served: &[ServedVolume],
    addresses: &[&str],
) -> Vec<String> {
    let device = |device: &u32| plan.serve.devices[*device as usize].display().to_string();
    let line = |(tenant, served): (usize, &ServedVolume)| {
        let planned = &plan.volumes[tenant];
        let (export, backing) = (&planned.export, planned.backing.display());
        let read_only = if planned.read_only { ", read-only" } else { "" };
        let own = laid_out.of_tenants.get(tenant).map(|own| {
            format!(", cached on {}", own.iter().map(device).collect::<Vec<_>>().join(", "))
        });
        format!(
            "export `{export}`: {} of {backing}{read_only}, at {}{}",
            Bytes(served.bytes),
            addresses.join(", "),
            own.unwrap_or_default()
        )
    };
    served.iter().enumerate().map(line).collect()
}

/// Most pages that are named; more are counted.
const NAMED_PAGES: usize = 8;

/// A line for each page of the cache's devices, in the order of the set, that cannot be read.
pub fn unreadable(paths: &[PathBuf], pages: &[UnreadablePage]) -> Vec<String> {
    let line = |page: &UnreadablePage| {
        let path = paths.get(page.device).map(|path| path.display().to_string());
        format!(
            "{}: byte {} cannot be read ({}): what stood there counts as damaged",
            path.unwrap_or_default(),
            page.offset,
            page.error
        )
    };
    let mut lines: Vec<String> = pages.iter().take(NAMED_PAGES).map(line).collect();
    if pages.len() > NAMED_PAGES {
        lines.push(format!(
            "cache: {} pages cannot be read in all, see `cachewright live check`",
            pages.len()
        ));
    }
    lines
}

/// What the cache is, and what was found in it.
pub fn summary(plan: &LivePlan, engine: &str, restored: &Restored) -> String {
    let bytes = |blocks: u64| Bytes(blocks * plan.block_bytes());
    let Restored { clean, dirty, written_back, dropped, damaged } = *restored;
    let capacity = Bytes(plan.capacity_bytes());
    let devices = match plan.serve.devices.len() {
        1 => "1 device".to_owned(),
        many => format!("{many} devices"),
    };
    let found = format!("found {} clean, {} dirty", bytes(clean), bytes(dirty));
    let damage = "dirty that are damaged: reads of them fail, see `cachewright live check`";
    let rest = [(written_back, "written back"), (dropped, "dropped"), (damaged, damage)];
    let rest = rest.iter().filter(|(blocks, _)| *blocks > 0);
    let rest: String = rest.map(|(blocks, what)| format!(", {} {what}", bytes(*blocks))).collect();
    format!(
        "cache: {capacity} ({}) on {devices} by {engine}; {found}{rest}",
        plan.schemes().join(", ")
    )
}
