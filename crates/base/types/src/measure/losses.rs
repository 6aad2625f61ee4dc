//! Blocks that left a cache otherwise than to make room, by reason.
//!
//! Every block that is dropped is counted under its reason. Their sum is
//! [`Counts::invalidations`](super::Counts::invalidations). Unit: blocks.

/// Why the cached copy of a block is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// The block was trimmed.
    Trim,
    /// A write that went round the cache made the copy old.
    Invalidation,
    /// Its read from the backing store failed.
    Fetch,
    /// Its write to the cache's medium failed.
    Fill,
    /// Its content differs from its checksum.
    Checksum,
    /// The cache's medium is gone, or the part of it that held the block.
    Device,
    /// Cleaning of the cache's medium did not copy it: it was clean, and not wanted of late.
    Cleaning,
    /// Its tenant was removed; dirty content is written back.
    Removal,
}

impl LossReason {
    /// All reasons, in the order of their counts.
    pub const ALL: [LossReason; 8] = [
        LossReason::Trim,
        LossReason::Invalidation,
        LossReason::Fetch,
        LossReason::Fill,
        LossReason::Checksum,
        LossReason::Device,
        LossReason::Cleaning,
        LossReason::Removal,
    ];

    /// The reason in a word.
    pub fn word(self) -> &'static str {
        match self {
            LossReason::Trim => "trim",
            LossReason::Invalidation => "invalidation",
            LossReason::Fetch => "fetch",
            LossReason::Fill => "fill",
            LossReason::Checksum => "checksum",
            LossReason::Device => "device",
            LossReason::Cleaning => "cleaning",
            LossReason::Removal => "removal",
        }
    }
}

/// Counts of losses of one tenant (or of all).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    blocks: [u64; LossReason::ALL.len()],
    dirty: [u64; LossReason::ALL.len()],
}

impl Losses {
    /// Counts a block, dirty if the backing store has older content.
    pub fn count(&mut self, reason: LossReason, dirty: bool) {
        self.blocks[reason as usize] += 1;
        self.dirty[reason as usize] += u64::from(dirty);
    }

    /// Blocks lost for a reason.
    pub fn blocks(&self, reason: LossReason) -> u64 {
        self.blocks[reason as usize]
    }

    /// Those of them that were dirty.
    pub fn dirty(&self, reason: LossReason) -> u64 {
        self.dirty[reason as usize]
    }

    /// Blocks lost for any reason.
    pub fn total(&self) -> u64 {
        self.blocks.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_count() {
        let mut losses = Losses::default();
        for (times, reason) in (1..).zip(LossReason::ALL) {
            (0..times).for_each(|time| losses.count(reason, time == 0));
        }
        let counts = LossReason::ALL.map(|reason| (losses.blocks(reason), losses.dirty(reason)));
        assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8].map(|count| (count, 1)));
        assert_eq!(losses.total(), 36);
    }
}
