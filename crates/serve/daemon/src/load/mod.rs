//! The traces of a stack's tenants, sent to a server of the same stack.
//!
//! For: trying a server under a recorded load. Must never know: what serves. Units: bytes,
//! nanoseconds, requests. Each tenant has a thread and a connection of its own. What is written
//! has no meaning: exports that hold something are not to be loaded.

mod connection;

use crate::error::LiveError;
use crate::honoured::LiveStack;
use cachewright_live::exports::{ExportMeter, RequestKind};
use cachewright_nbd::{NbdCommand, Range};
use cachewright_result::load::{LoadAnswer, LoadedRequests, LoadedTenant};
use cachewright_result::written::Written;
use cachewright_stack::{ListenAddress, TenantSpec, without_trace};
use cachewright_trace::{MergedRequests, WorkloadBatch};
use cachewright_types::Op;
use connection::LoadConnection;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Requests read from a trace at a time.
const BATCH: usize = 4096;
/// Longer requests are sent in pieces.
const PIECE: u64 = 4 << 20;
const NS_PER_US: f64 = 1e3;

/// How a load is sent.
#[derive(Clone, Copy, Debug)]
pub struct LoadSettings {
    /// Requests of a tenant that are under way at most.
    pub depth: usize,
    /// Requests of a tenant, from the first of its trace.
    pub max_requests: u64,
    /// How much faster than recorded; `None`: as fast as answers come.
    pub speed: Option<f64>,
}

/// Sends the load and waits for all answers. Errors: the stack, a trace, an export, a connection.
pub fn load(
    (text, origin, overrides): (&str, &Path, &[(String, String)]),
    settings: LoadSettings,
) -> Result<LoadAnswer, LiveError> {
    let refuse = |message: String| LiveError::stack(origin, message);
    let stack = LiveStack::parse(text, origin, overrides).map_err(refuse)?;
    let addresses = stack.serve.iter().flat_map(|serve| &serve.listen);
    let mut addresses = addresses.filter(|address| **address != ListenAddress::Passed);
    let expected = "expected an address such as `unix:live.sock`";
    let address =
        addresses.next().ok_or_else(|| refuse(format!("found no `serve.listen`, {expected}")))?;
    for (index, tenant) in stack.tenants.iter().enumerate() {
        if tenant.trace.is_empty() {
            return Err(refuse(without_trace(index)));
        }
    }
    let sent = |tenant| {
        thread::spawn({
            let (address, tenant): (ListenAddress, TenantSpec) = (address.clone(), tenant);
            move || Sender::send(&address, &tenant, settings)
        })
    };
    let threads: Vec<_> = stack.tenants.iter().cloned().map(sent).collect();
    let mut tenants = Vec::new();
    for thread in threads {
        let defect = |_| LiveError::Failed("a defect ended a client; please report it".to_owned());
        tenants.push(thread.join().map_err(defect)??);
    }
    Ok(LoadAnswer { written: Written::here(), tenants })
}

/// A tenant's client.
struct Sender<'a> {
    tenant: &'a TenantSpec,
    connection: LoadConnection,
    settings: LoadSettings,
    started: Instant,
    meter: ExportMeter,
    sent: u64,
    skipped: u64,
}

impl Sender<'_> {
    fn send(
        address: &ListenAddress,
        tenant: &TenantSpec,
        settings: LoadSettings,
    ) -> Result<LoadedTenant, LiveError> {
        let failed = |error| LiveError::Failed(format!("export `{}`: {error}", tenant.export));
        let connection = LoadConnection::open(address, &tenant.export).map_err(failed)?;
        let (started, meter) = (Instant::now(), ExportMeter::default());
        let mut sender =
            Sender { tenant, connection, settings, started, meter, sent: 0, skipped: 0 };
        sender.all().map_err(failed)?;
        sender.finish().map_err(failed)
    }

    /// Sends the whole trace.
    fn all(&mut self) -> Result<(), String> {
        let words = |error: cachewright_trace::TraceError| error.to_string();
        let mut workload =
            MergedRequests::open(vec![self.tenant.input(&self.tenant.path)]).map_err(words)?;
        let mut batch = WorkloadBatch::default();
        while self.sent < self.settings.max_requests {
            batch.clear();
            if workload.read(&mut batch, BATCH).map_err(words)? == 0 {
                break;
            }
            for index in 0..batch.len() {
                if self.sent == self.settings.max_requests {
                    break;
                }
                self.wait_for(batch.time_ns[index])?;
                let range = (batch.offset_bytes[index], batch.length_bytes[index]);
                self.request(batch.op[index], range)?;
                self.sent += 1;
            }
        }
        Ok(())
    }

    /// Sends a request of the trace, in pieces if it is long. What lies beyond the export is left
    /// out and counted.
    fn request(&mut self, op: Op, (offset, length): (u64, u64)) -> Result<(), String> {
        if op == Op::Flush {
            return self.piece(NbdCommand::Flush, 0);
        }
        let end = offset.saturating_add(length);
        if length == 0 || end > self.connection.size() {
            self.skipped += 1;
            return Ok(());
        }
        let mut begin = offset;
        while begin < end {
            let range = Range { offset: begin, length: PIECE.min(end - begin) };
            let command = match op {
                Op::Read => NbdCommand::Read { range, whole: false },
                Op::Write => NbdCommand::Write(range),
                Op::Trim => NbdCommand::Trim(range),
                Op::Flush => NbdCommand::Flush,
            };
            self.piece(command, begin)?;
            begin += range.length;
        }
        Ok(())
    }

    fn piece(&mut self, command: NbdCommand, offset: u64) -> Result<(), String> {
        while self.connection.under_way() >= self.settings.depth {
            self.connection.take(None, &mut self.meter)?;
        }
        self.connection.send(command, offset)
    }

    /// Takes answers until it is time for a request of the trace.
    fn wait_for(&mut self, time_ns: u64) -> Result<(), String> {
        let Some(speed) = self.settings.speed else { return Ok(()) };
        let due = Duration::from_nanos((time_ns as f64 / speed) as u64);
        loop {
            let left = due.saturating_sub(self.started.elapsed());
            match (left.is_zero(), self.connection.under_way()) {
                (true, _) => return Ok(()),
                (false, 0) => thread::sleep(left),
                (false, _) => self.connection.take(Some(left), &mut self.meter)?,
            }
        }
    }

    fn finish(mut self) -> Result<LoadedTenant, String> {
        while self.connection.under_way() > 0 {
            self.connection.take(None, &mut self.meter)?;
        }
        let seconds = self.started.elapsed().as_secs_f64();
        self.connection.leave();
        let requests = RequestKind::ALL.into_iter().filter_map(|kind| {
            let meter = self.meter.kind(kind);
            let found = &meter.latencies;
            let us = |share: f64| found.quantile_ns(share) as f64 / NS_PER_US;
            (found.count() > 0).then(|| LoadedRequests {
                kind: kind.word().to_owned(),
                count: found.count(),
                bytes: meter.bytes,
                errors: meter.errors,
                mean_us: found.mean_ns() / NS_PER_US,
                p50_us: us(0.5),
                p99_us: us(0.99),
                p999_us: us(0.999),
            })
        });
        Ok(LoadedTenant {
            name: self.tenant.name.clone(),
            export: self.tenant.export.clone(),
            seconds,
            sent: self.sent,
            skipped: self.skipped,
            requests: requests.collect(),
        })
    }
}
