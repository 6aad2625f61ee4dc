//! What happens to the blocks that a cache holds, reported as it happens.
//!
//! For: flash under the cache, which performs or prices the cache's own reads and writes. Must
//! never know: policies, write modes, devices. Order matters: a block that leaves is reported
//! before the one that takes its place is written.

use cachewright_cache::AccessOutcome;
use cachewright_policy::Verdict;
use cachewright_types::BlockId;

/// The receiver. Ids are those of the pool: dense over all tenants when it is shared.
pub trait CacheObserver: Send {
    /// A cached block is read.
    fn read(&mut self, pool: usize, block: BlockId);
    /// A block is written into the cache: filled after a read, brought in by a write or updated.
    fn write(&mut self, pool: usize, block: BlockId);
    /// A block is not cached any more: evicted, invalidated or trimmed.
    fn left(&mut self, pool: usize, block: BlockId);
    /// The replay has ended.
    fn finish(&mut self);
}

/// Reports what an access did to the cache; out of line, so that loops without an observer stay
/// small.
#[inline(never)]
pub(crate) fn report(
    observer: &mut dyn CacheObserver,
    pool: usize,
    block: BlockId,
    write: bool,
    outcome: AccessOutcome,
) {
    match outcome.verdict {
        Verdict::Hit if write => observer.write(pool, block),
        Verdict::Hit => observer.read(pool, block),
        Verdict::Admit { evicted } => {
            if let Some(evicted) = evicted {
                observer.left(pool, evicted);
            }
            observer.write(pool, block);
        }
        Verdict::Bypass if outcome.invalidated => observer.left(pool, block),
        Verdict::Bypass => {}
    }
}
