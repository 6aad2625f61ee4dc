//! The exports of a node, which client sees which, and which clients were told of lost writes.
//!
//! An export with a list of clients is there only for a client whose certificate has one of those
//! names. For others it does not exist.
//!
//! A connection that was open at a loss is told by its next flush, or its next request with forced
//! unit access, once. One that opens the export later may be a client that has come back: it is
//! told, too, while content that was lost has not been overwritten, or if no other was told. Source
//! of the first rule: how the kernel tells errors of writing back (`errseq_t`).

use super::listeners::ConnectionSlots;
use super::node::CONTEXTS;
use crate::blocks::KnownLosses;
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
    /// Connections that it may have at one time; nothing: as many as leave others theirs.
    pub max_connections: Option<usize>,
    /// Whether zeroes are faster than writes.
    pub fast_zero: bool,
}

/// The exports of a node, in the order of tenants.
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

/// What one connection was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotifiedLosses {
    /// Losses that it need not be told of any more.
    count: u64,
    /// It came behind a loss: it is told while content is lost still.
    is_late: bool,
}

impl NotifiedLosses {
    /// Whether a flush that succeeds now is to be answered with an error instead: the client is
    /// told of all losses so far then.
    pub fn notify(&mut self, known: KnownLosses) -> bool {
        let notifies = self.count < known.count || (self.is_late && known.is_open);
        *self = NotifiedLosses { count: known.count, is_late: false };
        notifies
    }
}

/// The losses that some client was told of, by tenant.
#[derive(Clone, Debug, Default)]
pub struct LossNews {
    notified: Vec<u64>,
}

impl LossNews {
    /// What a connection that opens a tenant's export now need not be told.
    pub fn at_opening(&self, tenant: TenantId, known: KnownLosses) -> NotifiedLosses {
        let notified = self.notified.get(tenant.index()).copied().unwrap_or_default();
        NotifiedLosses { count: notified.min(known.count), is_late: known.is_open }
    }

    /// A client was told of all losses so far.
    pub fn note(&mut self, tenant: TenantId, known: KnownLosses) {
        let tenants = self.notified.len().max(tenant.index() + 1);
        self.notified.resize(tenants, 0);
        self.notified[tenant.index()] = known.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: TenantId = TenantId(1);

    fn known(count: u64, is_open: bool) -> KnownLosses {
        KnownLosses { count, is_open }
    }

    #[test]
    fn each_connection_that_was_open_is_told_once() {
        let news = LossNews::default();
        let [mut one, mut two] = [(); 2].map(|()| news.at_opening(TENANT, known(0, false)));
        assert!(!one.notify(known(0, false)));
        assert!(one.notify(known(3, true)) && !one.notify(known(3, true)));
        assert!(two.notify(known(3, false)), "it was open, whatever has become of the content");
        assert!(!two.notify(known(3, false)) && two.notify(known(4, true)));
    }

    #[test]
    fn one_that_opens_later_is_told_of_what_is_lost_still_or_was_told_to_none() {
        let mut news = LossNews::default();
        let mut first = news.at_opening(TENANT, known(2, false));
        assert!(first.notify(known(2, false)), "no other was told");
        news.note(TENANT, known(2, false));
        assert!(!news.at_opening(TENANT, known(2, false)).notify(known(2, false)));
        let mut late = news.at_opening(TENANT, known(2, true));
        assert!(late.notify(known(2, true)) && !late.notify(known(2, true)));
        let mut restoring = news.at_opening(TENANT, known(2, true));
        assert!(!restoring.notify(known(2, false)), "it has overwritten all that was lost");
    }
}
