//! What operators and the service manager are told, and the signals by which they tell a server
//! something.
//!
//! Lines of text at the start, at the end, and for each device that fails; `sd_notify(3)` where
//! systemd listens. SIGHUP says that the stack file has changed, SIGUSR1 asks for the end of the
//! recording under way.

use crate::error::LiveError;
use crate::plan::{LaidOut, LivePlan};
use cachewright_live::blocks::{
    BlockServer, Passage, Restored, Revived, ServeCounts, ServedVolume, VolumePassage,
};
use cachewright_live::log::UnreadablePage;
use cachewright_types::{Bytes, TenantId};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGUSR1};
use signal_hook::flag;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
        let counts = *blocks.cache().engine().counts(TenantId(tenant as u16));
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
    plan: &LivePlan,
    laid_out: &LaidOut,
    served: &[ServedVolume],
    addresses: &[&str],
    guests: &[(usize, &str)],
) -> Vec<String> {
    let device = |device: &u32| plan.serve.devices[*device as usize].display().to_string();
    let line = |(tenant, served): (usize, &ServedVolume)| {
        let planned = &plan.volumes[tenant];
        let (export, backing) = (&planned.export, planned.backing.display());
        let read_only = if planned.read_only { ", read-only" } else { "" };
        let cached = laid_out.of_tenants.get(tenant).map(|own| {
            format!(", cached on {}", own.iter().map(device).collect::<Vec<_>>().join(", "))
        });
        let own = guests.iter().filter(|(guest, _)| *guest == tenant);
        let own = own.map(|(_, socket)| format!("vhost:{socket}"));
        let addresses = addresses.iter().map(|address| (*address).to_owned()).chain(own);
        format!(
            "export `{export}`: {} of {backing}{read_only}, at {}{}",
            Bytes(served.bytes),
            addresses.collect::<Vec<_>>().join(", "),
            cached.unwrap_or_default()
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
    let rest = [
        (written_back, "written back"),
        (dropped, "beyond the quotas and freed"),
        (damaged, damage),
    ];
    let rest = rest.iter().filter(|(blocks, _)| *blocks > 0);
    let rest: String = rest.map(|(blocks, what)| format!(", {} {what}", bytes(*blocks))).collect();
    format!(
        "cache: {capacity} ({}) on {devices} by {engine}; {found}{rest}",
        plan.schemes().join(", ")
    )
}

/// What was said so far.
pub struct Failures {
    exports: Vec<String>,
    /// The cache's devices, in the order of the set.
    devices: Vec<PathBuf>,
    /// Whether the cache is known to have failed, and each volume.
    cache: bool,
    volumes: Vec<bool>,
    /// How each volume is served past the cache, as far as it was said.
    passages: Vec<Option<Passage>>,
}

impl Failures {
    /// Nothing has failed yet.
    pub fn new(exports: Vec<String>, devices: Vec<PathBuf>) -> Failures {
        let (volumes, passages) = (vec![false; exports.len()], vec![None; exports.len()]);
        Failures { exports, devices, cache: false, volumes, passages }
    }

    /// One more export.
    pub fn add(&mut self, export: String) {
        self.exports.push(export);
        self.volumes.push(false);
        self.passages.push(None);
    }

    /// A line for each device that has failed since the last call, and for each volume that is
    /// served otherwise since.
    pub fn news(&mut self, blocks: &BlockServer) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.cache
            && let Some(error) = blocks.log_failure()
        {
            self.cache = true;
            let device = blocks.failed_device().and_then(|device| self.devices.get(device));
            let what = match device {
                Some(path) => format!("the device {} has failed", path.display()),
                None => "it takes nothing any more".to_owned(),
            };
            lines.push(format!(
                "cache: {what} ({error}); the cache is bypassed, and any recording ends here"
            ));
        }
        for (index, export) in self.exports.iter().enumerate() {
            let tenant = TenantId(index as u16);
            let has_failed = blocks.volume_has_failed(tenant);
            if !self.volumes[index] && has_failed {
                lines.push(format!(
                    "export `{export}`: its backing device has failed; requests get errors until \
                     it works again and the server is reloaded"
                ));
            }
            self.volumes[index] = has_failed;
            let found = blocks.passage(tenant);
            let passage = found.map(|found| found.passage);
            if let Some(found) = found.filter(|_| passage != self.passages[index]) {
                self.passages[index] = passage;
                lines.extend(passage_line(export, &found, blocks.block_bytes()));
            }
        }
        lines
    }
}

/// A line about a backing device that was tried again.
pub fn revived(export: &str, found: &Revived, block_bytes: u64) -> OperatorLine {
    let Revived { written_back, damaged, error, .. } = *found;
    if let Some(error) = error {
        return OperatorLine::warning(format!(
            "export `{export}`: its backing device fails still ({error}); requests get errors \
             until it works and the server is reloaded once more"
        ));
    }
    let written_back = Bytes(written_back * block_bytes);
    let served = format!(
        "export `{export}`: its backing device works again; {written_back} that only the cache had \
         were written back, and requests are served"
    );
    match Bytes(damaged * block_bytes) {
        Bytes(0) => OperatorLine::info(served),
        damaged => OperatorLine::warning(format!(
            "{served}; {damaged} of the cache are damaged, reads of them fail until they are \
             overwritten"
        )),
    }
}

/// A line for a volume that is served past the cache from now on.
fn passage_line(export: &str, found: &VolumePassage, block_bytes: u64) -> Option<String> {
    let VolumePassage { passage, rescued, lost } = *found;
    let served = match passage {
        Passage::Passes => "is served past the cache",
        Passage::ReadsOnly => {
            "can be read only, because no device of the cache takes a mark that it is out of date"
        }
        Passage::Waits | Passage::Fails => return None,
    };
    let (rescued, lost) = (Bytes(rescued * block_bytes), Bytes(lost * block_bytes));
    let loss = match lost {
        Bytes(0) => "nothing is lost".to_owned(),
        lost if passage == Passage::ReadsOnly => format!("{lost} cannot be read"),
        lost => format!("{lost} are lost, reads of them fail until they are overwritten"),
    };
    Some(format!(
        "export `{export}` {served}; {rescued} of dirty content were written back, {loss}"
    ))
}

/// A service manager that may wait for words of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manager {
    /// How often it wants to hear from the server, if it does, and when it has last.
    every_ns: Option<u64>,
    last_ns: u64,
}

impl Manager {
    /// The manager of this process.
    pub fn found() -> Manager {
        // Half of the time after which it takes the server for hung, as its manual asks for.
        let limit = sd_notify::watchdog_enabled().map(|limit| limit.as_nanos() as u64 / 2);
        Manager { every_ns: limit, last_ns: 0 }
    }

    /// Clients can connect. `status` is what the manager shows.
    pub fn ready(&self, status: &str) {
        tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// The server goes on. To be called some times a second.
    pub fn tick(&mut self, now_ns: u64) {
        if self.every_ns.is_some_and(|every_ns| now_ns.saturating_sub(self.last_ns) >= every_ns) {
            self.last_ns = now_ns;
            tell(&[NotifyState::Watchdog]);
        }
    }

    /// Another stack is taken over; [`Manager::ready`] says when that is done.
    pub fn reloading(&self) {
        let mut words = vec![NotifyState::Reloading];
        words.extend(NotifyState::monotonic_usec_now());
        tell(&words);
    }

    /// Something changed that operators are told.
    pub fn status(&self, status: &str) {
        tell(&[NotifyState::Status(status)]);
    }

    /// The server ends.
    pub fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }
}

/// The numbers of sockets that the manager has passed. Errors: what it says of them is no number.
pub fn passed_sockets() -> std::io::Result<Vec<i32>> {
    sd_notify::listen_fds().map(Iterator::collect)
}

/// A manager that does not listen is no reason to stop.
fn tell(words: &[NotifyState<'_>]) {
    let _sent = sd_notify::notify(words);
}

/// Signals, which end a process no more once one of these was made.
#[derive(Clone, Debug)]
pub struct ControlSignals {
    reload: Arc<AtomicBool>,
    roll: Arc<AtomicBool>,
}

impl ControlSignals {
    /// Listens from now on. Errors: the system's.
    pub fn listen() -> Result<ControlSignals, LiveError> {
        let listen = |signal| {
            let came = Arc::new(AtomicBool::new(false));
            let known = flag::register(signal, Arc::clone(&came));
            known.map(|_| came).map_err(|error| LiveError::Failed(format!("signals: {error}")))
        };
        Ok(ControlSignals { reload: listen(SIGHUP)?, roll: listen(SIGUSR1)? })
    }

    /// Whether SIGHUP came since the last call.
    pub fn take_reload(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }

    /// Whether SIGUSR1 came since the last call.
    pub fn take_roll(&self) -> bool {
        self.roll.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_of_volumes_that_take_no_writes_is_not_said_to_wait_for_some() {
        let found = |passage| VolumePassage { passage, rescued: 2, lost: 1 };
        let line = |passage| passage_line("a", &found(passage), 4096).unwrap_or_default();
        let read_only = line(Passage::ReadsOnly);
        assert!(read_only.ends_with("were written back, 4KiB cannot be read"), "{read_only}");
        assert!(line(Passage::Passes).ends_with("reads of them fail until they are overwritten"));
        assert_eq!(passage_line("a", &found(Passage::Waits), 4096), None);
    }
}
