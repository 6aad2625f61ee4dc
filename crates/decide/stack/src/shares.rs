//! What two cases of one file can share.
//!
//! For: one comparison of cases by their declared keys. Must never know: how recordings, passes and
//! replays alone are made. A key is compared unless its declaration names what cases that differ in
//! it can share, so that a new key is compared.

use crate::kinds::Warmup;
use crate::stack::Stack;
use crate::tables::{CacheTable, FlashTable, TenantTable};
use cachewright_types::declare::Declared;
use std::path::Path;

/// What two cases can share, as declarations name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// The block accesses of all tenants.
    Recording,
    /// A pass over a recording, with the signals of its intervals; these share the recording, too.
    Pass,
    /// The replays of each tenant alone with the whole cache.
    Alone,
    /// The replays alone at every size and interval, which partitioners that know the future read.
    Outlook,
}

impl Shared {
    /// The words of declarations that permit a difference.
    fn words(self) -> &'static [&'static str] {
        match self {
            Shared::Recording => &["recording", "pass"],
            Shared::Pass => &["pass"],
            Shared::Alone => &["alone"],
            Shared::Outlook => &["alone", "outlook"],
        }
    }

    fn permits<T: Declared>(self, a: &T, b: &T) -> bool {
        let known = |word: &str| self.words().contains(&word);
        a.differences(b).iter().all(|shares| shares.split(", ").any(known))
    }
}

impl<M: PartialEq> Stack<M> {
    /// The histories that are replayed before the traces, by tenant; empty where none are.
    fn replayed_first(&self) -> Vec<Option<&Path>> {
        let is_warmup = self.replay.warmup == Warmup::History;
        self.tenants.iter().filter(|_| is_warmup).map(|tenant| tenant.history.as_deref()).collect()
    }

    /// Whether no key in which two stacks differ keeps them from sharing this. Devices matter to
    /// replays alone only.
    pub fn can_share(&self, other: &Stack<M>, shared: Shared) -> bool {
        let flash = |stack: &Stack<M>| stack.flash.as_deref().cloned().unwrap_or_default();
        let on_devices = matches!(shared, Shared::Alone | Shared::Outlook);
        let mut tenants = self.tenants.iter().zip(&other.tenants);
        self.replayed_first() == other.replayed_first()
            && shared.permits(&self.top(), &other.top())
            && shared.permits::<CacheTable>(&self.cache, &other.cache)
            && shared.permits(&self.replay, &other.replay)
            && shared.permits::<FlashTable>(&flash(self), &flash(other))
            && self.tenants.len() == other.tenants.len()
            && tenants.all(|(a, b)| shared.permits::<TenantTable>(a, b))
            && (!on_devices || self.stack == other.stack)
    }
}
