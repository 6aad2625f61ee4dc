//! A server from its start to its end.
//!
//! For: the loop over operations, and an end in order. Must never know: how requests are carried
//! out, signals. Units: bytes, blocks, nanoseconds. A start checks everything before it writes. An
//! end takes no more clients, answers the requests that it has begun, and makes all that was
//! answered durable. A device that has failed does not keep the others from their end.

mod ending;
mod recorder;
mod reload;
mod tenants;

use crate::devices::{Devices, SPARE_SEGMENTS, group_blocks, refuse_failing, set_error, unsynced};
use crate::error::LiveError;
use crate::failures::{self, Failures};
use crate::holding::Holding;
use crate::identity::{Identities, Purpose, examine};
use crate::layout::LaidOut;
use crate::lines::{self, OperatorLine};
use crate::listeners::{exposed, listeners};
use crate::manager::Manager;
use crate::memory;
use crate::plan::{LivePlan, StackVolume};
use crate::secure::tls_config;
use crate::volumes::{check_served, matched};
use crate::watch::Watch;
use cachewright_cache::Cache;
use cachewright_live::blocks::{
    BlockServer, Division, RestoreError, Restored, ServedVolume, ServerParts,
};
use cachewright_live::exports::{ConnectionLimits, Node, NodeSettings, ServedExport, TlsConfig};
use cachewright_live::io::delayed::Delayed;
use cachewright_live::io::open::{FileAccess, Listener};
use cachewright_live::io::system::SystemIo;
use cachewright_live::io::{Done, FileId, Io, IoOp, Token};
use cachewright_live::log::{OpenSet, read_log};
use cachewright_nbd::Limits;
use cachewright_policy::Policy;
use cachewright_types::TenantId;
use ending::EndingServer;
use recorder::DecisionRecorder;
use reload::PendingReload;
use std::path::Path;
use tenants::ServedTenants;

/// The eight highest bits of tokens: of the log's, the blocks' and the connections'.
const NAMESPACES: [u8; 3] = [1, 2, 3];
/// The token of the timer for this.
const TICK: Token = Token(4 << 56);
/// The token of the last syncs of the cache's devices.
const LAST_SYNC: Token = Token(5 << 56);
/// How often the server looks whether to stop.
const TICK_NS: u64 = 50_000_000;

/// What is said of a set that has lost content.
const LOST: &str = "cache: content that was durable is gone, or may be, so that volumes may hold \
                    older content: a device did not keep what it had synced, or was damaged; \
                    exports are read-only until `cachewright live repair`";

/// Why such a set is served with write-back only.
const LOST_DIRTY: &str = "`cache.write`: found a mode without dirty blocks, and a cache that has \
                          lost content which was durable: backing devices could get older content; \
                          expected `write-back`, or `cachewright live repair` before";

/// What the surroundings of a server want of it.
pub enum ServerWish {
    /// To go on.
    GoOn,
    /// To end, in order.
    Stop,
    /// To finish the recording under way and to begin another one.
    Roll,
    /// To go on by this stack, or an error of the stack, which is said.
    Reload(Box<Result<LivePlan, LiveError>>),
}

/// A server whose clients can connect.
pub struct Server {
    plan: LivePlan,
    tenants: ServedTenants,
    identities: Identities,
    /// No export can be written to: content that was durable is gone.
    read_only: bool,
    io: Delayed<SystemIo>,
    node: Node,
    lines: Vec<OperatorLine>,
    /// The cache's devices.
    cache: Vec<FileId>,
    /// What is known of devices that have failed.
    failures: Failures,
    /// Operations that are done: the memory is kept.
    done: Vec<Done>,
    recorder: DecisionRecorder,
    watch: Option<Watch>,
    /// A stack that waits to be taken over.
    pending: Option<PendingReload>,
    holding: Holding,
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
        let laid_out = plan.layout(&set.set, &devices.cache, &ahead)?;
        let cache = plan.cache(&ahead, &laid_out.limits)?;
        let division = plan.division(&ahead, &laid_out.limits)?;
        let (served, table) = matched(plan, &devices, &set.superblock)?;
        let watch = Watch::start(plan, &served, &devices.io)?;
        let listeners = listeners(&plan.serve.listen)?;
        let paths = devices.paths(plan, &set.set);
        let failed = |error| set_error(plan, &paths, &error);
        let mut holding = Holding::begin(plan, &mut devices.io, &set)?;
        let found = read_log(&mut devices.io, &set).map_err(failed)?;
        if let Some(page) = found.failing_device() {
            return Err(refuse_failing(&paths, page));
        }
        check_served(plan, (&served, &table), (&found.blocks, plan.block_bytes()))?;
        let is_lost = set.superblock.has_lost || found.has_lost();
        if is_lost && !plan.keeps_dirty() {
            return Err(plan.refuse(LOST_DIRTY));
        }
        let examined = examine(plan, &mut devices, &set, &served, &found, Purpose::Serve)?;
        holding.take(plan, &mut devices.io, &set)?;
        found.mark_lost(&mut devices.io, &mut set).map_err(failed)?;
        // A volume that has grown keeps its size in the table until its last block is given up.
        let known = set.superblock.volumes.clone();
        let (identities, found, changed) =
            examined.begin(plan, &mut devices.io, &mut set, &known, found, &paths)?;
        let read_only = set.superblock.has_lost;
        let unreadable = lines::unreadable(&paths, &found.unreadable);
        let found = found.settle(&mut devices.io).map_err(failed)?;
        let (mut blocks, restored) =
            opened((plan, cache, &laid_out), &mut devices.io, (&set, served.clone()), found)?;
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
        lines.extend(lines::described((plan, &laid_out), &served, &addresses));
        lines.extend(changed);
        warnings.extend(unreadable);
        warnings.extend(read_only.then(|| LOST.to_owned()));
        lines.extend(watch.as_ref().map(Watch::described));
        lines.push(lines::summary(plan, devices.io.name(), &restored));
        divide(plan, &mut blocks, division, devices.io.now_ns())?;
        let recorder = DecisionRecorder::begin(record, plan, (&devices.io, &mut blocks))?;
        lines.extend(recorder.described(restored.clean + restored.dirty));
        let mut io = devices.io;
        let exports = plan.volumes.iter().zip(&served);
        let exports = exports.map(|(planned, volume)| export(planned, volume, read_only, &io));
        let mut node = node(plan, blocks, exports.collect(), tls);
        set_limits(&mut node, watch.as_ref());
        listeners.into_iter().for_each(|listener| node.listen(io.add_listener(listener)));
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
            node,
            lines,
            cache: devices.cache,
            failures,
            done: Vec::new(),
            recorder,
            watch,
            pending: None,
            holding,
        })
    }

    /// What operators are told: warnings, notices, what is served, and what was found.
    pub fn lines(&self) -> &[OperatorLine] {
        &self.lines
    }

    /// Serves until `wish` says stop, which is called twenty times a second. `say` gets a sentence
    /// when a device fails, a recording ends early, or another stack is taken over. Clients that do
    /// not take their answers are closed ten seconds after the stop. Errors: what was answered
    /// could not be made durable, or what was decided not recorded; another server has taken the
    /// devices over.
    pub fn run(
        mut self,
        wish: &mut dyn FnMut() -> ServerWish,
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
                self.holding.tick(&mut self.io)?;
                let decider = (&mut self.io, self.node.blocks_mut());
                self.recorder.tick(&self.plan, decider, now_ns);
                self.node.blocks_mut().tick_curves(now_ns);
                if let Some(watch) = &mut self.watch {
                    watch.tick((&mut self.node, self.recorder.folder()), now_ns);
                }
                match wish() {
                    ServerWish::GoOn => {}
                    ServerWish::Stop => break,
                    ServerWish::Roll => self.roll(),
                    ServerWish::Reload(plan) => {
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
        self.holding.begin_look(&mut self.io);
        while self.holding.is_looking() {
            self.turn();
        }
        self.holding.check()?;
        self.node.stop();
        while !self.node.is_stopped() {
            self.turn();
        }
        let (served, left) = (self.tenants.served().collect::<Vec<_>>(), self.tenants.not_gone());
        let Server { plan, io, node, tenants, identities, cache, done, recorder, .. } = self;
        let mut ending =
            EndingServer { io, blocks: node.into_blocks(), done, syncs: 0, failed: None };
        let EndingServer { io, blocks, .. } = &mut ending;
        let recorded = recorder.finish(io, blocks);
        let mut lines = lines::found(tenants.exports(), blocks);
        // A volume that has failed does not keep the log from its end.
        lines.extend(left);
        let flushed = ending.flush(&served, tenants.exports());
        let closed = ending.close(&cache);
        flushed.and(closed)?;
        lines.extend(recorded?);
        let EndingServer { io, blocks, .. } = &mut ending;
        lines.extend(identities.end(&plan, io, blocks, &served, tenants.volumes()));
        let dirty = ending.blocks.dirty_blocks();
        Ok(Stopped { dirty_bytes: dirty * plan.block_bytes(), lines })
    }

    /// Begins what is due and takes what is done; returns whether the timer is over, which begins
    /// again.
    fn turn(&mut self) -> bool {
        let mut ticked = false;
        self.node.advance(&mut self.io);
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
        if self.holding.owns(done.token) {
            self.holding.on_done(&done);
            return false;
        }
        match is_timer {
            true => self.io.submit(TICK, IoOp::Timer { at_ns: self.io.now_ns() + TICK_NS }),
            false => self.node.on_done(&mut self.io, done),
        }
        is_timer
    }

    /// Lines about what has changed since the last call.
    fn news(&mut self) -> Vec<OperatorLine> {
        let blocks = self.node.blocks();
        let failed = self.failures.news(blocks).into_iter().map(OperatorLine::warning);
        let mut lines: Vec<OperatorLine> = failed.chain(self.recorder.news(blocks)).collect();
        let block_bytes = blocks.block_bytes();
        for found in self.node.blocks_mut().take_revived() {
            let export = &self.tenants.exports()[found.tenant.index()];
            lines.push(failures::revived(export, &found, block_bytes));
        }
        lines.extend(self.go_on_removing().into_iter().map(OperatorLine::info));
        lines
    }

    /// Finishes the recording under way in the folder of recordings, and begins another one.
    fn roll(&mut self) {
        self.recorder.roll(&self.plan, (&mut self.io, self.node.blocks_mut()));
    }
}

/// The server of blocks, with what recovery found.
fn opened(
    (plan, cache, laid_out): (&LivePlan, Cache<Box<dyn Policy>>, &LaidOut),
    io: &mut SystemIo,
    (set, volumes): (&OpenSet, Vec<ServedVolume>),
    found: cachewright_live::log::RecoveredLog,
) -> Result<(BlockServer, Restored), LiveError> {
    let parts = ServerParts {
        cache,
        open: set.clone(),
        group_blocks: group_blocks(&set.set),
        spare_segments: SPARE_SEGMENTS,
        cleaning: plan.cleaning(),
        layout: laid_out.devices.clone(),
        volumes,
        namespaces: [NAMESPACES[0], NAMESPACES[1]],
    };
    let opened = BlockServer::open(io, parts, found);
    let (mut blocks, restored) = opened.map_err(|error| match error {
        RestoreError::Unsynced { tenant, error } => unsynced(&plan.volumes[tenant].backing, error),
        error => LiveError::Failed(error.to_string()),
    })?;
    blocks.set_background(plan.background());
    blocks.cut_off(plan.cutoff());
    Ok((blocks, restored))
}

/// Divides the cache anew while it serves, and keeps curves, as the stack wants it. Errors: curves
/// cannot be kept.
fn divide(
    plan: &LivePlan,
    blocks: &mut BlockServer,
    division: Option<Division>,
    now_ns: u64,
) -> Result<(), LiveError> {
    division.into_iter().for_each(|division| blocks.divide_by(division));
    blocks.keep_curves(now_ns, plan.kept_curves()?);
    Ok(())
}

/// Errors: clients cannot connect anywhere, or what is decided cannot be recorded as wanted.
pub(crate) fn check(plan: &LivePlan, record: Option<&Path>) -> Result<(), LiveError> {
    DecisionRecorder::check(plan, record)?;
    match plan.serve.listen.is_empty() {
        true => Err(plan.refuse(
            "found no `serve.listen`, expected addresses such as `unix:/run/cachewright.sock`",
        )),
        false => Ok(()),
    }
}

/// The names of exports, by tenant.
fn export_names(plan: &LivePlan) -> Vec<String> {
    plan.volumes.iter().map(|volume| volume.export.clone()).collect()
}

/// Connections to all volumes.
fn node(
    plan: &LivePlan,
    blocks: BlockServer,
    exports: Vec<ServedExport>,
    tls: Option<(TlsConfig, bool)>,
) -> Node {
    let settings = NodeSettings {
        limits: Limits::default(),
        connection: ConnectionLimits {
            negotiation_ns: plan.serve.negotiation_timeout.0,
            stall_ns: plan.serve.stall_timeout.0,
            ..ConnectionLimits::default()
        },
        extended_headers: plan.serve.extended_headers,
        max_connections: plan.serve.max_connections as usize,
        client_memory: plan.serve.client_memory.0,
        namespace: NAMESPACES[2],
    };
    let mut node = Node::new(blocks, exports, settings);
    for tenant in 0..plan.volumes.len() {
        node.cap(TenantId(tenant as u16), plan.caps(tenant));
    }
    if let Some((config, is_required)) = tls {
        node.offer_tls(config, is_required);
    }
    node
}

/// Requests are counted beside the times that they are to keep, where a server is watched.
pub(crate) fn set_limits(node: &mut Node, watch: Option<&Watch>) {
    let limits = watch.map(Watch::limits).unwrap_or_default();
    for (tenant, limit_ns) in limits.into_iter().enumerate() {
        node.set_limit(TenantId(tenant as u16), limit_ns);
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
