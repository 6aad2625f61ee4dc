//! The oracle with benefit: what a cache should hold, knowing what each block is still worth.
//!
//! For: the labels that models of admission and eviction learn from, and a bound that weighs what a
//! disk and a flash drive take for a request. Source: Ebrahimi et al., RC-RNN, section 4.1 and
//! equation 3. Units: blocks; a benefit has none.
//!
//! Left open there, and settled here: the benefit of a block in the cache is that of its last
//! access; a block that is worth nothing stays out even where there is room; of blocks worth the
//! same the one not used for the longest time leaves first, and none leaves for its equal.

use crate::least_first::LeastFirst;
use crate::registry::{Entry, Need, Registered};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// The oracle; see the top of the file.
#[derive(Clone, Debug, SnapshotValue)]
pub struct BenefitOracle {
    /// By the bits of the benefit, which sort as it does, then by the number of the access.
    order: LeastFirst,
    /// Accesses so far, modulo 2^32.
    accesses: u32,
    capacity: u32,
}

impl BenefitOracle {
    /// Whether a block worth `bits` goes before the one worth least.
    #[inline(always)]
    fn exceeds_least(&self, bits: u32) -> bool {
        self.order.lowest().is_some_and(|(key, _)| bits > (key >> 32) as u32)
    }
}

impl Registered for BenefitOracle {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "benefit-oracle",
        doc: "by true future uses and service times: a block replaces one worth less",
        source: "Ebrahimi et al., RC-RNN, section 4.1",
        needs: &[Need::Benefit],
    };

    fn new(capacity_blocks: u32, _: &NoSettings, _: Seed) -> Self {
        BenefitOracle { order: LeastFirst::default(), accesses: 0, capacity: capacity_blocks }
    }
}

impl PolicyHooks for BenefitOracle {}

impl StoredPolicy for BenefitOracle {
    stored_in!(order: LeastFirst);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let bits = access.future.benefit().to_bits();
        let key = u64::from(bits) << 32 | u64::from(self.accesses);
        self.accesses = self.accesses.wrapping_add(1);
        if self.order.contains(access.block) {
            self.order.set(access.block, key);
            return Verdict::Hit;
        }
        let full = self.order.resident() == self.capacity;
        if bits == 0 || self.capacity == 0 || (full && !self.exceeds_least(bits)) {
            return Verdict::Bypass;
        }
        let evicted = if full { self.evict() } else { None };
        self.order.set(access.block, key);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        self.order.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;
    use crate::{Future, NEVER};
    use Verdict::{Bypass, Hit};

    fn run(capacity: u32, steps: &[(u32, f32)]) -> Vec<Verdict> {
        let mut oracle = BenefitOracle::new(capacity, &NoSettings::default(), Seed(0));
        oracle.reserve_ids(8);
        let access = |&(id, benefit): &(u32, f32)| Access {
            future: Future::Benefit(benefit),
            ..Access::read(BlockId(id))
        };
        steps.iter().map(|step| oracle.access(access(step))).collect()
    }

    fn admit(evicted: Option<u32>) -> Verdict {
        Verdict::Admit { evicted: evicted.map(BlockId) }
    }

    /// Reads of 1 2 1 3 3 2 3 4 through one block, each worth twice the uses that follow. 2 is
    /// worth as much as 1 at first and stays out. 1, read for the last time, is worth nothing: 3
    /// drives it out, and keeps 2 out, which is worth nothing by then. 4 is never read again.
    #[test]
    fn a_block_comes_in_for_one_worth_less() {
        let steps =
            [(1, 2.0), (2, 2.0), (1, 0.0), (3, 4.0), (3, 2.0), (2, 0.0), (3, 0.0), (4, 0.0)];
        let expected = [admit(None), Bypass, Hit, admit(Some(1)), Hit, Bypass, Hit, Bypass];
        assert_eq!(run(1, &steps), expected);
    }

    /// With room for both, what is worth nothing stays out all the same; of equals the oldest
    /// leaves, and a hit makes 1 younger than 2.
    #[test]
    fn the_oldest_of_equals_leaves_and_room_is_no_reason() {
        let steps = [(1, 3.0), (5, 0.0), (2, 1.0), (1, 1.0), (3, 2.0), (4, 1.0), (4, 1.5)];
        let expected =
            [admit(None), Bypass, admit(None), Hit, admit(Some(2)), Bypass, admit(Some(1))];
        assert_eq!(run(2, &steps), expected);
    }

    /// An unknown benefit, or a value that no benefit can have, is worth nothing.
    #[test]
    fn nothing_known_is_worth_nothing() {
        let benefits = [f32::NAN, f32::NEG_INFINITY, -1.0, -0.0, 0.0].map(Future::Benefit);
        for future in
            [Future::None, Future::NextUse(3), Future::NextUse(NEVER)].iter().chain(&benefits)
        {
            assert_eq!(future.benefit().to_bits(), 0, "{future:?}");
        }
    }
}
