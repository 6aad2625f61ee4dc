//! Which clients were told of lost writes.
//!
//! A connection that was open at a loss is told by its next flush, or its next request with forced
//! unit access, once. One that opens the volume later may be a client that has come back: it is
//! told, too, while content that was lost has not been overwritten, or if no other was told. Source
//! of the first rule: how the kernel tells errors of writing back (`errseq_t`).

use crate::blocks::KnownLosses;
use cachewright_types::TenantId;

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
