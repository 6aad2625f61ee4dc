//! A server from its start to its end.
//!
//! For: the loop over operations, and an end in order. Must never know: how requests are carried
//! out, signals. Units: bytes, blocks, nanoseconds. A start checks everything before it writes. An
//! end takes no more clients, answers the requests that it has begun, and makes all that was
//! answered durable. A device that has failed does not keep the others from their end.

mod ending;
mod reload;

use crate::abandoned::AbandonedRecordings;
use crate::changes::Member;
use crate::devices::{Devices, SPARE_SEGMENTS, group_blocks, set_error};
use crate::error::LiveError;
use crate::failures::Failures;
use crate::layout::LaidOut;
use crate::lines::{self, OperatorLine};
use crate::listeners::listeners;
use crate::manager::Manager;
use crate::memory;
use crate::plan::{LivePlan, StackVolume};
use crate::recording::LiveRecording;
use crate::recordings::Recordings;
use crate::secure::tls_config;
use crate::volumes::{check_served, matched};
use crate::watch::Watch;
use cachewright_cache::Cache;
use cachewright_live::blocks::{BlockServer, Division, Restored, ServedVolume, ServerParts};
use cachewright_live::exports::{ConnectionLimits, Node, NodeSettings, ServedExport, TlsConfig};
use cachewright_live::io::delayed::Delayed;
use cachewright_live::io::open::{FileAccess, Listener};
use cachewright_live::io::system::SystemIo;
use cachewright_live::io::{Done, FileId, Io, IoOp, Token};
use cachewright_live::log::{OpenSet, read_log, rewrite};
use cachewright_nbd::Limits;
use cachewright_policy::Policy;
use cachewright_types::TenantId;
use ending::EndingServer;
use reload::PendingReload;
use std::path::Path;

/// The eight highest bits of tokens: of the log's, the blocks' and the connections'.
const NAMESPACES: [u8; 3] = [1, 2, 3];
/// The token of the timer for this.
const TICK: Token = Token(4 << 56);
/// The token of the last syncs of the cache's devices.
const LAST_SYNC: Token = Token(5 << 56);
/// How often the server looks whether to stop.
const TICK_NS: u64 = 50_000_000;

/// What is said of a set that has lost content.
const LOST: &str = "cache: content that was durable is gone, so that volumes may hold older \
                    content: a device did not keep what it had synced, or was damaged; exports are \
                    read-only until `cachewright live repair`";

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
    /// Tenants by number, and their volumes.
    members: Vec<Member>,
    volumes: Vec<ServedVolume>,
    /// No export can be written to: content that was durable is gone.
    read_only: bool,
    io: Delayed<SystemIo>,
    node: Node,
    exports: Vec<String>,
    block_bytes: u64,
    lines: Vec<String>,
    /// The cache's devices.
    cache: Vec<FileId>,
    /// What is known of devices that have failed.
    failures: Failures,
    /// Operations that are done: the memory is kept.
    done: Vec<Done>,
    recording: Option<LiveRecording>,
    /// Recordings of servers that were killed.
    abandoned: Option<AbandonedRecordings>,
    recordings: Option<Recordings>,
    watch: Option<Watch>,
    /// A stack that waits to be taken over.
    pending: Option<PendingReload>,
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
        let found = read_log(&mut devices.io, &set).map_err(failed)?;
        check_served(plan, (&served, &table), (&found.blocks, plan.block_bytes()))?;
        let is_lost = set.superblock.has_lost || found.lost_groups > 0;
        if is_lost && !plan.keeps_dirty() {
            return Err(plan.refuse(LOST_DIRTY));
        }
        found.mark_lost(&mut devices.io, &mut set).map_err(failed)?;
        if table != set.superblock.volumes {
            set.superblock.volumes = table;
            rewrite(&mut devices.io, &mut set).map_err(failed)?;
        }
        let read_only = set.superblock.has_lost;
        let found = found.settle(&mut devices.io).map_err(failed)?;
        let (mut blocks, restored) =
            opened((plan, cache, &laid_out), &mut devices.io, (&set, served.clone()), found)?;
        let mut lines = devices.notices;
        let addresses: Vec<&str> = listeners.iter().map(Listener::address).collect();
        lines.extend(lines::described((plan, &laid_out), &served, &addresses));
        lines.extend(read_only.then(|| LOST.to_owned()));
        lines.extend(watch.as_ref().map(Watch::described));
        lines.push(lines::summary(plan, devices.io.name(), &restored));
        divide(plan, &mut blocks, division, devices.io.now_ns())?;
        let (abandoned, recording) = record_in(record, plan, &mut blocks)?;
        let held = restored.clean + restored.dirty;
        lines.extend(recording.as_ref().map(|recording| recording.described(held)));
        let recordings = Recordings::begin(plan, &devices.io, &mut blocks)?;
        lines.extend(recordings.as_ref().map(Recordings::described));
        let mut node = node(plan, blocks, (&served, read_only), tls);
        let mut io = devices.io;
        listeners.into_iter().for_each(|listener| node.listen(io.add_listener(listener)));
        let io = Delayed::new(io, slow_files(plan, &served));
        let exports = export_names(plan);
        let failures = Failures::new(exports.clone(), paths);
        let (block_bytes, cache) = (plan.block_bytes(), devices.cache);
        Ok(Server {
            plan: plan.clone(),
            members: vec![Member::Served; served.len()],
            volumes: served,
            read_only,
            io,
            node,
            exports,
            block_bytes,
            lines,
            cache,
            failures,
            done: Vec::new(),
            recording,
            abandoned,
            recordings,
            watch,
            pending: None,
        })
    }

    /// What operators are told: notices, what is served, and what was found.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Serves until `wish` says stop, which is called twenty times a second. `say` gets a sentence
    /// when a device fails, a recording ends early, or another stack is taken over. Clients that do
    /// not take their answers are closed ten seconds after the stop. Errors: what was answered
    /// could not be made durable, or what was decided not recorded.
    pub fn run(
        mut self,
        wish: &mut dyn FnMut() -> ServerWish,
        say: &mut dyn FnMut(&OperatorLine),
    ) -> Result<Stopped, LiveError> {
        self.io.submit(TICK, IoOp::Timer { at_ns: self.io.now_ns() + TICK_NS });
        let mut manager = Manager::found();
        manager.ready(&format!("serving {}", self.exports.join(", ")));
        loop {
            if self.turn() {
                for line in self.news() {
                    manager.status(&line.text);
                    say(&line);
                }
                let now_ns = self.io.now_ns();
                manager.tick(now_ns);
                self.tick_recordings(now_ns);
                self.node.blocks_mut().tick_curves(now_ns);
                if let Some(watch) = &mut self.watch {
                    watch.tick((&mut self.node, self.recordings.as_ref()), now_ns);
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
                    manager.ready(&format!("serving {}", self.served_exports().join(", ")));
                }
            }
        }
        manager.stopping();
        self.node.stop();
        while !self.node.is_stopped() {
            self.turn();
        }
        let (tenants, left) = (self.served(), self.not_gone());
        let Server { io, node, exports, cache, done, recording, abandoned, recordings, .. } = self;
        let mut ending =
            EndingServer { io, blocks: node.into_blocks(), done, syncs: 0, failed: None };
        let EndingServer { io, blocks, .. } = &mut ending;
        let recorded = recording.map(|recording| recording.finish(io, blocks));
        let rolled = recordings.map(|recordings| recordings.finish(io, blocks));
        let recovered = abandoned.map(AbandonedRecordings::finish);
        let mut lines = lines::found(&exports, blocks);
        // A volume that has failed does not keep the log from its end.
        lines.extend(left);
        let flushed = ending.flush(&tenants, &exports);
        let closed = ending.close(&cache);
        flushed.and(closed)?;
        lines.extend(recorded.transpose()?);
        lines.extend(rolled.into_iter().chain(recovered).flatten());
        let dirty = ending.blocks.dirty_blocks();
        Ok(Stopped { dirty_bytes: dirty * self.block_bytes, lines })
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
        match is_timer {
            true => self.io.submit(TICK, IoOp::Timer { at_ns: self.io.now_ns() + TICK_NS }),
            false => self.node.on_done(&mut self.io, done),
        }
        is_timer
    }

    /// The exports that clients find.
    fn served_exports(&self) -> Vec<&str> {
        let named = self.exports.iter().zip(&self.members);
        let served = named.filter(|(_, member)| **member == Member::Served);
        served.map(|(name, _)| name.as_str()).collect()
    }

    /// Lines about what has changed since the last call.
    fn news(&mut self) -> Vec<OperatorLine> {
        let blocks = self.node.blocks();
        let failed = self.failures.news(blocks).into_iter();
        let recording = self.recording.as_mut();
        let stopped = recording.and_then(|recording| recording.stopped_early(blocks));
        let rolled = self.recordings.as_mut().map(|recordings| recordings.news(blocks));
        let lines = failed.chain(stopped).chain(rolled.into_iter().flatten());
        let mut lines: Vec<OperatorLine> = lines.map(OperatorLine::warning).collect();
        lines.extend(self.abandoned.iter().flat_map(AbandonedRecordings::news));
        lines.extend(self.go_on_removing().into_iter().map(OperatorLine::info));
        lines
    }

    /// Recordings end, and what was recorded is kept, when that is due.
    fn tick_recordings(&mut self, now_ns: u64) {
        if let Some(recordings) = &mut self.recordings {
            recordings.tick(&self.plan, &mut self.io, self.node.blocks_mut());
        } else if self.recording.is_some() {
            self.node.blocks_mut().keep_recording(now_ns, self.plan.serve.record_keep.0);
        }
    }

    /// Finishes the recording under way in the folder of recordings, and begins another one.
    fn roll(&mut self) {
        if let Some(recordings) = &mut self.recordings {
            recordings.roll(&self.plan, &mut self.io, self.node.blocks_mut());
        }
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
    let (mut blocks, restored) = opened.map_err(|error| LiveError::Failed(error.to_string()))?;
    blocks.set_background(plan.background());
    Ok((blocks, restored))
}

/// Begins the recording in a file, if there is to be one, and recovers what killed servers left of
/// it. Errors: the operating system's.
fn record_in(
    path: Option<&Path>,
    plan: &LivePlan,
    blocks: &mut BlockServer,
) -> Result<(Option<AbandonedRecordings>, Option<LiveRecording>), LiveError> {
    let Some(path) = path else { return Ok((None, None)) };
    let abandoned = AbandonedRecordings::begin(path)?;
    let recording = LiveRecording::begin(path, plan)?;
    blocks.record(recording.sink());
    Ok((abandoned, Some(recording)))
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
fn check(plan: &LivePlan, record: Option<&Path>) -> Result<(), LiveError> {
    record.map_or(Ok(()), LiveRecording::check)?;
    Recordings::check(plan, record)?;
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
    (served, read_only): (&[ServedVolume], bool),
    tls: Option<(TlsConfig, bool)>,
) -> Node {
    let exports = plan.volumes.iter().zip(served).map(|pair| export(pair, read_only));
    let settings = NodeSettings {
        limits: Limits::default(),
        connection: ConnectionLimits::default(),
        extended_headers: plan.serve.extended_headers,
        max_connections: plan.serve.max_connections as usize,
        namespace: NAMESPACES[2],
    };
    let mut node = Node::new(blocks, exports.collect(), settings);
    for tenant in 0..served.len() {
        node.cap(TenantId(tenant as u16), plan.caps(tenant));
    }
    if let Some((config, is_required)) = tls {
        node.offer_tls(config, is_required);
    }
    node
}

/// Backing devices that answer late, and how much later.
fn slow_files(plan: &LivePlan, served: &[ServedVolume]) -> Vec<(FileId, u64)> {
    let delay_ns = plan.serve.backing_delay.0;
    let slow = served.iter().map(|volume| (volume.backing, delay_ns));
    slow.filter(|_| delay_ns > 0).collect()
}

/// A volume as clients find it.
pub(crate) fn export(
    (planned, served): (&StackVolume, &ServedVolume),
    read_only: bool,
) -> ServedExport {
    let (name, clients) = (planned.export.clone(), planned.clients.clone());
    let read_only = read_only || planned.read_only;
    ServedExport { name, bytes: served.bytes, read_only, clients }
}
