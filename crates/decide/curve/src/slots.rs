//! Time slots: which recent accesses are still the latest of a block, and how many came after.
//!
//! For: the order statistics of [`crate::StackDistance`]. Must never know: blocks. A slot is one
//! bit, set while it is a block's latest access. Above the bits stand nodes of 16 counters, each
//! the number of set bits before it within its node. A rank is therefore one load per level and one
//! population count. Clearing a bit lowers the counters to its right with vector arithmetic: no
//! branch depends on data. Slots are assigned in ascending order. Counters to the right of the
//! newest slot are stale and written when it reaches them. Memory: 1.3 bits per slot.

/// Counters per node.
const FAN: usize = 16;
/// log2(FAN).
const FAN_BITS: u32 = 4;
/// log2 of the bits below one node of `fine`.
const NODE_BITS: u32 = 6 + FAN_BITS;

/// Bits in order of time, with ranks.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeSlots {
    words: Vec<u64>,
    /// Per word: set bits before it in its node.
    fine: Vec<[u16; FAN]>,
    /// `coarse[l]`, per node of the level below: set bits before it in its own node.
    coarse: Vec<Vec<[u32; FAN]>>,
    next: u32,
    live: u32,
}

impl TimeSlots {
    /// Largest number of slots.
    const MAX_SLOTS: u32 = !((1 << NODE_BITS) - 1);

    /// Set bits.
    #[inline(always)]
    pub fn live(&self) -> u32 {
        self.live
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        let coarse: usize = self.coarse.iter().map(Vec::capacity).sum();
        self.words.capacity() * 8 + self.fine.capacity() * FAN * 2 + coarse * FAN * 4
    }

    /// Whether the next slot does not exist.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.next as usize >= self.words.len() * 64
    }

    /// Set bits after `slot`.
    #[inline(always)]
    pub fn after(&self, slot: u32) -> u32 {
        self.live - self.rank(slot)
    }

    /// Set bits up to and including `slot`.
    #[inline(always)]
    pub fn rank(&self, slot: u32) -> u32 {
        let word = self.words[(slot >> 6) as usize] & (u64::MAX >> (63 - (slot & 63)));
        let node = &self.fine[(slot >> NODE_BITS) as usize];
        let mut rank = word.count_ones() + u32::from(node[(slot >> 6) as usize % FAN]);
        let mut index = (slot >> NODE_BITS) as usize;
        for level in &self.coarse {
            rank += level[index / FAN][index % FAN];
            index /= FAN;
        }
        rank
    }

    /// Assigns the next slot and sets it; there must be one.
    #[inline(always)]
    pub fn push(&mut self) -> u32 {
        let slot = self.next;
        if slot & 63 == 0 {
            self.enter(slot);
        }
        self.words[(slot >> 6) as usize] |= 1 << (slot & 63);
        self.next += 1;
        self.live += 1;
        slot
    }

    /// Clears `slot`, which must be set.
    #[inline(always)]
    pub fn clear(&mut self, slot: u32) {
        debug_assert!(self.words[(slot >> 6) as usize] >> (slot & 63) & 1 == 1, "slot {slot}");
        self.words[(slot >> 6) as usize] &= !(1 << (slot & 63));
        self.live -= 1;
        let child = ((slot >> 6) as usize % FAN) as u16;
        let node = &mut self.fine[(slot >> NODE_BITS) as usize];
        for (index, count) in (0..).zip(node) {
            *count = count.wrapping_sub(u16::from(index > child));
        }
        let mut index = (slot >> NODE_BITS) as usize;
        for level in &mut self.coarse {
            let child = (index % FAN) as u32;
            index /= FAN;
            for (index, count) in (0..).zip(&mut level[index]) {
                *count = count.wrapping_sub(u32::from(index > child));
            }
        }
    }

    /// Moves the set bits to the start in their order, and provides at least `slots` slots. The new
    /// position of a slot is its `rank` before this, minus one.
    pub fn compact(&mut self, slots: u64) {
        let nodes = slots.min(u64::from(Self::MAX_SLOTS)).div_ceil(1 << NODE_BITS) as usize;
        let live = self.live;
        self.words.clear();
        self.words.resize(nodes * FAN, 0);
        self.fine.clear();
        self.fine.resize(nodes, [0; FAN]);
        self.coarse.clear();
        let mut below = nodes;
        while below > 1 {
            let count = below.div_ceil(FAN);
            self.coarse.push(vec![[0; FAN]; count]);
            below = count;
        }
        for word in 0..live.div_ceil(64) {
            self.live = word * 64;
            self.enter(word * 64);
            let bits = (live - word * 64).min(64);
            self.words[word as usize] = u64::MAX >> (64 - bits);
        }
        self.live = live;
        self.next = live;
    }

    /// Writes the counters whose node or word begins at `slot`, the newest: all set bits are
    /// before it.
    #[inline(never)]
    fn enter(&mut self, slot: u32) {
        let mut before = self.live;
        for (depth, level) in self.coarse.iter_mut().enumerate().rev() {
            let shift = NODE_BITS + FAN_BITS * depth as u32;
            let index = (slot >> shift) as usize;
            let count = &mut level[index / FAN][index % FAN];
            if slot & ((1 << shift) - 1) == 0 {
                *count = before;
            }
            before -= *count;
        }
        self.fine[(slot >> NODE_BITS) as usize][(slot >> 6) as usize % FAN] = before as u16;
    }
}
