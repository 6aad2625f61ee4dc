//! A server from its start through reloads to its end.
//!
//! A start checks everything before it writes. A reload checks everything before anything changes,
//! and one that is refused changes nothing; new volumes are in the devices' table, durably, before
//! anything else. An end takes no more clients, answers the requests that it has begun, and makes
//! all that was answered durable. A device that has failed does not keep the others from their end.

use crate::changes::{Changes, Member};
use crate::devices::{
    DeviceClaim, Devices, KnownVolume, check_served, check_space, matched, matched_sizes,
    refuse_failing, set_error, unsynced,
};
use crate::error::LiveError;
use crate::history::{Ahead, HistoryLoad};
use crate::identity::{Identities, Purpose, examine};
use crate::memory;
use crate::operator::{self, Failures, Manager, OperatorLine};
use crate::plan::{LivePlan, StackVolume, tls_config};
use crate::planned_server::{PlannedServer, capped_service};
use crate::recordings::DecisionRecorder;
use crate::status::{ClientLoad, StatusPublisher};
use crate::trial::{Judgement, RunningTrial};
use cachewright_cache::Quotas;
use cachewright_live::blocks::{BlockAnswer, BlockOp, BlockRequest, BlockServer, ServedVolume};
use cachewright_live::exports::{ConnectionLimits, NbdFrontEnd, NbdSettings, TlsConfig};
use cachewright_live::front::{self, BlockService, FrontEnd, ServedExport};
use cachewright_live::io::batch::Aside;
use cachewright_live::io::delayed::Delayed;
use cachewright_live::io::open::{
    FileAccess, Listener, open_file, passed_listener, tcp_listener, unix_listener,
};
use cachewright_live::io::system::SystemIo;
use cachewright_live::io::token::Submitter;
use cachewright_live::io::{Buffer, Done, FileId, Io, IoError, IoOp, Token, batch};
use cachewright_live::log::read_log;
use cachewright_live::vhost::VhostFrontEnd;
use cachewright_nbd::Limits;
use cachewright_stack::ListenAddress;
use cachewright_types::{Bytes, TenantId};
use std::net::SocketAddr;
use std::path::Path;

/// The token of the timer for this.
const TICK: Token = Submitter::Driver.token(0, 0);
/// The token of the last syncs of the cache's devices.
const LAST_SYNC: Token = Submitter::Driver.token(1, 0);
/// How often the server looks whether to stop.
const TICK_NS: u64 = 50_000_000;
/// Why a recording in a file is set aside.
const OTHERS_DECIDE: &str = "the stack changes what decides";
const TENANT_HAS_GONE: &str = "a tenant that was removed has gone, and a state can stand beside \
                               what comes";

/// What is said of a set that has lost content.
const LOST: &str = "cache: content that was durable is gone, or may be, so that volumes may hold \
                    older content: a device did not keep what it had synced, or was damaged; \
                    exports are read-only until `cachewright live repair`";

/// Why such a set is served with write-back only.
const LOST_DIRTY: &str = "`cache.write`: found a mode without dirty blocks, and a cache that has \
                          lost content which was durable: backing devices could get older content; \
                          expected `write-back`, or `cachewright live repair` before";

/// What the surroundings of a server want of it.
pub enum ServerCommand {
    /// To go on.
    GoOn,
    /// To end, in order.
    Stop,
    /// To finish the recording under way and to begin another one.
    Roll,
    /// To go on by this stack, or an error of the stack, which is said.
    Reload(Box<Result<LivePlan, LiveError>>),
}

/// Through which everything goes.
type LiveIo = Delayed<SystemIo>;

/// The front ends.
struct FrontEnds {
    nbd: NbdFrontEnd,
    vhost: VhostFrontEnd,
}

impl FrontEnds {
    fn all(&mut self) -> [&mut dyn FrontEnd<LiveIo>; 2] {
        [&mut self.nbd, &mut self.vhost]
    }

    /// Clients that are connected, and bytes of requests under way and of answers that are not
    /// sent.
    fn load(&mut self) -> ClientLoad {
        let all = self.all();
        ClientLoad {
            connections: all.iter().map(|front| front.connections()).sum(),
            held_bytes: all.iter().map(|front| front.held_bytes()).sum(),
        }
    }

    /// Clients that are connected to a tenant's volume.
    fn connections_to(&mut self, tenant: TenantId) -> usize {
        self.all().iter().map(|front| front.connections_to(tenant)).sum()
    }

    /// Whether all were stopped, and all clients are gone.
    fn are_stopped(&mut self) -> bool {
        self.all().iter().all(|front| front.is_stopped())
    }
}

/// A server whose clients can connect.
pub struct Server {
    plan: LivePlan,
    tenants: ServedTenants,
    identities: Identities,
    /// No export can be written to: content that was durable is gone.
    read_only: bool,
    io: LiveIo,
    service: BlockService,
    fronts: FrontEnds,
    lines: Vec<OperatorLine>,
    /// The cache's devices.
    cache: Vec<FileId>,
    /// What is known of devices that have failed.
    failures: Failures,
    /// Operations that are done: the memory is kept.
    done: Vec<Done>,
    recorder: DecisionRecorder,
    status: Option<StatusPublisher>,
    /// A policy that is tried beside the one that decides.
    trial: Option<RunningTrial>,
    /// A stack that waits to be taken over.
    pending: Option<PendingReload>,
    claim: DeviceClaim,
}

/// What a server left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Bytes that only the cache has.
    pub dirty_bytes: u64,
    /// What operators are told: what each tenant's requests found, and what was recorded.
    pub lines: Vec<String>,
}

impl Server {
    /// Opens everything and takes clients. It belongs to the thread that starts it. What it decides
    /// goes to the file `record`, if there is one. Errors: see [`LiveError`]; a refusal comes
    /// before anything is written.
    pub fn start(plan: &LivePlan, record: Option<&Path>) -> Result<Server, LiveError> {
        check(plan, record)?;
        let tls = tls_config(plan)?;
        let ahead = plan.ahead()?;
        let mut devices = Devices::open(plan, FileAccess::Write)?;
        let mut set = devices.set(plan)?;
        memory::check(plan)?;
        let planned = PlannedServer::new(plan, &set.set, &devices.cache, &ahead)?;
        let (served, table) = matched(plan, &devices, &set.superblock)?;
        let status = StatusPublisher::start(plan, &served, &devices.io)?;
        let listeners = listeners(&plan.serve.listen)?;
        let disks = disk_listeners(plan, 0..plan.volumes.len())?;
        let paths = devices.paths(plan, &set.set);
        let failed = |error| set_error(plan, &paths, &error);
        let mut claim = DeviceClaim::begin(plan, &mut devices.io, &set)?;
        let found = read_log(&mut devices.io, &set).map_err(failed)?;
        if let Some(page) = found.failing_device() {
            return Err(refuse_failing(&paths, page));
        }
        check_served(plan, &served, &table, &found.blocks, plan.block_bytes())?;
        let is_lost = set.superblock.has_lost || found.has_lost();
        if is_lost && !plan.keeps_dirty() {
            return Err(plan.refuse(LOST_DIRTY));
        }
        let examined = examine(plan, &mut devices, &set, &served, &found, Purpose::Serve)?;
        claim.take(plan, &mut devices.io, &set)?;
        found.mark_lost(&mut devices.io, &mut set).map_err(failed)?;
        // A volume that has grown keeps its size in the table until its last block is given up.
        let known = set.superblock.volumes.clone();
        let (identities, found, changed) =
            examined.begin(plan, &mut devices.io, &mut set, &known, found, &paths)?;
        let read_only = set.superblock.has_lost;
        let unreadable = operator::unreadable(&paths, &found.unreadable);
        let found = found.settle(&mut devices.io).map_err(failed)?;
        let laid_out = planned.laid_out().clone();
        let (mut blocks, restored) =
            planned.open(plan, &mut devices.io, &set, served.clone(), found)?;
        // Only now: a volume that has grown had to give up its last block before.
        if table != set.superblock.volumes {
            let notes = set.superblock.notes.clone();
            let (written, others) = blocks.set_table(&mut devices.io, table, notes);
            others.into_iter().for_each(|done| blocks.on_done(&mut devices.io, done));
            written.map_err(failed)?;
        }
        let mut warnings = exposed(plan, &listeners);
        let mut lines = devices.notices;
        let addresses: Vec<&str> = listeners.iter().map(Listener::address).collect();
        let sockets = disks.iter().map(|(tenant, disk)| (tenant.index(), disk.address()));
        let sockets: Vec<(usize, &str)> = sockets.collect();
        lines.extend(operator::described(plan, &laid_out, &served, &addresses, &sockets));
        lines.extend(changed);
        warnings.extend(unreadable);
        warnings.extend(read_only.then(|| LOST.to_owned()));
        lines.extend(status.as_ref().map(StatusPublisher::described));
        lines.push(operator::summary(plan, devices.io.name(), &restored));
        let trial = RunningTrial::begin(plan, &mut blocks, devices.io.now_ns())?;
        let recorder = DecisionRecorder::begin(record, plan, &devices.io, &mut blocks)?;
        lines.extend(recorder.described(restored.clean + restored.dirty));
        let mut io = devices.io;
        let exports = plan.volumes.iter().zip(&served);
        let exports = exports.map(|(planned, volume)| export(planned, volume, read_only, &io));
        let exports: Vec<ServedExport> = exports.collect();
        let block_bytes = blocks.block_bytes();
        let memory = front_memory(plan);
        let mut vhost = VhostFrontEnd::new(exports.clone(), block_bytes, memory);
        for (tenant, listener) in disks {
            listen_for_guest(&mut vhost, tenant, listener)?;
        }
        let mut nbd = nbd(plan, block_bytes, exports, tls);
        listeners.into_iter().for_each(|listener| nbd.listen(io.add_listener(listener)));
        let mut service = capped_service(plan, blocks);
        set_limits(&mut service, status.as_ref());
        let io = Delayed::new(io, slow_files(plan, &served));
        let warnings = warnings.into_iter().map(OperatorLine::warning);
        let lines = warnings.chain(lines.into_iter().map(OperatorLine::info)).collect();
        let exports = export_names(plan);
        let failures = Failures::new(exports.clone(), paths);
        Ok(Server {
            plan: plan.clone(),
            tenants: ServedTenants::new(served, exports),
            identities,
            read_only,
            io,
            service,
            fronts: FrontEnds { nbd, vhost },
            lines,
            cache: devices.cache,
            failures,
            done: Vec::new(),
            recorder,
            status,
            trial,
            pending: None,
            claim,
        })
    }

    /// What operators are told: warnings, notices, what is served, and what was found.
    pub fn lines(&self) -> &[OperatorLine] {
        &self.lines
    }

    /// Where the server tells its status, if it does.
    pub fn monitor_address(&self) -> Option<SocketAddr> {
        self.status.as_ref().map(StatusPublisher::address)
    }

    /// Serves until `wish` says stop, which is called twenty times a second. `say` gets a sentence
    /// when a device fails, a recording ends early, or another stack is taken over. Clients that do
    /// not take their answers are closed ten seconds after the stop. Errors: what was answered
    /// could not be made durable, or what was decided not recorded; another server has taken the
    /// devices over.
    pub fn run(
        mut self,
        wish: &mut dyn FnMut() -> ServerCommand,
        say: &mut dyn FnMut(&OperatorLine),
    ) -> Result<Stopped, LiveError> {
        self.io.submit(TICK, IoOp::Timer { at_ns: self.io.now_ns() + TICK_NS });
        let mut manager = Manager::found();
        manager.ready(&format!("serving {}", self.tenants.listed()));
        loop {
            if self.turn() {
                for line in self.news() {
                    manager.status(&line.text);
                    say(&line);
                }
                let now_ns = self.io.now_ns();
                manager.tick(now_ns);
                self.claim.tick(&mut self.io)?;
                let blocks = &mut self.service.blocks;
                self.recorder.tick(&self.plan, &mut self.io, blocks, now_ns);
                blocks.tick_curves(now_ns);
                if let Some(status) = &mut self.status {
                    let load = self.fronts.load();
                    let (folder, trial) = (self.recorder.folder(), self.trial.as_ref());
                    let plan = &self.plan;
                    status.tick(&mut self.service, load, folder, trial, plan, now_ns);
                }
                match wish() {
                    ServerCommand::GoOn => {}
                    ServerCommand::Stop => break,
                    ServerCommand::Roll => self.roll(),
                    ServerCommand::Reload(plan) => {
                        manager.reloading();
                        self.begin_reload(*plan);
                    }
                }
                if let Some(lines) = self.end_reload() {
                    lines.iter().for_each(&mut *say);
                    manager.ready(&format!("serving {}", self.tenants.listed()));
                }
            }
        }
        manager.stopping();
        // The end writes as well.
        self.claim.begin_look(&mut self.io);
        while self.claim.is_looking() {
            self.turn();
        }
        self.claim.check()?;
        front::stop(&mut self.io, &mut self.service, &mut self.fronts.all());
        while !self.fronts.are_stopped() {
            self.turn();
        }
        let (served, left) = (self.tenants.served().collect::<Vec<_>>(), self.tenants.not_gone());
        let Server { plan, io, service, tenants, identities, cache, done, recorder, .. } = self;
        let mut ending = Shutdown { io, blocks: service.blocks, done, syncs: 0, failed: None };
        let Shutdown { io, blocks, .. } = &mut ending;
        let recorded = recorder.finish(io, blocks);
        let mut lines = operator::found(tenants.exports(), blocks);
        // A volume that has failed does not keep the log from its end.
        lines.extend(left);
        let flushed = ending.flush(&served, tenants.exports());
        let closed = ending.close(&cache);
        flushed.and(closed)?;
        lines.extend(recorded?);
        let Shutdown { io, blocks, .. } = &mut ending;
        lines.extend(identities.end(&plan, io, blocks, &served, tenants.volumes()));
        let dirty = ending.blocks.dirty_blocks();
        Ok(Stopped { dirty_bytes: dirty * plan.block_bytes(), lines })
    }

    /// Begins what is due and takes what is done; returns whether the timer is over, which begins
    /// again.
    fn turn(&mut self) -> bool {
        let mut ticked = false;
        front::advance(&mut self.io, &mut self.service, &mut self.fronts.all());
        let mut done = std::mem::take(&mut self.done);
        self.io.wait(&mut done);
        done.drain(..).for_each(|done| ticked |= self.take(done));
        self.done = done;
        ticked
    }

    /// Takes what is done; returns whether it is the timer, which begins again. All that is done
    /// comes here: a timer that is lost ends the server's looks at its surroundings for ever.
    fn take(&mut self, done: Done) -> bool {
        let is_timer = done.token == TICK;
        if self.claim.owns(done.token) {
            self.claim.on_done(&done);
            return false;
        }
        match is_timer {
            true => self.io.submit(TICK, IoOp::Timer { at_ns: self.io.now_ns() + TICK_NS }),
            false => front::on_done(&mut self.io, &mut self.service, &mut self.fronts.all(), done),
        }
        is_timer
    }

    /// Lines about what has changed since the last call.
    fn news(&mut self) -> Vec<OperatorLine> {
        let blocks = &self.service.blocks;
        let failed = self.failures.news(blocks).into_iter().map(OperatorLine::warning);
        let mut lines: Vec<OperatorLine> = failed.chain(self.recorder.news(blocks)).collect();
        let block_bytes = blocks.block_bytes();
        for found in self.service.blocks.take_revived() {
            let export = &self.tenants.exports()[found.tenant.index()];
            lines.push(operator::revived(export, &found, block_bytes));
        }
        for (tenant, fault) in self.fronts.vhost.take_faults() {
            let export = &self.tenants.exports()[tenant.index()];
            lines.push(OperatorLine::warning(format!(
                "export `{export}`: a queue of its guest is served no more: found {fault}"
            )));
        }
        lines.extend(self.remove_closed_tenants().into_iter().map(OperatorLine::info));
        lines.extend(self.judge_policy());
        lines
    }

    /// What comes of the trial of a policy that has taken another one's place, when it is over.
    fn judge_policy(&mut self) -> Vec<OperatorLine> {
        let [present, ..] = self.plan.schemes();
        let judged =
            self.trial.as_ref().and_then(|trial| trial.judge(&self.service.blocks, present));
        let (mut lines, back) = match judged {
            None => return Vec::new(),
            Some(Judgement::Stays(line)) => (vec![line], Ok(Vec::new())),
            Some(Judgement::Returns(before, line)) => {
                let changes = Changes::back_to_policy(&self.plan, &before);
                (vec![line], self.carry_out(changes))
            }
        };
        let (blocks, now_ns) = (&mut self.service.blocks, self.io.now_ns());
        let trial = RunningTrial::begin(&self.plan, blocks, now_ns);
        match back.and_then(|back| Ok((back, trial?))) {
            Ok((back, trial)) => {
                self.trial = trial;
                lines.extend(back.into_iter().map(OperatorLine::info));
            }
            Err(error) => lines.push(OperatorLine::warning(error.to_string())),
        }
        lines
    }

    /// Begins another recording where the one under way has no state beside it for a tenant that
    /// was being removed. Returns what operators are told.
    fn record_with_state(&mut self) -> Vec<String> {
        if !self.plan.serve.record_state {
            return Vec::new();
        }
        let (again, mut lines) =
            self.recorder.set_aside(&mut self.io, &mut self.service.blocks, TENANT_HAS_GONE);
        self.roll();
        let blocks = &mut self.service.blocks;
        lines.extend(again.map(|path| self.recorder.begin_again(&path, &self.plan, blocks)));
        lines
    }

    /// Finishes the recording under way in the folder of recordings, and begins another one.
    fn roll(&mut self) {
        self.recorder.roll(&self.plan, &mut self.io, &mut self.service.blocks);
    }

    /// Begins to take another stack over, in place of one that waits; see [`Server::end_reload`].
    fn begin_reload(&mut self, plan: Result<LivePlan, LiveError>) {
        let begun = plan.and_then(|plan| {
            let changes =
                Changes::between(&self.plan, plan.clone(), Vec::new(), self.tenants.members())?;
            let reading = if changes.divides { HistoryLoad::begin(&plan)? } else { None };
            Ok((plan, reading))
        });
        self.pending = Some(match begun {
            Ok((plan, reading)) => PendingReload { plan: Ok(plan), reading },
            Err(error) => PendingReload { plan: Err(error), reading: None },
        });
    }

    /// Takes the stack over that waits, when its histories are read; returns what operators are
    /// told then. To be called some times a second.
    fn end_reload(&mut self) -> Option<Vec<OperatorLine>> {
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
        let taken = plan.and_then(|plan| self.reload(plan, ahead?));
        let error = taken.as_ref().err().map(|error| error.to_string());
        self.status.iter_mut().for_each(|status| status.reloaded(error.clone()));
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
    fn reload(&mut self, plan: LivePlan, ahead: Vec<Ahead>) -> Result<Vec<String>, LiveError> {
        self.carry_out(Changes::between(&self.plan, plan, ahead, self.tenants.members())?)
    }

    /// Changes what is served and how it is decided; returns what operators are told. Errors: as of
    /// [`Server::reload`].
    fn carry_out(&mut self, changes: Changes) -> Result<Vec<String>, LiveError> {
        changes.plan.goals()?;
        let disks = disk_listeners(&changes.plan, changes.added.iter().copied())?;
        if self.service.blocks.log_failure().is_some() {
            return Err(changes
                .plan
                .refuse("found a cache that has failed, expected a restart on devices that work"));
        }
        if changes.replaces {
            memory::check(&changes.plan)?;
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
        let decides = changes.divides || changes.replaces || changes.learns || changes.cuts_off;
        let (again, mut lines) = match decides {
            true => {
                let blocks = &mut self.service.blocks;
                self.recorder.set_aside(&mut self.io, blocks, OTHERS_DECIDE)
            }
            false => Default::default(),
        };
        lines.extend(self.add(&changes, &served)?);
        for (tenant, listener) in disks {
            listen_for_guest(&mut self.fronts.vhost, tenant, listener)?;
        }
        lines.extend(grown.iter().map(|tenant| self.grow(&changes, *tenant, served[*tenant])));
        lines.extend(self.growing_later(&changes));
        lines.extend(changes.removed.iter().map(|tenant| self.close(*tenant)));
        let Changes { replaces, tries, learns: changes_models, cuts_off, .. } = changes;
        let before = std::mem::replace(&mut self.plan, changes.plan);
        if replaces {
            lines.push(self.replace_policies());
        }
        if let Some(quotas) = divided {
            let (plan, ahead) = (&self.plan, &changes.ahead);
            let division = || plan.division(ahead, &[]);
            let shrink = plan.stack.cache.shrink;
            self.service.blocks.divide_otherwise(&mut self.io, &quotas, shrink, division)?;
            let partition = &self.plan.stack.cache.partition.name;
            let capacity = Bytes(self.plan.capacity_bytes());
            lines.push(format!("cache: {capacity}, divided anew by {partition}"));
        }
        if tries {
            let (blocks, now_ns) = (&mut self.service.blocks, self.io.now_ns());
            self.trial = match replaces {
                true => Some(RunningTrial::of_policy_before(&self.plan, before, blocks, now_ns)),
                false => RunningTrial::begin_again(self.trial.take(), &self.plan, blocks, now_ns)?,
            };
            let serve = &self.plan.serve;
            let tried = [&serve.trial, &serve.trial_partition].into_iter().flatten();
            let tried: Vec<&str> = tried.map(String::as_str).collect();
            if !tried.is_empty() && !replaces {
                lines.push(format!("trial: {}, on a sample of the blocks", tried.join(" and ")));
            }
        }
        if let Some(curves) = curves {
            lines.extend(curves.as_ref().map(|_| "curves: of requests from now on".to_owned()));
            self.service.blocks.keep_curves(self.io.now_ns(), curves);
        }
        if changes_models {
            self.learn()?;
            lines.push("models: others decide from now on".to_owned());
        }
        if cuts_off {
            let cutoff = self.plan.cutoff();
            self.service.blocks.cut_off(cutoff);
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
            let blocks = &mut self.service.blocks;
            lines.extend(again.map(|path| self.recorder.begin_again(&path, &self.plan, blocks)));
        }
        Ok(lines)
    }

    /// Caps, bounds, and what clients and operators see. Returns what operators are told: whose
    /// connections have ended.
    fn apply(&mut self, served: &[ServedVolume]) -> Vec<String> {
        self.service.blocks.set_background(self.plan.background());
        self.service.blocks.set_memory(self.plan.serve.memory.0);
        let mut lines = Vec::new();
        for tenant in self.tenants.served() {
            let number = TenantId(tenant as u16);
            self.service.clients.cap(number, self.plan.caps(tenant));
            let planned = &self.plan.volumes[tenant];
            let found = export(planned, &served[tenant], self.read_only, self.io.inner());
            let change =
                |front: &mut dyn FrontEnd<LiveIo>| front.change_export(number, found.clone());
            let barred = self.fronts.all().into_iter().map(change).sum();
            lines.extend(barred_line(&planned.export, barred));
        }
        let sizes: Vec<u64> = served.iter().map(|volume| volume.bytes).collect();
        let members = self.tenants.members();
        self.status.iter_mut().for_each(|status| status.follow(&self.plan, &sizes, members));
        set_limits(&mut self.service, self.status.as_ref());
        lines
    }

    /// Tries backing devices again that have failed; returns what operators are told. What comes of
    /// it is told when it is known.
    fn try_failed(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for (tenant, volume) in self.tenants.volumes().iter().enumerate() {
            let number = TenantId(tenant as u16);
            let is_gone = self.tenants.members()[tenant] == Member::Gone;
            if is_gone || !self.service.blocks.volume_has_failed(number) {
                continue;
            }
            let (path, export) =
                (&self.plan.volumes[tenant].backing, &self.tenants.exports()[tenant]);
            let (device, kept) = (path.display(), "requests get errors until then");
            lines.push(match self.io.inner().is_file_at(volume.backing, path) {
                Ok(true) => {
                    self.service.blocks.revive_volume(number);
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

    /// Puts the policy of the plan in the place of the one before; returns what operators are told.
    fn replace_policies(&mut self) -> String {
        let plan = &self.plan;
        let held = |blocks: &BlockServer| {
            let cache = blocks.cache();
            let tenants = (0..plan.volumes.len()).map(|tenant| TenantId(tenant as u16));
            tenants.map(|tenant| u64::from(cache.engine().occupancy(tenant))).sum::<u64>()
        };
        let before = held(&self.service.blocks);
        self.service.blocks.replace_policies(&mut self.io, plan.policy_source());
        let kept = Bytes(held(&self.service.blocks) * plan.block_bytes());
        let [name, ..] = plan.schemes();
        let before = Bytes(before * plan.block_bytes());
        format!("cache: {name} decides from now on; {kept} of {before} stay in the cache")
    }

    /// Gives policies and the partitioner the models of the plan. Errors: none that a plan which
    /// was read can bring about.
    fn learn(&mut self) -> Result<(), LiveError> {
        let models = &self.plan.models;
        let learned = self.service.blocks.load_models(&models.policy, &models.partition);
        learned.map_err(LiveError::Failed)
    }

    /// How the cache is divided from then on, if otherwise. Errors: the cache is too large, or
    /// divided among other pools than before.
    fn divided(&self, changes: &Changes) -> Result<Option<Quotas>, LiveError> {
        let plan = &changes.plan;
        if !changes.divides {
            return Ok(None);
        }
        check_space(plan, &self.service.blocks.device_set())?;
        memory::check(plan)?;
        let quotas = plan.quotas(&changes.ahead, &[])?;
        let cache = self.service.blocks.cache();
        let engine = cache.engine();
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
        // A division that cannot be made is refused before anything changes.
        plan.division(&changes.ahead, &[])?;
        Ok(Some(quotas))
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
                && self.service.blocks.volume_has_failed(number);
            let bytes = match measured(self, found.file) {
                // It may not answer at all; other tenants do not wait for that.
                Err(_) if has_failed => served[found.tenant].bytes,
                bytes => bytes?,
            };
            let before = served.get(found.tenant).filter(|volume| self.grows_later(volume, bytes));
            sizes.push((*found, before.map_or(bytes, |volume| volume.bytes)));
        }
        let before = self.service.blocks.table();
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
        if table != before || notes != self.service.blocks.notes() {
            let (written, others) = self.service.blocks.set_table(&mut self.io, table, notes);
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
        let block_bytes = self.service.blocks.block_bytes();
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
            let make = plan.policy_source();
            let number = self.service.blocks.add_volume(volume, quota, make);
            if number != Some(TenantId(tenant as u16)) {
                return Err(LiveError::Failed("a tenant could not be added".to_owned()));
            }
            let found = export(planned, &volume, self.read_only, self.io.inner());
            self.service.clients.add_tenant();
            self.fronts.all().into_iter().for_each(|front| front.add_export(found.clone()));
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
        self.service.blocks.grow_volume(TenantId(tenant as u16), volume.bytes);
        let name = &changes.plan.volumes[tenant].export;
        format!(
            "export `{name}`: grown from {before} to {}; clients see it when they connect again",
            Bytes(volume.bytes)
        )
    }

    /// A tenant goes: its clients first.
    fn close(&mut self, tenant: usize) -> String {
        self.tenants.set_member(tenant, Member::Closing);
        let number = TenantId(tenant as u16);
        self.fronts.all().into_iter().for_each(|front| front.close_export(number));
        let name = &self.tenants.exports()[tenant];
        format!("export `{name}`: closed; what only the cache has of it is written back")
    }

    /// Goes on with tenants that go; returns what operators are told. To be called some times a
    /// second.
    fn remove_closed_tenants(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut has_gone = false;
        for tenant in 0..self.tenants.members().len() {
            let number = TenantId(tenant as u16);
            match self.tenants.members()[tenant] {
                Member::Closing
                    if self.fronts.connections_to(number) == 0
                        && self.service.blocks.requests_of(number) == 0 =>
                {
                    self.service.blocks.remove_volume(number);
                    self.tenants.set_member(tenant, Member::Going);
                }
                Member::Going if self.service.blocks.has_gone(number) => {
                    has_gone = true;
                    self.tenants.set_member(tenant, Member::Gone);
                    self.status
                        .iter_mut()
                        .for_each(|status| status.set_member(tenant, Member::Gone));
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
        let is_leaving = |member: &Member| matches!(member, Member::Closing | Member::Going);
        if has_gone && !self.tenants.members().iter().any(is_leaving) {
            lines.extend(self.record_with_state());
        }
        lines
    }
}

/// Errors: clients cannot connect anywhere, or what is decided cannot be recorded as wanted.
pub(crate) fn check(plan: &LivePlan, record: Option<&Path>) -> Result<(), LiveError> {
    DecisionRecorder::check(plan, record)?;
    match plan.serve.listen.is_empty() {
        true => Err(plan.refuse(
            "found no `serve.listen`, expected addresses such as `unix:/run/cachewright.sock`",
        )),
        false => check_disks(plan),
    }
}

/// Errors: a socket for guests is that of several volumes, or of one that only clients with certain
/// certificates may see.
fn check_disks(plan: &LivePlan) -> Result<(), LiveError> {
    let present = |tenant: &usize| !plan.absent.get(*tenant).is_some_and(|absent| *absent);
    let volumes: Vec<&StackVolume> =
        (0..plan.volumes.len()).filter(present).map(|tenant| &plan.volumes[tenant]).collect();
    let guests = |address: &&ListenAddress| matches!(address, ListenAddress::Vhost(_));
    let addresses: Vec<&ListenAddress> = plan.serve.listen.iter().filter(guests).collect();
    if addresses.len() > 1 {
        return Err(plan.refuse(
            "`serve.listen`: found more than one `vhost:`, expected one: a volume has one guest",
        ));
    }
    for address in addresses {
        let ListenAddress::Vhost(path) = address else { continue };
        if volumes.len() > 1 && !address.names_volumes() {
            return Err(plan.refuse(format!(
                "`serve.listen`: found `vhost:{}` for {} volumes, expected `{{volume}}` in the \
                 path, so that each has a socket of its own",
                path.display(),
                volumes.len()
            )));
        }
        if let Some(volume) = volumes.iter().find(|volume| !volume.clients.is_empty()) {
            return Err(plan.refuse(format!(
                "`tenant.clients`: found names of certificates for the volume `{}`, which guests \
                 reach by `vhost:` without any, expected one of both",
                volume.name
            )));
        }
    }
    Ok(())
}

/// A listener for the guest of each of these volumes, at each address for guests. Errors: one
/// cannot be opened, or is for several volumes.
fn disk_listeners(
    plan: &LivePlan,
    tenants: impl IntoIterator<Item = usize>,
) -> Result<Vec<(TenantId, Listener)>, LiveError> {
    check_disks(plan)?;
    let mut found = Vec::new();
    for tenant in tenants {
        let name = &plan.volumes[tenant].name;
        let mut sockets = plan.serve.listen.iter().filter_map(|address| address.of_volume(name));
        if let Some(path) = sockets.next() {
            found.push((TenantId(tenant as u16), unix_listener(&path)?));
        }
    }
    Ok(found)
}

fn listen_for_guest(
    vhost: &mut VhostFrontEnd,
    tenant: TenantId,
    listener: Listener,
) -> Result<(), LiveError> {
    let address = listener.address().to_owned();
    let listens = vhost.listen(tenant, listener);
    listens.map_err(|error| LiveError::Failed(format!("{address}: {error}")))
}

/// Bytes of requests and answers that the clients of one front end may have: all of
/// `serve.client_memory` where it is the only one that clients can connect to.
fn front_memory(plan: &LivePlan) -> u64 {
    let listen = &plan.serve.listen;
    let guests = listen.iter().filter(|address| matches!(address, ListenAddress::Vhost(_)));
    let is_shared = (1..listen.len()).contains(&guests.count());
    plan.serve.client_memory.0 / if is_shared { 2 } else { 1 }
}

/// The names of exports, by tenant.
fn export_names(plan: &LivePlan) -> Vec<String> {
    plan.volumes.iter().map(|volume| volume.export.clone()).collect()
}

/// The NBD front end, for all volumes.
fn nbd(
    plan: &LivePlan,
    block_bytes: u64,
    exports: Vec<ServedExport>,
    tls: Option<(TlsConfig, bool)>,
) -> NbdFrontEnd {
    let settings = NbdSettings {
        limits: Limits::default(),
        connection: ConnectionLimits {
            negotiation_ns: plan.serve.negotiation_timeout.0,
            stall_ns: plan.serve.stall_timeout.0,
            ..ConnectionLimits::default()
        },
        extended_headers: plan.serve.extended_headers,
        max_connections: plan.serve.max_connections as usize,
        client_memory: front_memory(plan),
    };
    let mut nbd = NbdFrontEnd::new(exports, block_bytes, settings);
    if let Some((config, is_required)) = tls {
        nbd.offer_tls(config, is_required);
    }
    nbd
}

/// Requests are counted beside the times that they are to keep, where a server is watched.
fn set_limits(service: &mut BlockService, status: Option<&StatusPublisher>) {
    let limits = status.map(StatusPublisher::limits).unwrap_or_default();
    for (tenant, limit_ns) in limits.into_iter().enumerate() {
        service.clients.set_limit(TenantId(tenant as u16), limit_ns);
    }
}

/// Backing devices that answer late, and how much later.
fn slow_files(plan: &LivePlan, served: &[ServedVolume]) -> Vec<(FileId, u64)> {
    let delay_ns = plan.serve.backing_delay.0;
    let slow = served.iter().map(|volume| (volume.backing, delay_ns));
    slow.filter(|_| delay_ns > 0).collect()
}

/// A volume as clients find it.
pub(crate) fn export(
    planned: &StackVolume,
    served: &ServedVolume,
    read_only: bool,
    io: &SystemIo,
) -> ServedExport {
    ServedExport {
        name: planned.export.clone(),
        bytes: served.bytes,
        read_only: read_only || planned.read_only,
        clients: planned.clients.clone(),
        max_connections: planned.max_connections,
        fast_zero: io.zeroes_fast(served.backing),
    }
}

/// The tenants; see the top of the file.
struct ServedTenants {
    members: Vec<Member>,
    volumes: Vec<ServedVolume>,
    exports: Vec<String>,
}

impl ServedTenants {
    /// Tenants with these volumes, whose exports have these names; all of them are served.
    fn new(volumes: Vec<ServedVolume>, exports: Vec<String>) -> ServedTenants {
        ServedTenants { members: vec![Member::Served; volumes.len()], volumes, exports }
    }

    /// How each tenant is served.
    fn members(&self) -> &[Member] {
        &self.members
    }

    /// All volumes, those of tenants that have gone among them.
    fn volumes(&self) -> &[ServedVolume] {
        &self.volumes
    }

    /// The names of all exports, those of tenants that have gone among them.
    fn exports(&self) -> &[String] {
        &self.exports
    }

    /// One more tenant, which is served.
    fn add(&mut self, volume: ServedVolume, export: String) {
        self.members.push(Member::Served);
        self.volumes.push(volume);
        self.exports.push(export);
    }

    /// A tenant's volume has grown; returns how large it was, in bytes.
    fn grow(&mut self, tenant: usize, volume: ServedVolume) -> u64 {
        std::mem::replace(&mut self.volumes[tenant], volume).bytes
    }

    /// A tenant is served otherwise from now on.
    fn set_member(&mut self, tenant: usize, member: Member) {
        self.members[tenant] = member;
    }

    /// The numbers of tenants that are served.
    fn served(&self) -> impl Iterator<Item = usize> + '_ {
        let served = |tenant: &usize| self.members[*tenant] == Member::Served;
        (0..self.members.len()).filter(served)
    }

    /// The exports that clients find, separated by commas.
    fn listed(&self) -> String {
        let names: Vec<&str> = self.served().map(|tenant| self.exports[tenant].as_str()).collect();
        names.join(", ")
    }

    /// Lines about tenants that go and have not gone when the server ends.
    fn not_gone(&self) -> Vec<String> {
        let going =
            |tenant: &usize| matches!(self.members[*tenant], Member::Closing | Member::Going);
        let line = |tenant: usize| {
            format!(
                "export `{}`: not removed yet; the next start needs its `[[tenant]]`",
                self.exports[tenant]
            )
        };
        (0..self.members.len()).filter(going).map(line).collect()
    }
}

/// A listener for each address of NBD, and for each socket that is passed. Errors: one cannot be
/// opened; none is passed where the stack says so.
fn listeners(addresses: &[ListenAddress]) -> Result<Vec<Listener>, LiveError> {
    let mut found = Vec::new();
    for address in addresses {
        match address {
            ListenAddress::Unix(path) => found.push(unix_listener(path)?),
            ListenAddress::Tcp(text) => found.push(tcp_listener(text)?),
            ListenAddress::Vhost(_) => {}
            ListenAddress::Passed => {
                for number in passed()? {
                    found.push(passed_listener(number)?);
                }
            }
        }
    }
    Ok(found)
}

/// Sentences about addresses that other machines reach without having to use TLS.
fn exposed(plan: &LivePlan, listeners: &[Listener]) -> Vec<String> {
    if plan.serve.secure.as_ref().is_some_and(|files| files.is_required) {
        return Vec::new();
    }
    let reachable = |listener: &&Listener| {
        let address = listener.address().parse::<SocketAddr>();
        address.is_ok_and(|address| !address.ip().to_canonical().is_loopback())
    };
    let sentence = |listener: &Listener| {
        format!(
            "`serve.listen`: other machines reach {}, where clients need no TLS: they read and \
             write volumes, and nothing is encrypted; expected `serve.tls = \"required\"`, or a \
             loopback address",
            listener.address()
        )
    };
    listeners.iter().filter(reachable).map(sentence).collect()
}

fn passed() -> Result<Vec<i32>, LiveError> {
    let refuse = |found: String| {
        let expected = "expected a socket unit that starts this service";
        LiveError::Refused(format!("`serve.listen`: found `systemd`, and {found}; {expected}"))
    };
    let numbers = operator::passed_sockets().map_err(|error| refuse(error.to_string()))?;
    if numbers.is_empty() {
        return Err(refuse("no socket that it has passed".to_owned()));
    }
    Ok(numbers)
}

/// A stack that is to be taken over.
struct PendingReload {
    plan: Result<LivePlan, LiveError>,
    /// Histories that are read before.
    reading: Option<HistoryLoad>,
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

/// A server without clients.
struct Shutdown {
    io: Delayed<SystemIo>,
    blocks: BlockServer,
    done: Vec<Done>,
    /// Last syncs of the cache's devices that are under way, and the error of one.
    syncs: usize,
    failed: Option<IoError>,
}

impl Shutdown {
    /// Makes all that was answered durable, of each tenant as far as that goes, whose exports have
    /// these names. Errors: a device fails.
    fn flush(&mut self, tenants: &[usize], exports: &[String]) -> Result<(), LiveError> {
        for tenant in tenants.iter().copied() {
            let flush = BlockRequest {
                tag: tenant as u64,
                tenant: TenantId(tenant as u16),
                op: BlockOp::Flush,
                offset: 0,
                length: 0,
                durable: true,
                data: Buffer::default(),
            };
            self.blocks.request(&mut self.io, flush);
        }
        let mut answers = Vec::new();
        while answers.len() < tenants.len() {
            self.blocks.advance(&mut self.io);
            answers.extend(self.blocks.take_answers());
            if answers.len() < tenants.len() {
                self.wait();
            }
        }
        answers.sort_unstable_by_key(|answer| answer.tag);
        let failed = |answer: BlockAnswer| {
            let (export, error) = (&exports[answer.tag as usize], answer.result.err()?);
            Some(format!("export `{export}`: {error}"))
        };
        let failed: Vec<String> = answers.into_iter().filter_map(failed).collect();
        if failed.is_empty() { Ok(()) } else { Err(not_durable(failed.join("; "))) }
    }

    /// Ends the segments of the log. One that is bypassed is not ended: volumes do without it, or
    /// a flush has failed. Errors: a device fails.
    fn close(&mut self, cache: &[FileId]) -> Result<(), LiveError> {
        if self.blocks.log_failure().is_some() {
            return Ok(());
        }
        self.blocks.close(&mut self.io);
        self.blocks.advance(&mut self.io);
        while self.blocks.is_closing() {
            self.wait();
            self.blocks.advance(&mut self.io);
        }
        cache.iter().for_each(|file| self.io.submit(LAST_SYNC, IoOp::Sync { file: *file }));
        self.syncs = cache.len();
        while self.syncs > 0 {
            self.wait();
        }
        self.failed.map_or(Ok(()), |error| Err(not_durable(error)))
    }

    /// Takes what is done. The timer may be over, too.
    fn wait(&mut self) {
        self.io.wait(&mut self.done);
        for done in self.done.drain(..) {
            if done.token == LAST_SYNC {
                self.syncs -= 1;
                self.failed = self.failed.or(done.error);
            } else if self.blocks.owns(done.token) {
                self.blocks.on_done(&mut self.io, done);
            }
        }
    }
}

fn not_durable(error: impl std::fmt::Display) -> LiveError {
    LiveError::Failed(format!("stopped, and not all that was written is durable: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_live::log::format::VolumeId;

    #[test]
    fn a_tenant_that_has_gone_keeps_its_number() {
        let volume = |bytes: u64| ServedVolume { id: VolumeId(0), bytes, backing: FileId(0) };
        let mut tenants =
            ServedTenants::new(vec![volume(1), volume(2)], vec!["a".to_owned(), "b".to_owned()]);
        tenants.set_member(0, Member::Closing);
        assert_eq!(tenants.not_gone().len(), 1);
        tenants.set_member(0, Member::Gone);
        assert_eq!(tenants.not_gone(), [""; 0]);
        tenants.add(volume(3), "c".to_owned());
        assert_eq!(tenants.grow(2, volume(5)), 3);
        assert_eq!((tenants.served().collect(), tenants.listed()), (vec![1, 2], "b, c".to_owned()));
        assert_eq!((tenants.members().len(), tenants.volumes()[2].bytes), (3, 5));
    }

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
