//! What happens to the blocks that a cache holds, told as it happens.
//!
//! For: whoever performs or prices the cache's own reads and writes: flash under the cache. Must
//! never know: policies, write modes, devices. Order matters: a block that leaves is told before
//! the one that takes its place is written.

use cachewright_cache::AccessOutcome;
use cachewright_policy::Verdict;
use cachewright_types::BlockId;

/// The receiver. Ids are those of the pool: dense over all tenants when it is shared.
pub trait Watcher: Send {
    /// A cached block is read.
    fn read(&mut self, pool: usize, block: BlockId);
    /// A block is written into the cache: filled after a read, brought in by a write or updated.
    fn write(&mut self, pool: usize, block: BlockId);
    /// A block is not cached any more: evicted, invalidated or trimmed.
    fn left(&mut self, pool: usize, block: BlockId);
    /// The replay has ended.
    fn finish(&mut self);
}

/// Tells what an access did to the cache; out of line, so that loops without a watcher stay small.
#[inline(never)]
pub(crate) fn tell(
    watcher: &mut dyn Watcher,
    pool: usize,
    block: BlockId,
    write: bool,
    outcome: AccessOutcome,
) {
    match outcome.verdict {
        Verdict::Hit if write => watcher.write(pool, block),
        Verdict::Hit => watcher.read(pool, block),
        Verdict::Admit { evicted } => {
            if let Some(evicted) = evicted {
                watcher.left(pool, evicted);
            }
            watcher.write(pool, block);
        }
        Verdict::Bypass if outcome.invalidated => watcher.left(pool, block),
        Verdict::Bypass => {}
    }
}
