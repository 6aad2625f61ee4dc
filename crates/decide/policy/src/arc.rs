//! ARC: recency and frequency in two lists whose balance follows the hits on what they evicted.
//!
//! For: an adaptive, scan-resistant policy without settings.
//! Source: Megiddo and Modha, FAST'03, Fig. 4, with its real-valued target `p` and its steps
//! max(|B2|/|B1|, 1) and max(|B1|/|B2|, 1). Unit: blocks. Beyond the paper: a cache that has room
//! again (after a trim or growth) admits without evicting, and a smaller capacity evicts by the
//! same REPLACE rule until the blocks fit. Invariants (section I.C of the paper): |T1| + |T2| <= c,
//! |T1| + |B1| <= c, all four together <= 2c.

use crate::ghost_lists::{GhostLists, OUT};
use crate::registry::{Entry, Registered};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// Resident, seen once recently.
const T1: u8 = 1;
/// Resident, seen at least twice recently.
const T2: u8 = 2;
/// Ghosts of T1.
const B1: u8 = 3;
/// Ghosts of T2.
const B2: u8 = 4;

/// Adaptive replacement cache.
#[derive(Clone, Debug, SnapshotValue)]
pub struct Arc {
    lists: GhostLists<5, 2>,
    capacity: u32,
    /// The paper's p: how long T1 should be, in `[0, capacity]`.
    target_t1: f64,
}

impl Registered for Arc {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "arc",
        doc: "two lists, seen once and seen twice, balanced by the hits on what each evicted",
        source: "Megiddo and Modha, FAST'03, Fig. 4",
        needs: &[],
    };

    fn new(capacity_blocks: u32, _: &NoSettings, _: Seed) -> Self {
        Arc { lists: GhostLists::default(), capacity: capacity_blocks, target_t1: 0.0 }
    }
}

impl Arc {
    /// The paper's REPLACE: the tail of T1 or T2 becomes a ghost.
    #[inline(always)]
    fn replace(&mut self, hit_in_b2: bool) -> Option<BlockId> {
        let t1 = self.lists.len(T1);
        let length = f64::from(t1);
        let over = length > self.target_t1 || (hit_in_b2 && length == self.target_t1);
        let (from, to) =
            if t1 >= 1 && (over || self.lists.len(T2) == 0) { (T1, B1) } else { (T2, B2) };
        self.lists.demote(from, to)
    }

    /// Cases II and III: a ghost returns to T2 after the target has moved towards its list.
    fn on_ghost(&mut self, block: BlockId, list: u8) -> Verdict {
        let (b1, b2) = (f64::from(self.lists.len(B1)), f64::from(self.lists.len(B2)));
        if list == B1 {
            let limit = f64::from(self.capacity);
            self.target_t1 = (self.target_t1 + (b2 / b1).max(1.0)).min(limit);
        } else {
            self.target_t1 = (self.target_t1 - (b1 / b2).max(1.0)).max(0.0);
        }
        let evicted = if self.is_full() { self.replace(list == B2) } else { None };
        self.lists.transfer(list, T2, block);
        Verdict::Admit { evicted }
    }

    /// Case IV: a block not remembered enters T1.
    #[inline(always)]
    fn on_stranger(&mut self, block: BlockId) -> Verdict {
        let (t1, b1) = (self.lists.len(T1), self.lists.len(B1));
        let evicted = if t1 + b1 >= self.capacity {
            if t1 < self.capacity {
                self.lists.pop(B1);
                self.replace_if_full()
            } else {
                self.lists.pop(T1)
            }
        } else {
            if t1 + b1 + self.lists.len(T2) + self.lists.len(B2) >= self.capacity.saturating_mul(2)
            {
                self.lists.pop(B2);
            }
            self.replace_if_full()
        };
        self.lists.push(T1, block);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn replace_if_full(&mut self) -> Option<BlockId> {
        if self.is_full() { self.replace(false) } else { None }
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.lists.resident() >= self.capacity
    }
}

impl PolicyHooks for Arc {}

impl StoredPolicy for Arc {
    stored_in!(lists: GhostLists<5, 2>);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        match self.lists.list_of(block) {
            T2 => self.lists.refresh(T2, block),
            T1 => self.lists.transfer(T1, T2, block),
            OUT if self.capacity == 0 => return Verdict::Bypass,
            OUT => return self.on_stranger(block),
            ghost => return self.on_ghost(block, ghost),
        }
        Verdict::Hit
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        self.replace(false)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.capacity)
    }

    fn on_capacity(&mut self) {
        self.target_t1 = self.target_t1.min(f64::from(self.capacity));
    }

    fn trim_ghosts(&mut self) {
        self.lists.trim(B1, self.capacity - self.lists.len(T1));
        let others = self.lists.resident() + self.lists.len(B1);
        self.lists.trim(B2, self.capacity.saturating_mul(2).saturating_sub(others));
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        let length = f64::from(self.lists.len(T1));
        self.lists.near_tail(if length > self.target_t1 { T1 } else { T2 }, later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        let [t1, t2, b1, b2] = [T1, T2, B1, B2].map(|list| self.lists.len(list));
        let c = self.capacity;
        if t1 + b1 > c || t1 + t2 + b1 + b2 > 2 * c {
            return Err(format!("T1 {t1}, T2 {t2}, B1 {b1}, B2 {b2} in a cache of {c}"));
        }
        if !(0.0..=f64::from(c)).contains(&self.target_t1) {
            return Err(format!("target {} outside 0..={c}", self.target_t1));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn lists(arc: &Arc) -> [Vec<u32>; 4] {
        [T1, T2, B1, B2].map(|list| arc.lists.iter(list).map(|b| b.0).collect())
    }

    fn feed(arc: &mut Arc, ids: &[u32]) -> Vec<Verdict> {
        ids.iter().map(|id| arc.access(Access::read(BlockId(*id)))).collect()
    }

    /// Capacity 2, worked by hand from Fig. 4. Newest first.
    #[test]
    fn the_hand_worked_case() {
        let mut arc = Arc::new(2, &NoSettings {}, Seed(0));
        arc.reserve_ids(6);
        // 0, 1 fill T1; the second 0 moves it to T2 (case I).
        feed(&mut arc, &[0, 1, 0]);
        assert_eq!(lists(&arc), [vec![1], vec![0], vec![], vec![]]);
        // 2: case IV.B, no ghosts yet; |T1| = 1 > p = 0, so 1 leaves T1 for B1.
        let verdict = feed(&mut arc, &[2]);
        assert_eq!(verdict, [Verdict::Admit { evicted: Some(BlockId(1)) }]);
        assert_eq!(lists(&arc), [vec![2], vec![0], vec![1], vec![]]);
        // 1: case II, p = 0 + max(0/1, 1) = 1; |T1| = 1 is not over p, so 0 leaves T2 for B2.
        let verdict = feed(&mut arc, &[1]);
        assert_eq!(verdict, [Verdict::Admit { evicted: Some(BlockId(0)) }]);
        assert_eq!(lists(&arc), [vec![2], vec![1], vec![], vec![0]]);
        assert_eq!(arc.target_t1, 1.0);
        // 0: case III, p = 1 - max(0/1, 1) = 0; |T1| = 1 > 0, so 2 leaves T1 for B1.
        feed(&mut arc, &[0]);
        assert_eq!(lists(&arc), [vec![], vec![0, 1], vec![2], vec![]]);
        // 3: case IV.B, total 3 < 2c; T1 is empty, so 1 leaves T2 for B2.
        feed(&mut arc, &[3]);
        assert_eq!(lists(&arc), [vec![3], vec![0], vec![2], vec![1]]);
        // 4: case IV.A, |T1| + |B1| = c and |T1| < c: ghost 2 is forgotten, 3 leaves T1 for B1.
        feed(&mut arc, &[4]);
        assert_eq!(lists(&arc), [vec![4], vec![0], vec![3], vec![1]]);
        assert!(!arc.tracks(BlockId(2)));
        assert_eq!(arc.audit(), Ok(()));
    }
}
