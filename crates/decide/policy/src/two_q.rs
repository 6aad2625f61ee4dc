//! 2Q: a block must be asked for again after a probation queue to reach the main list.
//!
//! For: scan resistance with two fixed shares. Source: Johnson and Shasha, VLDB'94, "full version"
//! of 2Q: A1in (FIFO of resident newcomers), A1out (FIFO of the ids that left A1in), Am (LRU of
//! what returned from A1out). A hit in A1in changes nothing. Where the paper leaves the order open:
//! the id leaves A1out before room is made, and A1in gives up a block when it is over its share or
//! when Am is empty. Shares are rounded down. Unit: blocks. Invariants: |A1in| + |Am| <= c, |A1out|
//! <= floor(kout c).

use crate::ghost_lists::GhostLists;
use crate::registry::{Entry, Registered};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::Snapshot;
use cachewright_types::{BlockId, Seed};

cachewright_types::declare! {
    /// The two shares of 2Q; defaults are the paper's advice (section 2.2).
    pub struct TwoQSettings {
        /// share of the cache that newcomers may keep while the main list needs room
        kin: f64 = 0.25, "ratio", 0.0 ..= 1.0;
        /// ids remembered after probation, as a share of the cache
        kout: f64 = 0.5, "ratio", 0.0 ..= 2.0;
    }
}

/// Resident newcomers.
const A1_IN: u8 = 1;
/// Resident blocks that came back.
const AM: u8 = 2;
/// Ghosts of A1in.
const A1_OUT: u8 = 3;

/// Two queues.
#[derive(Clone, Debug, Snapshot)]
pub struct TwoQ {
    lists: GhostLists<4, 2>,
    capacity: u32,
    #[snapshot(settings)]
    settings: TwoQSettings,
    kin_blocks: u32,
    kout_blocks: u32,
}

impl Registered for TwoQ {
    type Settings = TwoQSettings;
    const ENTRY: Entry = Entry {
        name: "2q",
        doc: "new blocks pass a short queue; those requested again later join the main list",
        source: "Johnson and Shasha, VLDB'94, full version",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &TwoQSettings, _: Seed) -> Self {
        let mut policy = TwoQ {
            lists: GhostLists::default(),
            capacity: capacity_blocks,
            settings: settings.clone(),
            kin_blocks: 0,
            kout_blocks: 0,
        };
        policy.on_capacity();
        policy
    }
}

impl PolicyHooks for TwoQ {}

impl StoredPolicy for TwoQ {
    stored_in!(lists: GhostLists<4, 2>);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        let list = match self.lists.list_of(block) {
            AM => {
                self.lists.refresh(AM, block);
                return Verdict::Hit;
            }
            A1_IN => return Verdict::Hit,
            A1_OUT => {
                self.lists.take(A1_OUT, block);
                AM
            }
            _ if self.capacity == 0 => return Verdict::Bypass,
            _ => A1_IN,
        };
        let evicted = if self.lists.resident() == self.capacity { self.evict() } else { None };
        self.lists.push(list, block);
        Verdict::Admit { evicted }
    }

    /// The paper's reclaimfor: a block leaves A1in for A1out, or leaves Am for good.
    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        let from_a1 = self.lists.len(A1_IN) > self.kin_blocks || self.lists.len(AM) == 0;
        if !from_a1 {
            return self.lists.pop(AM);
        }
        let block = self.lists.demote(A1_IN, A1_OUT)?;
        self.lists.trim(A1_OUT, self.kout_blocks);
        Some(block)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.kout_blocks)
    }

    fn on_capacity(&mut self) {
        self.kin_blocks = (self.settings.kin * f64::from(self.capacity)) as u32;
        self.kout_blocks = (self.settings.kout * f64::from(self.capacity)) as u32;
    }

    fn trim_ghosts(&mut self) {
        self.lists.trim(A1_OUT, self.kout_blocks);
    }

    fn audit_limits(&self) -> Result<(), String> {
        if self.lists.len(A1_OUT) > self.kout_blocks {
            return Err(format!("{} ghosts of {}", self.lists.len(A1_OUT), self.kout_blocks));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn lists(policy: &TwoQ) -> [Vec<u32>; 3] {
        [A1_IN, A1_OUT, AM].map(|list| policy.lists.iter(list).map(|b| b.0).collect())
    }

    fn feed(policy: &mut TwoQ, ids: &[u32]) -> Vec<Verdict> {
        ids.iter().map(|id| policy.access(Access::read(BlockId(*id)))).collect()
    }

    /// Capacity 4, so Kin = 1 and Kout = 2. Newest first.
    #[test]
    fn the_hand_worked_case() {
        let mut policy = TwoQ::new(4, &TwoQSettings::default(), Seed(0));
        policy.reserve_ids(8);
        // Four newcomers fill A1in; a hit there changes nothing.
        feed(&mut policy, &[0, 1, 2, 3, 0]);
        assert_eq!(lists(&policy), [vec![3, 2, 1, 0], vec![], vec![]]);
        // 4 and 5 push 0 and 1 out of A1in (over Kin) into A1out.
        feed(&mut policy, &[4, 5]);
        assert_eq!(lists(&policy), [vec![5, 4, 3, 2], vec![1, 0], vec![]]);
        // 0 comes back from A1out: it joins Am, and 2 takes its place among the ghosts.
        let verdict = feed(&mut policy, &[0]);
        assert_eq!(verdict, [Verdict::Admit { evicted: Some(BlockId(2)) }]);
        assert_eq!(lists(&policy), [vec![5, 4, 3], vec![2, 1], vec![0]]);
        // 6: 3 leaves A1in; A1out is over Kout, so 1 is forgotten. 1 then enters as a stranger.
        feed(&mut policy, &[6, 1]);
        assert_eq!(lists(&policy), [vec![1, 6, 5], vec![4, 3], vec![0]]);
        // 3 and 4 return; A1in shrinks to 1 (6, 5 leave).
        feed(&mut policy, &[3, 4]);
        assert_eq!(lists(&policy), [vec![1], vec![6, 5], vec![4, 3, 0]]);
        // 7: A1in is not over Kin = 1, so the tail of Am leaves for good.
        let verdict = feed(&mut policy, &[7]);
        assert_eq!(verdict, [Verdict::Admit { evicted: Some(BlockId(0)) }]);
        assert_eq!(lists(&policy), [vec![7, 1], vec![6, 5], vec![4, 3]]);
        assert!(!policy.tracks(BlockId(0)));
        assert_eq!(policy.audit(), Ok(()));
    }
}
