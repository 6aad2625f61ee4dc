//! A server that goes on by another stack.
//!
//! For: tenants that come, grow and go, other quotas, caps and bounds, without a restart. Must
//! never know: how a volume comes or goes. Units: bytes, blocks. All is checked before anything
//! changes; a reload that is refused changes nothing. Volumes are in the devices' table, durably,
//! before anything else.

use super::{Server, export, set_limits};
use crate::changes::{Changes, Member};
use crate::devices::{check_space, unsynced};
use crate::error::LiveError;
use crate::history::Ahead;
use crate::lines::OperatorLine;
use crate::memory;
use crate::plan::LivePlan;
use crate::reading::HistoryReading;
use crate::volumes::{KnownVolume, matched_sizes};
use cachewright_cache::Quotas;
use cachewright_live::blocks::{Division, ServedVolume};
use cachewright_live::io::aside::Aside;
use cachewright_live::io::open::{FileAccess, open_file};
use cachewright_live::io::{FileId, Io, IoOp, batch};
use cachewright_types::{Bytes, TenantId};

/// The quotas and the division that a server goes on with.
type Divided = (Quotas, Option<Division>);

/// A stack that is to be taken over.
pub(super) struct PendingReload {
    plan: Result<LivePlan, LiveError>,
    /// Histories that are read before.
    reading: Option<HistoryReading>,
}

impl Server {
    /// Begins to take another stack over, in place of one that waits; see [`Server::end_reload`].
    pub(super) fn begin_reload(&mut self, plan: Result<LivePlan, LiveError>) {
        let begun = plan.and_then(|plan| {
            let changes =
                Changes::between(&self.plan, (plan.clone(), Vec::new()), self.tenants.members())?;
            let reading = if changes.divides { HistoryReading::begin(&plan)? } else { None };
            Ok((plan, reading))
        });
        self.pending = Some(match begun {
            Ok((plan, reading)) => PendingReload { plan: Ok(plan), reading },
            Err(error) => PendingReload { plan: Err(error), reading: None },
        });
    }

    /// Takes the stack over that waits, when its histories are read; returns what operators are
    /// told then. To be called some times a second.
    pub(super) fn end_reload(&mut self) -> Option<Vec<OperatorLine>> {
        let PendingReload { plan, reading } = self.pending.take()?;
        let ahead = match &reading {
            None => Ok(Vec::new()),
            Some(under_way) => match under_way.outcome() {
                Some(outcome) => outcome,
                None => {
                    self.pending = Some(PendingReload { plan, reading });
                    return None;
                }
            },
        };
        let taken = plan.and_then(|plan| self.reload((plan, ahead?)));
        let error = taken.as_ref().err().map(|error| error.to_string());
        self.watch.iter_mut().for_each(|watch| watch.reloaded(error.clone()));
        Some(match taken {
            Ok(lines) if lines.is_empty() => {
                vec![OperatorLine::info("reloaded; nothing to be told")]
            }
            Ok(lines) => lines.into_iter().map(OperatorLine::info).collect(),
            Err(error) => {
                vec![OperatorLine::warning(format!(
                    "not reloaded, and nothing has changed: {error}"
                ))]
            }
        })
    }

    /// Goes on by another stack, of whose tenants something is known ahead; returns what operators
    /// are told. Errors: the stack changes what a server takes at its start only, or something
    /// stands in its way: nothing has changed then.
    fn reload(&mut self, new: (LivePlan, Vec<Ahead>)) -> Result<Vec<String>, LiveError> {
        let changes = Changes::between(&self.plan, new, self.tenants.members())?;
        changes.plan.goals()?;
        if self.node.blocks().log_failure().is_some() {
            return Err(changes
                .plan
                .refuse("found a cache that has failed, expected a restart on devices that work"));
        }
        let divided = self.divided(&changes)?;
        let curves = changes.samples.then(|| changes.plan.kept_curves()).transpose()?;
        let files = self.open_added(&changes)?;
        let synced = self.sync_added(&changes, &files);
        let result = synced.and_then(|()| self.enter(&changes, &files));
        let (served, grown) = match result {
            Ok(served) => served,
            Err(error) => {
                files.into_iter().for_each(|file| self.io.inner().remove_file(file));
                return Err(error);
            }
        };
        let decides = changes.divides || changes.learns || changes.cuts_off;
        let (again, mut lines) = match decides {
            true => self.recorder.set_aside((&mut self.io, self.node.blocks_mut())),
            false => Default::default(),
        };
        lines.extend(self.add(&changes, &served)?);
        lines.extend(grown.iter().map(|tenant| self.grow(&changes, *tenant, served[*tenant])));
        lines.extend(self.growing_later(&changes));
        lines.extend(changes.removed.iter().map(|tenant| self.close(*tenant)));
        let (changes_models, cuts_off) = (changes.learns, changes.cuts_off);
        self.plan = changes.plan;
        if let Some((quotas, division)) = divided {
            self.node.blocks_mut().divide_otherwise(&mut self.io, &quotas, division);
            let partition = &self.plan.stack.cache.partition.name;
            let capacity = Bytes(self.plan.capacity_bytes());
            lines.push(format!("cache: {capacity}, divided anew by {partition}"));
        }
        if let Some(curves) = curves {
            lines.extend(curves.as_ref().map(|_| "curves: of requests from now on".to_owned()));
            self.node.blocks_mut().keep_curves(self.io.now_ns(), curves);
        }
        if changes_models {
            self.learn()?;
            lines.push("models: others decide from now on".to_owned());
        }
        if cuts_off {
            let cutoff = self.plan.cutoff();
            self.node.blocks_mut().cut_off(cutoff);
            lines.push(cutoff.map_or_else(
                || "cache: no request goes past it for its stream any more".to_owned(),
                |cutoff| {
                    let bytes = Bytes(cutoff.bytes);
                    format!("cache: streams of {bytes} and more go past it from now on")
                },
            ));
        }
        lines.extend(self.apply(&served));
        lines.extend(self.try_failed());
        self.recorder.follow(&self.plan);
        if decides {
            // A recording is decided by one stack, whose tenants it names.
            self.roll();
            let blocks = self.node.blocks_mut();
            lines.extend(again.map(|path| self.recorder.begin_again(&path, &self.plan, blocks)));
        }
        Ok(lines)
    }

    /// Caps, bounds, and what clients and operators see. Returns what operators are told: whose
    /// connections have ended.
    fn apply(&mut self, served: &[ServedVolume]) -> Vec<String> {
        self.node.blocks_mut().set_background(self.plan.background());
        let mut lines = Vec::new();
        for tenant in self.tenants.served() {
            let number = TenantId(tenant as u16);
            self.node.cap(number, self.plan.caps(tenant));
            let planned = &self.plan.volumes[tenant];
            let found = export(planned, &served[tenant], self.read_only, self.io.inner());
            let barred = self.node.change_export(number, found);
            lines.extend(barred_line(&planned.export, barred));
        }
        let sizes: Vec<u64> = served.iter().map(|volume| volume.bytes).collect();
        let members = self.tenants.members();
        self.watch.iter_mut().for_each(|watch| watch.follow(&self.plan, &sizes, members));
        set_limits(&mut self.node, self.watch.as_ref());
        lines
    }

    /// Tries backing devices again that have failed; returns what operators are told. What comes of
    /// it is told when it is known.
    fn try_failed(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for (tenant, volume) in self.tenants.volumes().iter().enumerate() {
            let number = TenantId(tenant as u16);
            let is_gone = self.tenants.members()[tenant] == Member::Gone;
            if is_gone || !self.node.blocks().volume_has_failed(number) {
                continue;
            }
            let (path, export) =
                (&self.plan.volumes[tenant].backing, &self.tenants.exports()[tenant]);
            let (device, kept) = (path.display(), "requests get errors until then");
            lines.push(match self.io.inner().is_file_at(volume.backing, path) {
                Ok(true) => {
                    self.node.blocks_mut().revive_volume(number);
                    format!(
                        "export `{export}`: its backing device {device} has failed; it is tried \
                         again, and gets what only the cache has before requests are served"
                    )
                }
                Ok(false) => format!(
                    "export `{export}`: {device} is another device than the one that has failed; \
                     only a restart takes it, and {kept}"
                ),
                Err(error) => format!(
                    "export `{export}`: its backing device {device} has failed, and cannot be \
                     tried again ({error}); mend it and reload once more: {kept}"
                ),
            });
        }
        lines
    }

    /// Gives policies and the partitioner the models of the plan. Errors: none that a plan which
    /// was read can bring about.
    fn learn(&mut self) -> Result<(), LiveError> {
        let models = &self.plan.models;
        let learned = self.node.blocks_mut().load_models(&models.policy, &models.partition);
        learned.map_err(LiveError::Failed)
    }

    /// How the cache is divided from then on, if otherwise. Errors: the cache is too large, or
    /// divided among other pools than before.
    fn divided(&self, changes: &Changes) -> Result<Option<Divided>, LiveError> {
        let plan = &changes.plan;
        if !changes.divides {
            return Ok(None);
        }
        check_space(plan, self.node.blocks().device_set())?;
        memory::check(plan)?;
        let quotas = plan.quotas(&changes.ahead, &[])?;
        let engine = self.node.blocks().cache().engine();
        let is_shared = matches!(quotas, Quotas::Shared(_));
        let mixed = matches!(quotas, Quotas::Pools { .. }) || !engine.mixed_pools().is_empty();
        let was_shared = !engine.has_quota(TenantId(0));
        if mixed || is_shared != was_shared {
            let name = &plan.stack.cache.partition.name;
            return Err(plan.refuse(format!(
                "`cache.partition`: found `{name}`, expected one that shares the cache among the \
                 same tenants, or a restart"
            )));
        }
        Ok(Some((quotas, plan.division(&changes.ahead, &[])?)))
    }

    /// Opens the devices of tenants that come. Errors: one is not there, or in use.
    fn open_added(&mut self, changes: &Changes) -> Result<Vec<FileId>, LiveError> {
        let mut files = Vec::new();
        for tenant in &changes.added {
            match open_file(&changes.plan.volumes[*tenant].backing, FileAccess::Write) {
                Ok(file) => files.push(self.io.inner().add_file(file)),
                Err(error) => {
                    files.into_iter().for_each(|file| self.io.inner().remove_file(file));
                    return Err(error.into());
                }
            }
        }
        Ok(files)
    }

    /// Makes durable what the devices of tenants that come hold, as a start does. Errors: one
    /// cannot be synced.
    fn sync_added(&mut self, changes: &Changes, files: &[FileId]) -> Result<(), LiveError> {
        let mut aside = Aside::new(&mut self.io);
        let syncs = files.iter().map(|file| IoOp::Sync { file: *file }).collect();
        let results = batch::run(&mut aside, syncs);
        for done in aside.into_others() {
            self.take(done);
        }
        for (tenant, result) in changes.added.iter().zip(results) {
            let backing = &changes.plan.volumes[*tenant].backing;
            result.map_err(|error| unsynced(backing, error))?;
        }
        Ok(())
    }

    /// Enters volumes that come or have grown into the table of the cache's devices. Returns all
    /// volumes by tenant, and those that have grown. Errors: a size is refused, or a device fails.
    fn enter(
        &mut self,
        changes: &Changes,
        files: &[FileId],
    ) -> Result<(Vec<ServedVolume>, Vec<usize>), LiveError> {
        let plan = &changes.plan;
        let mut served = self.tenants.volumes().to_vec();
        let measured = |io: &mut Self, file: FileId| {
            io.io.inner().measure_file(file).map_err(|error| LiveError::Failed(error.to_string()))
        };
        let mut known = Vec::new();
        for tenant in self.tenants.served() {
            if !changes.removed.contains(&tenant) {
                known.push(KnownVolume { tenant, file: served[tenant].backing });
            }
        }
        known.extend(
            changes
                .added
                .iter()
                .zip(files)
                .map(|(tenant, file)| KnownVolume { tenant: *tenant, file: *file }),
        );
        let mut sizes = Vec::new();
        for found in &known {
            let number = TenantId(found.tenant as u16);
            let has_failed = self.tenants.volumes().get(found.tenant).is_some()
                && self.node.blocks().volume_has_failed(number);
            let bytes = match measured(self, found.file) {
                // It may not answer at all; other tenants do not wait for that.
                Err(_) if has_failed => served[found.tenant].bytes,
                bytes => bytes?,
            };
            let before = served.get(found.tenant).filter(|volume| self.grows_later(volume, bytes));
            sizes.push((*found, before.map_or(bytes, |volume| volume.bytes)));
        }
        let before = self.node.blocks_mut().table();
        let (volumes, table) = matched_sizes(plan, &sizes, &before)?;
        let mut grown = Vec::new();
        for (found, volume) in known.iter().zip(volumes) {
            match served.get_mut(found.tenant) {
                Some(old) if old.bytes != volume.bytes => {
                    *old = volume;
                    grown.push(found.tenant);
                }
                Some(_) => {}
                None => served.push(volume),
            }
        }
        let (added, io) = (&changes.added, self.io.inner());
        let volumes: Vec<ServedVolume> = added.iter().map(|tenant| served[*tenant]).collect();
        let notes = self.identities.join(plan, io, added, &volumes)?;
        if table != before || notes != self.node.blocks_mut().notes() {
            let (written, others) = self.node.blocks_mut().set_table(&mut self.io, table, notes);
            for done in others {
                self.take(done);
            }
            written.map_err(|error| LiveError::Failed(format!("cache: {error}")))?;
        }
        Ok((served, grown))
    }

    /// Whether a volume grows only at a start to so many bytes. The cache may hold the last block,
    /// of which it knows a part; requests of it may be under way.
    fn grows_later(&self, volume: &ServedVolume, bytes: u64) -> bool {
        let block_bytes = self.node.blocks().block_bytes();
        bytes > volume.bytes && !volume.bytes.is_multiple_of(block_bytes)
    }

    /// Lines about volumes that grow only at a start.
    fn growing_later(&self, changes: &Changes) -> Vec<String> {
        let mut lines = Vec::new();
        for tenant in self.tenants.served().filter(|tenant| !changes.removed.contains(tenant)) {
            let volume = self.tenants.volumes()[tenant];
            let bytes = self.io.file_bytes(volume.backing);
            if self.grows_later(&volume, bytes) {
                lines.push(format!(
                    "export `{}`: its backing device has grown to {}; it stays at {} until the \
                     next start, because it ends within a block",
                    self.tenants.exports()[tenant],
                    Bytes(bytes).exact(),
                    Bytes(volume.bytes).exact()
                ));
            }
        }
        lines
    }

    /// Serves tenants that come. Errors: none that was not looked for before.
    fn add(
        &mut self,
        changes: &Changes,
        served: &[ServedVolume],
    ) -> Result<Vec<String>, LiveError> {
        let plan = &changes.plan;
        let quotas = plan.quotas(&changes.ahead, &[])?;
        let mut lines = Vec::new();
        for tenant in changes.added.iter().copied() {
            let (volume, planned) = (served[tenant], &plan.volumes[tenant]);
            let quota = quotas.blocks().get(tenant).copied().unwrap_or_default();
            let policy = |pool: usize, blocks: u32| plan.policy(pool, blocks);
            let number = self.node.blocks_mut().add_volume(volume, quota, policy);
            if number != Some(TenantId(tenant as u16)) {
                return Err(LiveError::Failed("a tenant could not be added".to_owned()));
            }
            let found = export(planned, &volume, self.read_only, self.io.inner());
            self.node.add_export(found);
            let delay_ns = plan.serve.backing_delay.0;
            if delay_ns > 0 {
                self.io.delay(volume.backing, delay_ns);
            }
            self.failures.add(planned.export.clone());
            self.tenants.add(volume, planned.export.clone());
            let (name, bytes) = (&planned.export, Bytes(volume.bytes));
            lines.push(format!("export `{name}`: {bytes} of {}, added", planned.backing.display()));
        }
        Ok(lines)
    }

    /// A volume has grown.
    fn grow(&mut self, changes: &Changes, tenant: usize, volume: ServedVolume) -> String {
        let before = Bytes(self.tenants.grow(tenant, volume));
        self.node.blocks_mut().grow_volume(TenantId(tenant as u16), volume.bytes);
        let name = &changes.plan.volumes[tenant].export;
        format!(
            "export `{name}`: grown from {before} to {}; clients see it when they connect again",
            Bytes(volume.bytes)
        )
    }

    /// A tenant goes: its clients first.
    fn close(&mut self, tenant: usize) -> String {
        self.tenants.set_member(tenant, Member::Closing);
        self.node.close_export(TenantId(tenant as u16));
        let name = &self.tenants.exports()[tenant];
        format!("export `{name}`: closed; what only the cache has of it is written back")
    }

    /// Goes on with tenants that go; returns what operators are told. To be called some times a
    /// second.
    pub(super) fn go_on_removing(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for tenant in 0..self.tenants.members().len() {
            let number = TenantId(tenant as u16);
            match self.tenants.members()[tenant] {
                Member::Closing
                    if self.node.connections_to(number) == 0
                        && self.node.blocks().requests_of(number) == 0 =>
                {
                    self.node.blocks_mut().remove_volume(number);
                    self.tenants.set_member(tenant, Member::Going);
                }
                Member::Going if self.node.blocks().has_gone(number) => {
                    self.tenants.set_member(tenant, Member::Gone);
                    self.watch.iter_mut().for_each(|watch| watch.set_member(tenant, Member::Gone));
                    self.io.inner().remove_file(self.tenants.volumes()[tenant].backing);
                    let backing = self.plan.volumes[tenant].backing.display();
                    let name = &self.tenants.exports()[tenant];
                    lines.push(format!("export `{name}`: removed; {backing} has all of it"));
                    let (volume, id) =
                        (&self.plan.volumes[tenant].name, self.tenants.volumes()[tenant].id);
                    let forgotten = self.identities.leave(volume, id);
                    lines.extend(forgotten.err().map(|error| error.to_string()));
                }
                _ => {}
            }
        }
        lines
    }
}

/// What is said of connections that have ended because `clients` names theirs no more.
fn barred_line(export: &str, connections: usize) -> Option<String> {
    let text = match connections {
        0 => return None,
        1 => "1 connection ended, whose client".to_owned(),
        many => format!("{many} connections ended, whose clients"),
    };
    Some(format!("export `{export}`: {text} may not see it any more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_many_connections_have_ended() {
        let line = |connections| barred_line("data", connections);
        assert_eq!(line(0), None);
        let one = "export `data`: 1 connection ended, whose client may not see it any more";
        assert_eq!(line(1).as_deref(), Some(one));
        let two = "export `data`: 2 connections ended, whose clients may not see it any more";
        assert_eq!(line(2).as_deref(), Some(two));
    }
}
