//! The requests of clients that are under way, and what is kept of clients by tenant: the counts
//! and times of what was answered, what they may still do, and the losses that some were told of.

use super::losses::LossNews;
use super::meters::{Allowance, Caps, ExportMeter, RequestKind};
use crate::blocks::BlockOp;
use crate::io::token::Submitter;
use cachewright_types::TenantId;
use slab::Slab;

/// A request that the server of blocks works on.
#[derive(Clone, Copy, Debug)]
pub struct ClientRequest {
    /// The front end that asked.
    pub front: Submitter,
    /// The front end's number for it.
    pub number: usize,
    /// Whose volume it is for.
    pub tenant: TenantId,
    /// What is done.
    pub op: BlockOp,
    /// As what it is counted.
    pub kind: RequestKind,
    /// Bytes that it asks for.
    pub bytes: u64,
    /// Its effect is durable before it is answered.
    pub durable: bool,
    /// When it arrived, in nanoseconds.
    pub arrived_ns: u64,
}

impl ClientRequest {
    /// Whether its answer says that answered writes were lost, if they were.
    pub fn reports_losses(&self, has_succeeded: bool) -> bool {
        match self.op {
            BlockOp::Read => false,
            BlockOp::Flush => true,
            BlockOp::Write | BlockOp::Trim | BlockOp::Zero | BlockOp::Provision => {
                self.durable && has_succeeded
            }
        }
    }
}

/// What is kept of clients; see the top of the file.
pub struct Clients {
    /// By tag.
    under_way: Slab<ClientRequest>,
    meters: Vec<ExportMeter>,
    allowances: Vec<Allowance>,
    /// Losses of answered writes that clients were told of.
    pub losses: LossNews,
}

impl Clients {
    /// Of so many tenants, without caps.
    pub fn new(tenants: usize) -> Clients {
        Clients {
            under_way: Slab::default(),
            meters: vec![ExportMeter::default(); tenants],
            allowances: vec![Allowance::default(); tenants],
            losses: LossNews::default(),
        }
    }

    /// One more tenant.
    pub fn add_tenant(&mut self) {
        self.meters.push(ExportMeter::default());
        self.allowances.push(Allowance::default());
    }

    /// A request begins, and counts beside the caps of its volume; returns its tag.
    pub(super) fn begin(&mut self, request: ClientRequest) -> u64 {
        let bytes = if request.kind.moves_data() { request.bytes } else { 0 };
        self.allowances[request.tenant.index()].charge(bytes, request.arrived_ns);
        self.under_way.insert(request) as u64
    }

    /// A request is answered or dropped; returns it, if it was under way.
    pub(super) fn end(&mut self, tag: u64) -> Option<ClientRequest> {
        self.under_way.try_remove(tag as usize)
    }

    /// Counts a request that was answered.
    pub(super) fn note(&mut self, request: &ClientRequest, waited_ns: u64, has_failed: bool) {
        let meter = &mut self.meters[request.tenant.index()];
        meter.note(request.kind, request.bytes, waited_ns, has_failed);
    }

    /// What was answered to clients of a tenant's volume.
    pub fn meter(&self, tenant: TenantId) -> &ExportMeter {
        &self.meters[tenant.index()]
    }

    /// Reads and writes of a tenant's clients are to keep this time from now on, or none: its meter
    /// counts those that do not.
    pub fn set_limit(&mut self, tenant: TenantId, limit_ns: Option<u64>) {
        self.meters[tenant.index()].set_limit(limit_ns);
    }

    /// Bounds what clients of a tenant's volume may do, from now on.
    pub fn cap(&mut self, tenant: TenantId, caps: Caps) {
        self.allowances[tenant.index()].set(caps);
    }

    /// How often clients of a tenant's volume had done all that its caps allow.
    pub fn caps_exhausted(&self, tenant: TenantId) -> u64 {
        self.allowances[tenant.index()].exhausted()
    }

    /// What clients may still do, by tenant.
    pub fn allowances(&self) -> &[Allowance] {
        &self.allowances
    }
}
