//! ReCA: which requests are worth a place is configured anew from what runs.
//!
//! For: the reconfigurable cache that RC-RNN is measured against. Source: Salkhordeh et al., IEEE
//! TPDS 2018, known from its abstract and from RC-RNN, sections 2.3 and 3.2, only; so what follows
//! is the simplest reading of these. Unit: blocks. Memory: 16 bytes per id.
//!
//! From there: requests are sequential, overlapped, strided or random; over a window of requests
//! the workload is taken to be of one of five kinds, each with a configuration of its own: the
//! classes of requests whose blocks are taken in, and their priority; the blocks of each class are
//! in one LRU queue, and the oldest of the class of least priority leaves. Ours: a workload is of
//! the kind of the class that most of its requests have, mixed if none has more than `rules` of
//! them, and mixed before the first window ends; the table of configurations; a hit moves a block
//! to the queue of the request that hits. A block not used for `stale_after` accesses per block of
//! the cache leaves first whatever its class: priorities alone would never let go of it. Pools of
//! several tenants compare addresses of different volumes.

use crate::characterize::{RequestClass as Class, RequestClassifier as Classes};
use crate::links::Links;
use crate::registry::{Entry, Need, Registered};
use crate::renumber::Renumbering;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, RequestInfo, Verdict};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Seed, TenantId, declare};

declare! {
    /// Settings of ReCA.
    pub struct RecaSettings {
        /// requests after which the cache is configured anew
        window: u32 = 1000, "requests", 1 ..= 10000000;
        /// share of a window's requests above which their class makes the kind of workload
        rules: f64 = 0.5, "ratio", 0.25 ..= 1.0;
        /// accesses per block of the cache after which an unused block leaves first
        stale_after: f64 = 2.0, "accesses", 0.01 ..= 1000000.0;
    }
}

/// What is taken in, and what stays, in one kind of workload.
#[derive(Debug)]
struct WorkloadConfiguration {
    /// From the class whose blocks leave last to the one whose leave first.
    order: [Class; 4],
    /// How many classes, from the first on, are taken in.
    admitted: usize,
}

/// The place of mixed workloads in [`CONFIGURATIONS`].
const MIXED: usize = 4;
/// By the number of the class that rules, mixed last. A disk is nearly as fast at what is
/// sequential, which comes in only where most is asked for again; what was asked for again stays
/// longest, but where streams rule and only single requests keep a disk waiting.
const CONFIGURATIONS: [WorkloadConfiguration; 5] = {
    use crate::characterize::RequestClass::{Overlapped, Random, Sequential, Strided};
    [
        WorkloadConfiguration { order: [Random, Overlapped, Strided, Sequential], admitted: 3 },
        WorkloadConfiguration { order: [Overlapped, Random, Strided, Sequential], admitted: 4 },
        WorkloadConfiguration { order: [Overlapped, Strided, Random, Sequential], admitted: 3 },
        WorkloadConfiguration { order: [Overlapped, Random, Strided, Sequential], admitted: 3 },
        WorkloadConfiguration { order: [Overlapped, Random, Strided, Sequential], admitted: 3 },
    ]
};

/// What is known of a block in the cache.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct ClassTag {
    /// The queue it is in.
    class: u8,
    /// The number of its last access, modulo 2^32.
    used: u32,
}

/// The blocks in the cache: one queue per class, least recently used last.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct ClassQueues {
    links: Links<ClassTag, 4>,
    len: u32,
    /// Accesses so far, modulo 2^32.
    now: u32,
}

impl ClassQueues {
    /// The block to leave: the one unused for longest of those unused for more than `limit`
    /// accesses, else the oldest of the class of least priority.
    fn victim(&self, limit: f64, order: &[Class; 4]) -> Option<BlockId> {
        let age = |block: &BlockId| self.now.wrapping_sub(self.links.tag(*block).used);
        let tails = (0..4).filter_map(|class| self.links.tail(class));
        let oldest = tails.max_by_key(age).filter(|block| f64::from(age(block)) > limit);
        oldest.or_else(|| order.iter().rev().find_map(|class| self.links.tail(*class as usize)))
    }

    /// Takes out a block that is in the cache.
    fn unlink(&mut self, block: BlockId) {
        self.links.unlink(usize::from(self.links.tag(block).class), block);
        self.len -= 1;
    }

    /// Puts a block that is in no queue at the head of that of a class.
    fn push(&mut self, block: BlockId, class: Class) {
        *self.links.tag_mut(block) = ClassTag { class: class as u8, used: self.now };
        self.links.push_head(class as usize, block);
        self.len += 1;
    }
}

impl BlockStore for ClassQueues {
    fn contains(&self, block: BlockId) -> bool {
        self.links.linked(block)
    }

    fn resident(&self) -> u32 {
        self.len
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let resident = self.contains(block);
        if resident {
            self.unlink(block);
        }
        resident
    }

    fn reserve_ids(&mut self, count: usize, _: u32, _: u32) {
        self.links.reserve_ids(count);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.links.renumber(ids);
        true
    }

    fn touch(&self, block: BlockId) {
        self.links.touch(block);
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        let queued: u32 = (0..4).map(|class| self.links.len(class)).sum();
        if queued != self.len || self.len > capacity {
            return Err(format!("{queued} queued, {} counted of {capacity}", self.len));
        }
        for class in 0..4 {
            if self.links.iter(class).any(|b| usize::from(self.links.tag(b).class) != class) {
                return Err(format!("a block of queue {class} is marked as of another"));
            }
        }
        self.links.audit()
    }
}

/// The cache; see the top of the file.
#[derive(Clone, Debug, Snapshot)]
pub struct Reca {
    queues: ClassQueues,
    capacity: u32,
    #[snapshot(settings)]
    settings: RecaSettings,
    classes: Classes,
    /// The class of the request whose blocks are accessed.
    class: Class,
    /// Requests of each class in the window that runs.
    seen: [u32; 4],
    configuration: usize,
}

impl Reca {
    /// Ends the window: what it was made of is how the next one is treated.
    fn configure(&mut self) {
        let min_requests = self.settings.rules * f64::from(self.settings.window);
        let rules = |seen: &u32| f64::from(*seen) > min_requests;
        self.configuration = self.seen.iter().position(rules).unwrap_or(MIXED);
        self.seen = [0; 4];
    }

    /// Takes in a block as one of a class.
    fn admit(&mut self, block: BlockId, class: Class) -> Verdict {
        let evicted = if self.queues.len == self.capacity { self.evict() } else { None };
        self.queues.push(block, class);
        Verdict::Admit { evicted }
    }
}

impl Registered for Reca {
    type Settings = RecaSettings;
    const ENTRY: Entry = Entry {
        name: "reca",
        doc: "classes of requests are admitted and kept by the kind of workload (a simple \
              reading)",
        source: "after Salkhordeh et al., IEEE TPDS 29(7), 2018",
        needs: &[Need::Requests],
    };

    fn new(capacity_blocks: u32, settings: &RecaSettings, _: Seed) -> Self {
        Reca {
            queues: ClassQueues::default(),
            capacity: capacity_blocks,
            settings: settings.clone(),
            classes: Classes::default(),
            class: Class::Random,
            seen: [0; 4],
            configuration: MIXED,
        }
    }
}

impl PolicyHooks for Reca {
    fn on_request(&mut self, info: &RequestInfo) {
        let request = Request {
            time: Nanos(info.time_ns),
            offset: Bytes(info.offset),
            length: Bytes(info.length),
            op: if info.write { Op::Write } else { Op::Read },
            tenant: TenantId(0),
        };
        if let Some(class) = self.classes.class(&request) {
            if self.seen.iter().sum::<u32>() >= self.settings.window {
                self.configure();
            }
            self.class = class;
            self.seen[class as usize] += 1;
        }
    }
}

impl StoredPolicy for Reca {
    stored_in!(queues: ClassQueues);

    fn decide(&mut self, access: Access) -> Verdict {
        self.queues.now = self.queues.now.wrapping_add(1);
        if self.queues.remove(access.block) {
            self.queues.push(access.block, self.class);
            return Verdict::Hit;
        }
        let configuration = &CONFIGURATIONS[self.configuration];
        let admits = configuration.order[..configuration.admitted].contains(&self.class);
        if self.capacity == 0 || !admits {
            return Verdict::Bypass;
        }
        self.admit(access.block, self.class)
    }

    fn evict(&mut self) -> Option<BlockId> {
        let limit = f64::from(self.capacity) * self.settings.stale_after;
        let victim = self.queues.victim(limit, &CONFIGURATIONS[self.configuration].order)?;
        self.queues.unlink(victim);
        Some(victim)
    }

    fn adopt_block(&mut self, block: BlockId, _: bool) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.queues.now = self.queues.now.wrapping_add(1);
        self.admit(block, Class::Random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;
    use Class::{Overlapped, Random, Sequential, Strided};
    use Verdict::{Bypass, Hit};

    const FAR: u64 = 1 << 30;

    /// A cache, and where the last request of the test lay.
    fn cache(blocks: u32, window: u32, stale_after: f64) -> Reca {
        let settings = RecaSettings { window, stale_after, ..RecaSettings::default() };
        let mut reca = Reca::new(blocks, &settings, Seed(0));
        reca.reserve_ids(64);
        reca
    }

    /// Tells of a request of that class, and reads a block in it.
    fn read(reca: &mut Reca, class: Class, at: &mut u64, block: u32) -> Verdict {
        let before = *at;
        *at = match class {
            Sequential => before + 4096,
            Overlapped => before,
            Strided => before + 3 * 4096,
            Random => before + FAR,
        };
        reca.on_request(&RequestInfo { offset: *at, length: 4096, ..RequestInfo::default() });
        assert_eq!(reca.class, class);
        let verdict = reca.access(Access::read(BlockId(block)));
        assert_eq!(reca.audit(), Ok(()));
        verdict
    }

    fn admit(evicted: Option<u32>) -> Verdict {
        Verdict::Admit { evicted: evicted.map(BlockId) }
    }

    /// Two blocks, windows too long to end: mixed. 1 random, 2 strided; 4, overlapped, drives out
    /// the strided 2; a sequential request stays out; 5, random, drives out the random 1, and the
    /// strided 6 the random 5, since no strided block is left. A sequential hit makes 4 go before
    /// 6.
    #[test]
    fn the_class_of_least_priority_leaves_first() {
        let (mut reca, at) = (cache(2, 1_000, 100.0), &mut 0);
        assert_eq!(read(&mut reca, Random, at, 1), admit(None));
        assert_eq!(read(&mut reca, Strided, at, 2), admit(None));
        assert_eq!(read(&mut reca, Overlapped, at, 4), admit(Some(2)));
        assert_eq!(read(&mut reca, Sequential, at, 3), Bypass);
        assert_eq!(read(&mut reca, Random, at, 5), admit(Some(1)));
        assert_eq!(read(&mut reca, Strided, at, 6), admit(Some(5)));
        assert_eq!(read(&mut reca, Sequential, at, 4), Hit);
        assert_eq!(read(&mut reca, Random, at, 7), admit(Some(4)));
    }

    /// Windows of 4 requests. Three of the first are overlapped, so that in the second a sequential
    /// request comes in; of that one all are sequential, and in the third none comes in.
    #[test]
    fn a_window_configures_the_next() {
        let (mut reca, at) = (cache(9, 4, 100.0), &mut 0);
        for (class, block) in [(Random, 1), (Overlapped, 2), (Overlapped, 3), (Overlapped, 4)] {
            assert_eq!(read(&mut reca, class, at, block), admit(None));
        }
        for block in 5..9 {
            assert_eq!(read(&mut reca, Sequential, at, block), admit(None));
        }
        assert_eq!(read(&mut reca, Sequential, at, 9), Bypass);
    }

    /// Two blocks that are stale after 4 accesses: 1, of the highest class, leaves for the sixth
    /// access though a random block is there.
    #[test]
    fn a_block_long_unused_leaves_whatever_its_class() {
        let (mut reca, at) = (cache(2, 1_000, 2.0), &mut 0);
        assert_eq!(read(&mut reca, Random, at, 9), admit(None));
        assert_eq!(read(&mut reca, Overlapped, at, 1), admit(None));
        for block in 10..14 {
            let expected = if block == 10 { 9 } else { block - 1 };
            assert_eq!(read(&mut reca, Random, at, block), admit(Some(expected)));
        }
        assert_eq!(read(&mut reca, Random, at, 14), admit(Some(1)));
    }
}
