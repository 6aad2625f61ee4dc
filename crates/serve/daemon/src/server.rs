//! A server from its start to its end.
//!
//! For: the loop over operations, and an end in order. Must never know: how requests are carried
//! out, signals. Units: bytes, blocks, nanoseconds. A start checks everything before it writes. An
//! end takes no more clients, answers what has arrived, and makes all that was answered durable.

use crate::devices::{Devices, log_settings, set_error};
use crate::error::LiveError;
use crate::plan::{LivePlan, PlannedVolume};
use crate::secure::tls_config;
use crate::volumes::{check_served, matched};
use cachewright_live::blocks::{BlockOp, BlockRequest, BlockServer, Parts, Restored, ServedVolume};
use cachewright_live::exports::{ConnectionLimits, Node, NodeSettings, ServedExport};
use cachewright_live::io::open::{Access, Listener, tcp_listener, unix_listener};
use cachewright_live::io::system::SystemIo;
use cachewright_live::io::{Buffer, Done, FileId, Io, IoError, IoOp, Token, batch};
use cachewright_live::log::{LogSettings, OpenSet, read_log, rewrite};
use cachewright_nbd::Limits;
use cachewright_stack::ListenAddress;
use cachewright_types::{Bytes, TenantId};

/// The eight highest bits of tokens: of the log's, the blocks' and the connections'.
const NAMESPACES: [u8; 3] = [1, 2, 3];
/// The token of the timer for this.
const TICK: Token = Token(4 << 56);
/// How often the server looks whether to stop.
const TICK_NS: u64 = 50_000_000;
/// How long clients have to take what they are still to be sent.
const DRAIN_NS: u64 = 10_000_000_000;

/// A server whose clients can connect.
pub struct Server {
    io: SystemIo,
    node: Node,
    tenants: usize,
    block_bytes: u64,
    lines: Vec<String>,
    /// The cache's devices.
    cache: Vec<FileId>,
}

/// What a server left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Bytes that only the cache has.
    pub dirty_bytes: u64,
    /// Connections that were closed before they had taken all that was to be sent.
    pub cut_off: usize,
}

impl Server {
    /// Opens everything and takes clients. It belongs to the thread that starts it. Errors: see
    /// [`LiveError`]; a refusal comes before anything is written.
    pub fn start(plan: &LivePlan) -> Result<Server, LiveError> {
        if plan.serve.listen.is_empty() {
            let expected = "expected addresses such as `unix:/run/cachewright.sock`";
            return Err(plan.refuse(format!("found no `serve.listen`, {expected}")));
        }
        let tls = tls_config(plan)?;
        let mut devices = Devices::open(plan, Access::Write)?;
        let mut set = devices.set(plan)?;
        let (served, table) = matched(plan, &devices, &set.superblock)?;
        let listeners: Vec<Listener> =
            plan.serve.listen.iter().map(listener).collect::<Result<_, _>>()?;
        let paths = devices.paths(plan, &set.set);
        let failed = |error| set_error(plan, &paths, &error);
        let found = read_log(&mut devices.io, &set).map_err(failed)?;
        check_served(plan, (&served, &table), (&found.blocks, plan.block_bytes()))?;
        if table != set.superblock.volumes {
            set.superblock.volumes = table;
            rewrite(&mut devices.io, &mut set).map_err(failed)?;
        }
        let found = found.settle(&mut devices.io).map_err(failed)?;
        let (blocks, restored) = opened(plan, &mut devices.io, (&set, served.clone()), found)?;
        let mut lines = devices.notices;
        let addresses: Vec<&str> = listeners.iter().map(Listener::address).collect();
        lines.extend(described(plan, &served, &addresses));
        lines.push(summary(plan, &devices.io, &restored));
        let exports = plan.volumes.iter().zip(&served).map(export).collect();
        let settings = NodeSettings {
            limits: Limits::default(),
            connection: ConnectionLimits::default(),
            max_connections: plan.serve.max_connections as usize,
            namespace: NAMESPACES[2],
        };
        let mut node = Node::new(blocks, exports, settings);
        if let Some((config, is_required)) = tls {
            node.offer_tls(config, is_required);
        }
        let mut io = devices.io;
        listeners.into_iter().for_each(|listener| node.listen(io.add_listener(listener)));
        let (tenants, block_bytes) = (plan.volumes.len(), plan.block_bytes());
        Ok(Server { io, node, tenants, block_bytes, lines, cache: devices.cache })
    }

    /// What operators are told: notices, what is served, and what was found.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Serves until `stop` says so, which is called twenty times a second. Clients then have ten
    /// seconds to take their answers. Errors: what was answered could not be made durable.
    pub fn run(mut self, stop: &mut dyn FnMut() -> bool) -> Result<Stopped, LiveError> {
        self.io.submit(TICK, IoOp::Timer { at_ns: self.io.now_ns() + TICK_NS });
        while !(self.turn() && stop()) {}
        self.node.stop();
        let end_ns = self.io.now_ns() + DRAIN_NS;
        let mut cut_off = 0;
        while !self.node.is_stopped() {
            if self.turn() && self.io.now_ns() > end_ns && cut_off == 0 {
                cut_off = self.node.connections();
                self.node.cut_off();
            }
        }
        let mut ending = Ending { io: self.io, blocks: self.node.into_blocks() };
        ending.flush(self.tenants)?;
        ending.close(&self.cache)?;
        let dirty = ending.blocks.cache().engine().dirty_blocks();
        Ok(Stopped { dirty_bytes: dirty * self.block_bytes, cut_off })
    }

    /// Begins what is due and takes what is done; returns whether the timer is over, which begins
    /// again.
    fn turn(&mut self) -> bool {
        let mut ticked = false;
        let mut done = Vec::new();
        self.node.advance(&mut self.io);
        self.io.wait(&mut done);
        for done in done {
            if done.token == TICK {
                ticked = true;
                self.io.submit(TICK, IoOp::Timer { at_ns: self.io.now_ns() + TICK_NS });
            } else {
                self.node.on_done(&mut self.io, done);
            }
        }
        ticked
    }
}

/// A server without clients.
struct Ending {
    io: SystemIo,
    blocks: BlockServer,
}

impl Ending {
    /// Makes all that was answered durable. Errors: a device fails.
    fn flush(&mut self, tenants: usize) -> Result<(), LiveError> {
        for tenant in 0..tenants {
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
        while answers.len() < tenants {
            self.blocks.advance(&mut self.io);
            answers.extend(self.blocks.take_answers());
            if answers.len() < tenants {
                self.wait();
            }
        }
        let failed = answers.into_iter().find_map(|answer| answer.result.err());
        failed.map_or(Ok(()), |error| Err(not_durable(error)))
    }

    /// Ends the segments of the log. Errors: a device fails.
    fn close(&mut self, cache: &[FileId]) -> Result<(), LiveError> {
        self.blocks.close(&mut self.io);
        self.blocks.advance(&mut self.io);
        while self.blocks.is_closing() {
            self.wait();
            self.blocks.advance(&mut self.io);
        }
        let syncs = cache.iter().map(|file| IoOp::Sync { file: *file }).collect();
        let synced = batch::run(&mut self.io, syncs).into_iter().find_map(Result::err);
        synced.map_or(Ok(()), |error| Err(not_durable(error)))
    }

    fn wait(&mut self) {
        let mut done: Vec<Done> = Vec::new();
        self.io.wait(&mut done);
        for done in done {
            if self.blocks.owns(done.token) {
                self.blocks.on_done(&mut self.io, done);
            }
        }
    }
}

fn not_durable(error: IoError) -> LiveError {
    LiveError::Failed(format!("stopped, and not all that was written is durable: {error}"))
}

fn listener(address: &ListenAddress) -> Result<Listener, LiveError> {
    Ok(match address {
        ListenAddress::Unix(path) => unix_listener(path)?,
        ListenAddress::Tcp(text) => tcp_listener(text)?,
    })
}

/// The server of blocks, with what recovery found.
fn opened(
    plan: &LivePlan,
    io: &mut SystemIo,
    (set, volumes): (&OpenSet, Vec<ServedVolume>),
    found: cachewright_live::log::Recovered,
) -> Result<(BlockServer, Restored), LiveError> {
    let LogSettings { group_blocks, spare_segments, .. } = log_settings(&set.set);
    let parts = Parts {
        cache: plan.cache(),
        set: set.set.clone(),
        group_blocks,
        spare_segments,
        volumes,
        namespaces: [NAMESPACES[0], NAMESPACES[1]],
    };
    BlockServer::open(io, parts, found).map_err(|error| LiveError::Failed(error.to_string()))
}

/// A volume as clients find it.
fn export((planned, served): (&PlannedVolume, &ServedVolume)) -> ServedExport {
    let (name, clients) = (planned.export.clone(), planned.clients.clone());
    ServedExport { name, bytes: served.bytes, clients }
}

/// A line for each export.
fn described(plan: &LivePlan, served: &[ServedVolume], addresses: &[&str]) -> Vec<String> {
    let line = |(planned, served): (&PlannedVolume, &ServedVolume)| {
        let (bytes, backing) = (Bytes(served.bytes), planned.backing.display());
        format!("export `{}`: {bytes} of {backing}, at {}", planned.export, addresses.join(", "))
    };
    plan.volumes.iter().zip(served).map(line).collect()
}

fn summary(plan: &LivePlan, io: &SystemIo, restored: &Restored) -> String {
    let block = plan.block_bytes();
    let [clean, dirty] = [restored.clean, restored.dirty].map(|blocks| Bytes(blocks * block));
    let capacity = Bytes(plan.capacity_bytes());
    let devices = match plan.serve.devices.len() {
        1 => "1 device".to_owned(),
        many => format!("{many} devices"),
    };
    let damaged = match restored.damaged {
        0 => String::new(),
        blocks => format!(
            ", and {} dirty that are damaged: reads of them fail, see `cachewright live check`",
            Bytes(blocks * block)
        ),
    };
    format!(
        "cache: {capacity} ({}) on {devices} by {}; found {clean} clean, {dirty} dirty{damaged}",
        plan.schemes(),
        io.name()
    )
}
