//! The exports of a node, and which client sees which.
//!
//! For: negotiations. Must never know: connections, how certificates are checked. Units: bytes. An
//! export with a list of clients is there only for a client whose certificate has one of those
//! names. For others it does not exist.

use super::status::CONTEXTS;
use cachewright_nbd::{BlockSizes, Export, Exports};
use cachewright_types::TenantId;

/// A volume as clients find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedExport {
    /// Its name; each export has its own.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Whether writes, trims and zeroes are refused.
    pub read_only: bool,
    /// Names of certificates that may see it; empty: every client may.
    pub clients: Vec<String>,
}

/// The exports of a node, in the order of tenants.
#[derive(Debug)]
pub(super) struct ExportList {
    exports: Vec<(Export, Vec<String>)>,
    /// Those that are there no more.
    hidden: Vec<bool>,
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
        contexts: CONTEXTS.map(str::to_owned).to_vec(),
    };
    (export, volume.clients)
}

impl ExportList {
    /// These volumes, all with the same block sizes.
    pub(super) fn new(volumes: Vec<ServedExport>, blocks: BlockSizes) -> ExportList {
        let hidden = vec![false; volumes.len()];
        let exports = volumes.into_iter().map(|volume| export(volume, blocks)).collect();
        ExportList { exports, hidden, blocks }
    }

    /// One more volume.
    pub(super) fn add(&mut self, volume: ServedExport) {
        self.exports.push(export(volume, self.blocks));
        self.hidden.push(false);
    }

    /// A volume is found as this says.
    pub(super) fn change(&mut self, tenant: TenantId, volume: ServedExport) {
        self.exports[tenant.index()] = export(volume, self.blocks);
    }

    /// A volume is found no more.
    pub(super) fn hide(&mut self, tenant: TenantId) {
        self.hidden[tenant.index()] = true;
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

/// The exports that one client sees.
pub(super) struct VisibleExports<'a> {
    list: &'a ExportList,
    names: &'a [String],
}

impl VisibleExports<'_> {
    fn exports(&self) -> impl Iterator<Item = &Export> {
        let is_allowed =
            |clients: &[String]| clients.is_empty() || clients.iter().any(|name| self.has(name));
        let exports = self.list.exports.iter().zip(&self.list.hidden);
        let visible = exports.filter(|(_, hidden)| !**hidden).map(|(found, _)| found);
        visible.filter(move |(_, clients)| is_allowed(clients)).map(|(export, _)| export)
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
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
}
