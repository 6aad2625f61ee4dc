//! The check of every invariant of a store between calls.
//!
//! For: tests and simulation in debug builds. Must never know: anything the parts do not. Slow: it
//! looks at every page.

use super::lives::ComingPages;
use super::log_store::LogStore;
use super::under_way::{OpenPageWrite, PageOwner};
use std::collections::BTreeMap;

impl LogStore {
    /// Checks every invariant. Errors: the first one broken, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        self.translation.audit()?;
        self.stored.audit()?;
        self.beneath.audit()?;
        self.lives.audit()?;
        self.writes.audit()?;
        if self.due_ns() < self.now_ns {
            return Err(format!("an event at {} is in the past", self.due_ns()));
        }
        self.check_pages()?;
        if self.requests.all_done() && self.due_ns() == u64::MAX {
            self.check_rest()
        } else {
            Ok(())
        }
    }

    /// Pages on their way are those that lives expect.
    fn check_pages(&self) -> Result<(), String> {
        let mut counted: BTreeMap<u32, ComingPages> = BTreeMap::new();
        for OpenPageWrite { life, owner, .. } in self.writes.iter() {
            let comes = counted.entry(*life).or_default();
            comes.pending += 1;
            comes.host_pending += u32::from(owner.is_request());
            if let PageOwner::Move(victim) = owner {
                counted.entry(*victim).or_default().leaving += 1;
            }
        }
        for (number, known) in self.lives.coming() {
            let counted = counted.remove(&number).unwrap_or_default();
            if counted != known {
                return Err(format!("life {number}: {counted:?}, known are {known:?}"));
            }
        }
        match counted.keys().next() {
            Some(life) => Err(format!("pages come to life {life}, which has ended")),
            None => Ok(()),
        }
    }

    /// What must hold when nothing is under way.
    fn check_rest(&self) -> Result<(), String> {
        let left = self.writes.len() + self.moves.waiting() + self.beneath.open();
        let moving = self.moves.under_way();
        if left > 0 || moving > 0 || self.lives.next_ready(0).is_some() {
            return Err(format!("{left} things are left and {moving} move"));
        }
        let (resets, collections) = (self.stats.resets, self.translation.counts().collections);
        if resets != collections {
            return Err(format!("{resets} segments were reset of {collections} cleaned"));
        }
        for page in 0..self.sizes.logical_pages() {
            let Some(address) = self.translation.locate(page) else { continue };
            if !self.stored.holds(self.sizes.cell(address.block, address.offset), page) {
                return Err(format!("page {page} is not where it should be"));
            }
        }
        Ok(())
    }
}
