//! The check of every invariant of a store between calls.
//!
//! For: tests and simulation in debug builds. Must never know: anything the parts do not. Slow: it
//! looks at every page.

use super::log_store::LogStore;
use super::under_way::{PageOwner, PageWrite};
use std::collections::BTreeMap;

impl LogStore {
    /// Checks every invariant. Errors: the first one broken, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        self.layer.audit()?;
        self.inner.audit().map_err(|error| format!("beneath: {error}"))?;
        self.lives.audit()?;
        if let Some(fault) = &self.fault {
            return Err(format!("a write was refused: {fault}"));
        }
        if self.lost > 0 {
            return Err(format!("{} pages were read where they were not", self.lost));
        }
        if self.inner.outstanding() != self.sub_commands.len() {
            let (inner, known) = (self.inner.outstanding(), self.sub_commands.len());
            return Err(format!("{inner} commands are beneath, {known} are known"));
        }
        if self.due_ns() < self.now_ns {
            return Err(format!("an event at {} is in the past", self.due_ns()));
        }
        self.check_pages()?;
        if self.commands.is_empty() && self.due_ns() == u64::MAX {
            self.check_rest()
        } else {
            Ok(())
        }
    }

    fn check_pages(&self) -> Result<(), String> {
        if self.writes.len() != self.writing.len() {
            let (pages, places) = (self.writes.len(), self.writing.len());
            return Err(format!("{pages} pages are on their way to {places} places"));
        }
        // Pages that come to each life, those of requests among them, and pages that leave it.
        let mut counted: BTreeMap<u32, [u32; 3]> = BTreeMap::new();
        for (_, PageWrite { life, owner, .. }) in self.writes.iter() {
            let comes = counted.entry(*life).or_default();
            comes[0] += 1;
            match owner {
                PageOwner::Request(_) => comes[1] += 1,
                PageOwner::Move(victim) => counted.entry(*victim).or_default()[2] += 1,
                PageOwner::Meta => {}
            }
        }
        let mut blocked = 0;
        for (number, life) in self.lives.iter() {
            let counted = counted.remove(&number).unwrap_or_default();
            let known = [life.pending, life.host_pending, life.moves_left];
            if counted != known {
                return Err(format!("life {number}: {counted:?} pages, known are {known:?}"));
            }
            blocked += if life.is_open() { 0 } else { life.host_pending };
        }
        if let Some(life) = counted.keys().next() {
            return Err(format!("pages come to life {life}, which has ended"));
        }
        if blocked == self.blocked {
            Ok(())
        } else {
            Err(format!("{blocked} pages wait for a segment, {} are counted", self.blocked))
        }
    }

    /// What must hold when nothing is under way.
    fn check_rest(&self) -> Result<(), String> {
        let left = self.writes.len() + self.gathering.len() + self.sub_commands.len();
        if left > 0 || self.moving > 0 || !self.active.is_empty() {
            return Err(format!("{left} things are left and {} move", self.moving));
        }
        let resets = self.stats.resets;
        let collections = (self.layer.counts() - self.before).collections;
        if resets != collections {
            return Err(format!("{resets} segments were reset of {collections} cleaned"));
        }
        let Some(stored) = &self.stored else { return Ok(()) };
        for page in 0..self.logical_pages {
            let Some(address) = self.layer.locate(page) else { continue };
            if stored[self.cell(self.lives.life_of(address.block), address.offset)] != page {
                return Err(format!("page {page} is not where it should be"));
            }
        }
        Ok(())
    }
}
