//! RC-RNN: admissions and evictions that imitate an oracle, by a recurrent model per kind of
//! workload.
//!
//! For: a label per request (let in or not; leaves soon, later or late), three LRU queues by it.
//! Source: Ebrahimi et al., "RC-RNN: Reconfigurable Cache Architecture for Storage Systems Using
//! Recurrent Neural Networks" (IEEE TETC), sections 4.2 and 5.2.2. Units: blocks, accesses, bytes.
//!
//! A request is one step of the model, whose state is carried from request to request; its label
//! holds for all its blocks, and is an input of the next step. Readings where the paper leaves some
//! open: a hit enters the queue of its new label (`requeue_hits`), since the model "labels eviction
//! time of requests", hits among them; without the setting it goes to the head of its current
//! queue, which is what one sentence of section 4.2 says. A hit labelled "not cached" is one that
//! the oracle would no longer hold: it enters `soon` (`uncached_soon`). "5x cache size requests"
//! are block accesses, as the labels' durations are; a block that drops enters the queue below at
//! its head; `features` documents the inputs. A request none of whose blocks the cache asks about
//! (writes that go around) is not seen.
//!
//! A characterizer, where there is one, observes every request and answers at the first one of each
//! period; the kind it names is the workload from there on. Another workload: the model of that
//! kind takes over from a zero state. In which queue the new model would have had a resident cannot
//! be known without running it over the requests that brought it in, so a resident changes its
//! queue at its next hit, which the new model labels (and its time there begins anew); those that
//! are not hit leave by the old label. Without a model everything is let in as `mean`: LRU.

pub mod features;
pub mod labels;
pub mod queues;
pub mod replayed;

use crate::characterize::Characterizer;
use crate::registry::{Entry, Need, Registered};
use crate::{Access, Policy, PolicyHooks, RequestInfo, Verdict};
use cachewright_snapshot::Snapshot;
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Seed, TenantId};
use features::{CachingLabel, FeatureStream, StayClass};
use labels::{LabelModels, LabelSource};
use queues::ResidencyQueues;

cachewright_types::declare! {
    /// What a label does to a block that hits.
    pub struct RcRnnSettings {
        /// whether a hit enters the queue of its own label, or stays in the queue that it is in
        requeue_hits: bool = true, "true or false";
        /// whether a hit labelled "not cached" enters `soon`, or stays in the queue that it is in
        uncached_soon: bool = true, "true or false";
        /// time to load another model, while misses go around and hits keep their queue
        load_ms: f64 = 0.0, "ms", 0.0 ..= 1e9;
    }
}

/// Queues by the labels of models.
#[derive(Snapshot)]
pub struct RcRnn {
    #[snapshot(settings)]
    settings: RcRnnSettings,
    queues: ResidencyQueues,
    stream: FeatureStream,
    capacity: u32,
    models: LabelModels,
    #[snapshot(each)]
    judge: Option<Judge>,
    /// A request that has not been labelled yet.
    request: Option<RequestInfo>,
    /// Of the request whose blocks are accessed.
    label: CachingLabel,
    /// The previous request's label, an input of the model.
    previous: CachingLabel,
}

impl Registered for RcRnn {
    type Settings = RcRnnSettings;
    const ENTRY: Entry = Entry {
        name: "rc-rnn",
        doc: "a recurrent model labels requests: bypass, or stay soon, mean or late in lru queues",
        source: "Ebrahimi et al., RC-RNN (IEEE TETC), section 4.2",
        needs: &[Need::Requests, Need::Model],
    };

    fn new(capacity_blocks: u32, settings: &RcRnnSettings, _: Seed) -> Self {
        RcRnn {
            settings: settings.clone(),
            queues: ResidencyQueues::new(capacity_blocks),
            stream: FeatureStream::new(capacity_blocks),
            capacity: capacity_blocks,
            models: LabelModels::default(),
            judge: None,
            request: None,
            label: CachingLabel { cached: true, duration: StayClass::Mean },
            previous: CachingLabel::default(),
        }
    }
}

impl RcRnn {
    /// How long loading another model takes.
    fn load_ns(&self) -> u64 {
        (self.settings.load_ms * 1e6) as u64
    }

    /// Labels the present request, which begins with this block.
    fn decide(&mut self, request: &RequestInfo, first: BlockId) {
        if self.models.loads() {
            self.label.cached = false;
            return;
        }
        let Some((labeller, requests)) = self.models.current() else { return };
        let label = match &mut labeller.source {
            LabelSource::Table(table) => table.label(requests),
            LabelSource::Network(network) => {
                let set = network.set();
                let features = self.stream.request(set, request, first, self.previous);
                network.step(&features[..set.features().len()])
            }
        };
        if let Some(label) = label {
            (self.label, self.previous) = (label, label);
        }
    }

    /// A hit, of a block that another model may have queued.
    #[inline(always)]
    fn hit(&mut self, block: BlockId) {
        if self.models.loads() {
            return self.queues.hit(block);
        }
        let same = self.queues.model(block) == self.models.changes();
        let requeues = self.settings.requeue_hits;
        match self.label {
            CachingLabel { cached: true, duration } if requeues || !same => {
                self.requeue(block, duration)
            }
            CachingLabel { cached: false, .. } if requeues && self.settings.uncached_soon => {
                self.requeue(block, StayClass::Soon);
            }
            CachingLabel { duration, .. } if !same => self.requeue(block, duration),
            _ => self.queues.hit(block),
        }
    }

    #[inline(always)]
    fn insert(&mut self, block: BlockId, duration: StayClass) -> Verdict {
        let full = self.queues.held() >= self.capacity;
        let evicted = if full { self.queues.victim() } else { None };
        if let Some(victim) = evicted {
            self.queues.leave(victim);
        }
        self.queues.enter(block, duration, self.models.changes());
        Verdict::Admit { evicted }
    }

    fn requeue(&mut self, block: BlockId, duration: StayClass) {
        self.queues.leave(block);
        self.queues.enter(block, duration, self.models.changes());
    }
}

impl PolicyHooks for RcRnn {
    fn on_request(&mut self, request: &RequestInfo) {
        self.models.pass(request.time_ns);
        if let Some(kind) = self.judge.as_mut().and_then(|judge| judge.observe(request)) {
            self.set_workload(&kind);
        }
        self.request = Some(*request);
    }

    fn characterize(&mut self, characterizer: Box<dyn Characterizer>, every_ns: u64) {
        self.judge = Some(Judge::new(characterizer, every_ns));
    }

    fn load_models(&mut self, models: &[(String, Vec<u8>)]) -> Result<(), String> {
        self.models.load(models, self.load_ns())
    }

    fn set_workload(&mut self, kind: &str) {
        self.models.change(kind, self.load_ns());
    }
}

impl Policy for RcRnn {
    fn access(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if let Some(request) = self.request.take() {
            self.decide(&request, block);
        }
        self.stream.memory_mut().note(block, access.write);
        self.queues.pass();
        if self.queues.contains(block) {
            self.hit(block);
            return Verdict::Hit;
        }
        if !self.label.cached || self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.insert(block, self.label.duration)
    }

    fn contains(&self, block: BlockId) -> bool {
        self.queues.contains(block)
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.queues.contains(block) || self.stream.memory().knows(block)
    }

    fn max_tracked(&self) -> u64 {
        u64::from(self.capacity) + self.stream.memory().limit() + 1
    }

    fn adopt(&mut self, block: BlockId, _: bool) -> Verdict {
        if self.capacity == 0 { Verdict::Bypass } else { self.insert(block, StayClass::Mean) }
    }

    fn len(&self) -> u32 {
        self.queues.held()
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.capacity = capacity_blocks;
        while self.queues.held() > capacity_blocks {
            let Some(victim) = self.queues.victim() else { break };
            self.queues.leave(victim);
            evicted.push(victim);
        }
        self.queues.resize(capacity_blocks);
        self.stream.memory_mut().resize(capacity_blocks);
    }

    fn remove(&mut self, block: BlockId) -> bool {
        self.stream.memory_mut().forget(block);
        let held = self.queues.contains(block);
        if held {
            self.queues.leave(block);
        }
        held
    }

    fn reserve_ids(&mut self, count: usize) {
        self.queues.reserve_ids(count);
        self.stream.memory_mut().reserve_ids(count);
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.queues.touch(block);
        self.stream.memory().touch(block);
    }

    fn audit(&self) -> Result<(), String> {
        self.queues.audit()?;
        self.stream.memory().audit()?;
        if self.len() <= self.capacity {
            return Ok(());
        }
        Err(format!("{} blocks in a cache of {}", self.len(), self.capacity))
    }
}

/// A characterizer and when it answers next.
///
/// Source: Ebrahimi et al., RC-RNN, section 4.2: once a minute, on the last requests.
#[derive(Snapshot)]
struct Judge {
    characterizer: Box<dyn Characterizer>,
    #[snapshot(settings)]
    every_ns: u64,
    next_ns: u64,
}

impl Judge {
    /// One that answers for the first time when `every_ns` have gone by.
    pub fn new(characterizer: Box<dyn Characterizer>, every_ns: u64) -> Judge {
        Judge { characterizer, every_ns, next_ns: every_ns }
    }

    /// Takes in a request. The kind of workload, when it is time and the characterizer knows: of
    /// the requests before this one.
    pub fn observe(&mut self, request: &RequestInfo) -> Option<String> {
        let mut kind = None;
        if request.time_ns >= self.next_ns {
            let periods = request.time_ns / self.every_ns.max(1);
            self.next_ns = periods.saturating_add(1).saturating_mul(self.every_ns);
            let judged = self.characterizer.classify();
            kind = judged.and_then(|found| self.characterizer.kinds().get(found.kind).cloned());
        }
        self.characterizer.observe(&Request {
            time: Nanos(request.time_ns),
            tenant: TenantId(0),
            op: if request.write { Op::Write } else { Op::Read },
            offset: Bytes(request.offset),
            length: Bytes(request.length),
        });
        kind
    }
}

#[cfg(test)]
mod tests;
