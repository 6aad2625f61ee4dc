//! The exports of the NBD front end, and which client sees which.
//!
//! An export with a list of clients is there only for a client whose certificate has one of those
//! names. For others it does not exist.

use super::listeners::ConnectionSlots;
use super::nbd::CONTEXTS;
use crate::front::ServedExport;
use cachewright_nbd::{BlockSizes, Export, Exports};
use cachewright_types::TenantId;

/// The exports, in the order of tenants.
#[derive(Debug)]
pub(super) struct ExportList {
    exports: Vec<(Export, Vec<String>)>,
    /// Those that are there no more.
    hidden: Vec<bool>,
    places: ConnectionSlots,
    blocks: BlockSizes,
}

/// An export with these block sizes.
fn export(volume: ServedExport, blocks: BlockSizes) -> (Export, Vec<String>) {
    let export = Export {
        name: volume.name,
        description: String::new(),
        size: volume.bytes,
        blocks,
        read_only: volume.read_only,
        multi_conn: true,
        fast_zero: volume.fast_zero,
        contexts: CONTEXTS.map(str::to_owned).to_vec(),
    };
    (export, volume.clients)
}

impl ExportList {
    /// These volumes, all with the same block sizes, and at most so many connections to all of them
    /// together.
    pub(super) fn new(
        volumes: Vec<ServedExport>,
        blocks: BlockSizes,
        max_connections: usize,
    ) -> ExportList {
        let places = ConnectionSlots::new(max_connections);
        let mut list = ExportList { exports: Vec::new(), hidden: Vec::new(), places, blocks };
        volumes.into_iter().for_each(|volume| list.add(volume));
        list
    }

    /// One more volume.
    pub(super) fn add(&mut self, volume: ServedExport) {
        let tenant = TenantId(self.exports.len() as u16);
        self.places.add();
        self.places.set_limit(tenant, volume.max_connections);
        self.exports.push(export(volume, self.blocks));
        self.hidden.push(false);
    }

    /// A volume is found as this says.
    pub(super) fn change(&mut self, tenant: TenantId, volume: ServedExport) {
        self.places.set_limit(tenant, volume.max_connections);
        self.exports[tenant.index()] = export(volume, self.blocks);
    }

    /// A volume is found no more.
    pub(super) fn hide(&mut self, tenant: TenantId) {
        self.places.close(tenant);
        self.hidden[tenant.index()] = true;
    }

    /// The connections that exports have.
    pub(super) fn places(&mut self) -> &mut ConnectionSlots {
        &mut self.places
    }

    /// Whether a client whose certificate has these names may see a tenant's volume.
    pub(super) fn is_seen(&self, tenant: TenantId, names: &[String]) -> bool {
        is_allowed(&self.exports[tenant.index()].1, names)
    }

    /// Whether zeroes of a tenant's volume are faster than writes.
    pub(super) fn zeroes_fast(&self, tenant: TenantId) -> bool {
        self.exports[tenant.index()].0.fast_zero
    }

    /// The tenant whose volume has this name.
    pub(super) fn tenant(&self, name: &str) -> Option<TenantId> {
        let mut places = 0..self.exports.len();
        let place =
            places.find(|place| !self.hidden[*place] && self.exports[*place].0.name == name);
        place.map(|place| TenantId(place as u16))
    }

    /// What a client sees whose certificate has these names.
    pub(super) fn seen_by<'a>(&'a self, names: &'a [String]) -> VisibleExports<'a> {
        VisibleExports { list: self, names }
    }
}

/// Whether a client whose certificate has these names is one of `clients`, who are all if none is
/// named.
fn is_allowed(clients: &[String], names: &[String]) -> bool {
    clients.is_empty() || clients.iter().any(|name| names.contains(name))
}

/// The exports that one client sees.
pub(super) struct VisibleExports<'a> {
    list: &'a ExportList,
    names: &'a [String],
}

impl VisibleExports<'_> {
    fn exports(&self) -> impl Iterator<Item = &Export> {
        let exports = self.list.exports.iter().zip(&self.list.hidden);
        let visible = exports.filter(|(_, hidden)| !**hidden).map(|(found, _)| found);
        visible.filter(|(_, clients)| is_allowed(clients, self.names)).map(|(export, _)| export)
    }
}

impl Exports for VisibleExports<'_> {
    fn each(&self, _secure: bool, visit: &mut dyn FnMut(&Export)) {
        self.exports().for_each(visit);
    }

    fn find(&self, name: &str, _secure: bool) -> Option<&Export> {
        let default = || if name.is_empty() { self.exports().next() } else { None };
        self.exports().find(|export| export.name == name).or_else(default)
    }

    fn has_place(&self, export: &Export) -> bool {
        self.list.tenant(&export.name).is_some_and(|tenant| self.list.places.has_place(tenant))
    }
}
