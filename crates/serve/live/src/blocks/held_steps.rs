//! Steps that change a backing device and are held, and the group of the log that they need.
//!
//! For: steps that begin when the log has what they need. Must never know: what a step needs, how
//! it is carried out. Units: numbers of groups.

use super::carry::ReadyStep;
use super::under_way::OpenId;
use cachewright_types::TenantId;

/// A step that changes a backing device and must wait.
#[derive(Clone, Copy, Debug)]
pub struct HeldStep {
    /// The step.
    pub ready: ReadyStep,
    /// The request that it belongs to, if it does.
    pub open: Option<OpenId>,
    /// The group that must be durable, once it is known.
    pub group: Option<u64>,
}

/// All held steps.
#[derive(Debug, Default)]
pub struct HeldSteps {
    steps: Vec<HeldStep>,
    /// Held steps of no request.
    alone: usize,
    /// The newest group that a held step has needed.
    wanted: u64,
    /// The group for which a sync of the log was begun.
    begun: u64,
}

impl HeldSteps {
    /// A step is held, or held again.
    pub fn hold(&mut self, held: HeldStep) {
        self.alone += usize::from(held.open.is_none());
        self.steps.push(held);
    }

    /// All held steps, in the order in which they came; none is held any more.
    pub fn take(&mut self) -> Vec<HeldStep> {
        self.alone = 0;
        std::mem::take(&mut self.steps)
    }

    /// Whether a step of a tenant is held.
    pub fn holds(&self, tenant: TenantId) -> bool {
        self.steps.iter().any(|held| held.ready.tenant == tenant)
    }

    /// Held steps of no request.
    pub fn without_request(&self) -> usize {
        self.alone
    }

    /// A held step needs a group to be durable.
    pub fn want(&mut self, group: u64) {
        self.wanted = self.wanted.max(group);
    }

    /// Whether a held step needs a group for which no sync was begun.
    pub fn wants_sync(&self) -> bool {
        self.wanted > self.begun
    }

    /// The group for which a sync of the log was begun last.
    pub fn sync_begun(&self) -> u64 {
        self.begun
    }

    /// A sync of the log begins, of all groups up to this one.
    pub fn begin_sync(&mut self, group: u64) {
        self.begun = group;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sync_serves_all_steps_that_need_its_groups() {
        let mut held = HeldSteps::default();
        assert!(!held.wants_sync());
        held.want(5);
        held.want(3);
        assert!(held.wants_sync());
        held.begin_sync(5);
        held.want(4);
        assert!(!held.wants_sync());
        held.want(6);
        assert!(held.wants_sync());
        assert_eq!((held.sync_begun(), held.without_request(), held.take().len()), (5, 0, 0));
    }
}
