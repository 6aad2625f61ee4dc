//! Exports that come, change and go, and caps on their clients.
//!
//! For: changes of a node that runs. Must never know: why. Units: bytes, nanoseconds.

use super::{Ending, Node};
use crate::blocks::BlockServer;
use crate::exports::caps::Caps;
use crate::exports::connection::Connection;
use crate::exports::list::ServedExport;
use crate::exports::tokens::NodePurpose;
use crate::io::{Io, IoOp};
use cachewright_types::TenantId;

impl Node {
    /// One more export, of the next tenant of the server of blocks.
    pub fn add_export(&mut self, export: ServedExport) {
        self.exports.add(export);
        self.requests.add_tenant();
    }

    /// Clients that open an export from now on find it as this says. Connections of clients that
    /// may not see it any more end at once: requests under way are carried out, and get no answer.
    /// Returns how many these are.
    pub fn change_export(&mut self, tenant: TenantId, export: ServedExport) -> usize {
        self.exports.change(tenant, export);
        let exports = &self.exports;
        let is_barred = |connection: &Connection| {
            connection.tenant() == Some(tenant)
                && connection.is_served()
                && !exports.is_seen(tenant, connection.client_names())
        };
        let barred = self.connections.iter().filter(|(_, connection)| is_barred(connection));
        let barred: Vec<usize> = barred.map(|(index, _)| index).collect();
        barred.iter().for_each(|index| self.end(*index, Ending::Closing));
        barred.len()
    }

    /// An export is there no more: its clients get the answers to what they have sent, and their
    /// connections end.
    pub fn close_export(&mut self, tenant: TenantId) {
        self.exports.hide(tenant);
        for index in 0..self.connections.capacity() {
            let connection = self.connections.get_mut(index);
            if connection.and_then(|found| found.tenant()) == Some(tenant) {
                self.end(index, Ending::Draining);
            }
        }
    }

    /// Connections to a tenant's export.
    pub fn connections_to(&self, tenant: TenantId) -> usize {
        let own = |found: &Connection| found.tenant() == Some(tenant);
        self.connections.iter().filter(|(_, connection)| own(connection)).count()
    }

    /// The server of blocks, to be changed.
    pub fn blocks_mut(&mut self) -> &mut BlockServer {
        &mut self.blocks
    }

    /// Bounds what clients of a tenant's export may do, from now on.
    pub fn cap(&mut self, tenant: TenantId, caps: Caps) {
        self.capped.set(tenant, caps);
    }

    /// Reads and writes of a tenant's clients are to keep this time from now on, or none: its meter
    /// counts those that do not.
    pub fn set_limit(&mut self, tenant: TenantId, limit_ns: Option<u64>) {
        self.requests.set_limit(tenant, limit_ns);
    }

    /// How often clients of a tenant's export had done all that its caps allow.
    pub fn caps_exhausted(&self, tenant: TenantId) -> u64 {
        self.capped.exhausted(tenant)
    }

    /// Connections of exports with caps take their turns; true if one sent something whole.
    pub(super) fn serve_capped(&mut self, io: &mut impl Io) -> bool {
        let mut begun = false;
        while let Some(due_ns) = self.capped.next_due_ns() {
            let now_ns = io.now_ns();
            let Some(index) = self.capped.next_turn(now_ns) else {
                if self.capped.begin_timer(due_ns) {
                    io.submit(self.token(NodePurpose::Turn, 0), IoOp::Timer { at_ns: due_ns });
                }
                break;
            };
            if self.take_request(io, index).is_some() {
                begun = true;
                let tenant = self.connections.get_mut(index).and_then(|found| found.tenant());
                tenant.map(|tenant| self.capped.waits(tenant, index));
            }
            self.go_on(io, index);
        }
        begun
    }
}
