//! LIRS: blocks asked for again soon keep the cache, the rest share one percent of it.
//!
//! For: loops and scans that defeat recency. Source: Jiang and Zhang, SIGMETRICS'02, section 3.
//! Stack S holds every block with recent history in order of use and always ends in a LIR block;
//! queue Q holds the resident HIR blocks. The paper leaves two things open. The share of Q:
//! floor(0.01 c), at least one block (its advice, section 4.2). The length of S: at most 2c
//! entries, the oldest non-resident ones are dropped. A block enters as LIR while the LIR set has
//! room.
//!
//! The variant `libcachesim` adds one rule of libCacheSim 0.3.5: when a resident HIR block that has
//! left S is hit and the LIR set is full, the bottom LIR block is demoted as well, and the next
//! block missed takes its place. The paper changes no status there. libCacheSim evicts the front of
//! Q at that hit already; a hit evicts nothing here, so that block leaves at the next miss and may
//! still be hit before it (8 of 896,229 misses at one of 22 sizes tried, none at others). Unit:
//! blocks.

use crate::links::Links;
use crate::registry::{Entry, Registered, Variant};
use crate::renumber::Renumbering;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::{BlockId, Seed};

cachewright_types::declare! {
    /// The share of LIRS's queue, and whose rules; the defaults are the paper's.
    pub struct LirsSettings {
        /// whose rules: `libcachesim` also demotes a block when one outside the stack is hit
        variant: Variant = Variant::Paper, "name";
        /// share of the cache for blocks that have not shown a short re-use distance
        hir: f64 = 0.01, "ratio", 0.0 ..= 1.0;
    }
}

/// What is known of a block: nothing,
const OUT: u8 = 0;
/// resident with low inter-reference recency (always in S),
const LIR: u8 = 1;
/// resident with high inter-reference recency (in Q, perhaps in S),
const HIR: u8 = 2;
/// or not resident but in S.
const GHOST: u8 = 3;

/// List of `queues` that is the paper's Q, newest at its end.
const QUEUE: usize = 0;
/// List of `queues` that holds the non-resident blocks, in the order they have in S.
const GHOSTS: usize = 1;

/// Low inter-reference recency set, by the rules of its [`Variant`].
#[derive(Clone, Debug, SnapshotValue)]
pub struct Lirs {
    /// The paper's S, with the status of each block as its tag.
    stack: Links<u8, 1>,
    queues: Links<(), 2>,
    capacity: u32,
    hir_share: f64,
    /// libCacheSim's rule, see the top of the file.
    demotes_at_hits: bool,
    /// LIR blocks aimed at.
    lir_target: u32,
    lir_blocks: u32,
}

impl Registered for Lirs {
    type Settings = LirsSettings;
    const ENTRY: Entry = Entry {
        name: "lirs",
        doc: "blocks with short re-use distance get all but a hundredth of the cache",
        source: "Jiang and Zhang, SIGMETRICS'02; libCacheSim 0.3.5",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &LirsSettings, _: Seed) -> Self {
        let mut policy = Lirs {
            stack: Links::new(),
            queues: Links::new(),
            capacity: 0,
            hir_share: settings.hir,
            demotes_at_hits: settings.variant == Variant::Libcachesim,
            lir_target: 0,
            lir_blocks: 0,
        };
        policy.set_capacity(capacity_blocks);
        policy
    }
}

impl Lirs {
    fn set_capacity(&mut self, capacity_blocks: u32) {
        let hir_blocks = (self.hir_share * f64::from(capacity_blocks)) as u32;
        self.capacity = capacity_blocks;
        self.lir_target = capacity_blocks.saturating_sub(hir_blocks.max(1));
    }

    /// Puts a block on top of S with its new status.
    #[inline(always)]
    fn stack_top(&mut self, block: BlockId, status: u8) {
        if self.stack.linked(block) {
            self.stack.move_to_head(0, block);
        } else {
            self.stack.push_head(0, block);
        }
        *self.stack.tag_mut(block) = status;
    }

    /// The paper's stack pruning: S ends in a LIR block again.
    #[inline(always)]
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.tail(0) {
            match self.stack.tag(bottom) {
                LIR => return,
                GHOST => self.forget_ghost(bottom),
                _ => self.stack.unlink(0, bottom),
            }
        }
    }

    fn forget_ghost(&mut self, block: BlockId) {
        self.queues.unlink(GHOSTS, block);
        self.stack.unlink(0, block);
        *self.stack.tag_mut(block) = OUT;
    }

    /// Keeps S within 2c entries.
    #[inline(always)]
    fn limit_stack(&mut self) {
        while self.stack.len(0) > self.capacity.saturating_mul(2) {
            match self.queues.tail(GHOSTS) {
                Some(oldest) => self.forget_ghost(oldest),
                None => return,
            }
        }
    }

    /// The LIR block at the bottom of S moves to the end of Q.
    fn demote_bottom(&mut self) {
        if let Some(bottom) = self.stack.pop_tail(0) {
            *self.stack.tag_mut(bottom) = HIR;
            self.queues.push_head(QUEUE, bottom);
            self.lir_blocks -= 1;
            self.prune();
        }
    }

    /// The front of Q leaves; it stays known while it is in S.
    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        let victim = self.queues.pop_tail(QUEUE)?;
        if self.stack.linked(victim) {
            *self.stack.tag_mut(victim) = GHOST;
            self.queues.push_head(GHOSTS, victim);
        } else {
            *self.stack.tag_mut(victim) = OUT;
        }
        Some(victim)
    }

    /// A HIR block seen again while in S becomes LIR; another gives up that status if need be.
    #[inline(always)]
    fn promote(&mut self, block: BlockId) {
        self.stack_top(block, LIR);
        self.lir_blocks += 1;
        if self.lir_blocks > self.lir_target {
            self.demote_bottom();
        }
    }

    /// The paper's case "upon accessing a HIR resident block".
    fn on_resident_hir(&mut self, block: BlockId) {
        if self.stack.linked(block) {
            self.queues.unlink(QUEUE, block);
            self.promote(block);
            return;
        }
        self.queues.move_to_head(QUEUE, block);
        if self.demotes_at_hits && self.lir_blocks == self.lir_target {
            self.demote_bottom();
        }
        self.enter_stack_as_hir(block);
    }

    #[inline(always)]
    fn enter_stack_as_hir(&mut self, block: BlockId) {
        self.stack_top(block, HIR);
        self.limit_stack();
        if self.lir_blocks == 0 {
            self.prune();
        }
    }

    /// The paper's case "upon accessing a HIR non-resident block", and blocks not in S.
    #[inline(always)]
    fn on_miss(&mut self, block: BlockId) -> Option<BlockId> {
        let evicted = if self.len() >= self.capacity { self.evict() } else { None };
        if self.stack.tag(block) == GHOST {
            self.queues.unlink(GHOSTS, block);
            self.promote(block);
        } else if self.lir_blocks < self.lir_target {
            self.promote(block);
            self.limit_stack();
        } else {
            self.queues.push_head(QUEUE, block);
            self.enter_stack_as_hir(block);
        }
        evicted
    }
}

impl PolicyHooks for Lirs {}

impl Policy for Lirs {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        let block = access.block;
        match self.stack.tag(block) {
            // The paper's case "upon accessing a LIR block".
            LIR => {
                let bottom = self.stack.tail(0) == Some(block);
                self.stack.move_to_head(0, block);
                if bottom {
                    self.prune();
                }
                Verdict::Hit
            }
            HIR => {
                self.on_resident_hir(block);
                Verdict::Hit
            }
            _ if self.capacity == 0 => Verdict::Bypass,
            _ => Verdict::Admit { evicted: self.on_miss(block) },
        }
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        matches!(self.stack.tag(block), LIR | HIR)
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.stack.tag(block) != OUT
    }

    fn max_tracked(&self) -> u64 {
        3 * u64::from(self.capacity) + 1
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.lir_blocks + self.queues.len(QUEUE)
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.set_capacity(capacity_blocks);
        while self.lir_blocks > self.lir_target {
            self.demote_bottom();
        }
        while self.len() > capacity_blocks {
            evicted.extend(self.evict());
        }
        self.limit_stack();
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let status = self.stack.tag(block);
        match status {
            OUT => return false,
            LIR => self.lir_blocks -= 1,
            HIR => self.queues.unlink(QUEUE, block),
            _ => self.queues.unlink(GHOSTS, block),
        }
        if self.stack.linked(block) {
            self.stack.unlink(0, block);
        }
        *self.stack.tag_mut(block) = OUT;
        self.prune();
        status != GHOST
    }

    fn reserve_ids(&mut self, count: usize) {
        self.stack.reserve_ids(count);
        self.queues.reserve_ids(count);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.stack.renumber(ids);
        self.queues.renumber(ids);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.stack.touch(block);
    }

    fn audit(&self) -> Result<(), String> {
        self.stack.audit()?;
        self.queues.audit()?;
        if self.len() > self.capacity || self.lir_blocks > self.lir_target {
            return Err(format!(
                "{} LIR (of {}) and {} HIR blocks in a cache of {}",
                self.lir_blocks,
                self.lir_target,
                self.queues.len(QUEUE),
                self.capacity
            ));
        }
        if self.stack.len(0) > self.capacity.saturating_mul(2) {
            return Err(format!("{} entries in S", self.stack.len(0)));
        }
        if self.stack.tail(0).is_some_and(|bottom| self.stack.tag(bottom) != LIR) {
            return Err("S does not end in a LIR block".to_owned());
        }
        let lir = self.stack.iter(0).filter(|b| self.stack.tag(*b) == LIR).count();
        if lir as u32 != self.lir_blocks {
            return Err(format!("{lir} LIR blocks in S, {} counted", self.lir_blocks));
        }
        if let Some(b) = self.queues.iter(QUEUE).find(|b| self.stack.tag(*b) != HIR) {
            return Err(format!("block {} of Q is not HIR", b.0));
        }
        let ghosts: Vec<BlockId> = self.queues.iter(GHOSTS).collect();
        let in_stack: Vec<BlockId> =
            self.stack.iter(0).filter(|b| self.stack.tag(*b) == GHOST).collect();
        if ghosts != in_stack {
            return Err("the non-resident blocks are not in the order of S".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(links: impl Iterator<Item = BlockId>) -> Vec<u32> {
        links.map(|b| b.0).collect()
    }

    /// S from its top with the status of each block, and Q from its end.
    fn state(policy: &Lirs) -> (Vec<(u32, u8)>, Vec<u32>) {
        let stack = policy.stack.iter(0).map(|b| (b.0, policy.stack.tag(b))).collect();
        (stack, ids(policy.queues.iter(QUEUE)))
    }

    fn feed(policy: &mut Lirs, blocks: &[u32]) -> Vec<Verdict> {
        blocks.iter().map(|id| policy.access(Access::read(BlockId(*id)))).collect()
    }

    /// Capacity 3: two LIR blocks and one HIR block. S from its top.
    #[test]
    fn the_hand_worked_case() {
        let mut lirs = Lirs::new(3, &LirsSettings::default(), Seed(0));
        lirs.reserve_ids(8);
        // 0 and 1 fill the LIR set, 2 is HIR.
        feed(&mut lirs, &[0, 1, 2]);
        assert_eq!(state(&lirs), (vec![(2, HIR), (1, LIR), (0, LIR)], vec![2]));
        // 3: 2 leaves Q and the cache, and stays in S.
        assert_eq!(feed(&mut lirs, &[3]), [Verdict::Admit { evicted: Some(BlockId(2)) }]);
        let stack = vec![(3, HIR), (2, GHOST), (1, LIR), (0, LIR)];
        assert_eq!(state(&lirs), (stack, vec![3]));
        // 2 again: 3 is evicted, 2 becomes LIR, 0 at the bottom of S is demoted to the end of Q.
        assert_eq!(feed(&mut lirs, &[2]), [Verdict::Admit { evicted: Some(BlockId(3)) }]);
        assert_eq!(state(&lirs), (vec![(2, LIR), (3, GHOST), (1, LIR)], vec![0]));
        // 1, the bottom of S, is hit: pruning forgets 3.
        feed(&mut lirs, &[1]);
        assert_eq!(state(&lirs), (vec![(1, LIR), (2, LIR)], vec![0]));
        assert!(!lirs.tracks(BlockId(3)));
        // 0 is hit outside S: it stays HIR and returns to the top of S (paper: nothing else).
        let libcachesim = LirsSettings { variant: Variant::Libcachesim, ..Default::default() };
        let mut other = Lirs::new(3, &libcachesim, Seed(0));
        other.reserve_ids(8);
        feed(&mut other, &[0, 1, 2, 3, 2, 1, 0]);
        feed(&mut lirs, &[0]);
        assert_eq!(state(&lirs), (vec![(0, HIR), (1, LIR), (2, LIR)], vec![0]));
        // libCacheSim demotes 2 at that hit; 2 joins Q after 0 has moved to its end.
        assert_eq!(state(&other), (vec![(0, HIR), (1, LIR)], vec![2, 0]));
        // 0 is hit in S: it becomes LIR, and 2 is demoted.
        feed(&mut lirs, &[0]);
        assert_eq!(state(&lirs), (vec![(0, LIR), (1, LIR)], vec![2]));
        assert_eq!((lirs.audit(), other.audit()), (Ok(()), Ok(())));
    }
}
