//! A replica of what decides, on a thread beside the server: snapshots are taken of it.
//!
//! To save a million blocks takes 27 to 850 ms, in which nothing could be decided. Decisions depend
//! on nothing but what was decided before, so the server hands each step that changes its cache,
//! in order, to a second one, which carries it out as well. Whenever a snapshot is wanted, both
//! stand at the same step; it is the second one that pauses. The price is its memory, and the
//! processor time of the decisions once more. Where the two differ, by a fault, or where the
//! replica is too far behind, there is a reason in the place of the snapshot.

use crate::io::worker::{Items, Worker, run_behind_others};
use cachewright_cache::{Plan, Quotas, SequentialCutoff, SequentialStreams, Shrink};
use cachewright_control::{AnswerTimes, DecisionHash, Division, Models, RequestDecider};
use cachewright_policy::Policy;
use cachewright_snapshot::saved;
use cachewright_types::measure::{Counts, LossReason};
use cachewright_types::{BlockId, Op, Request, TenantId};
use std::sync::Arc;

/// What decides in a server.
pub type LiveDecider = RequestDecider<Box<dyn Policy>>;

/// Makes the policy of a pool of so many blocks.
pub type PolicySource = Arc<dyn Fn(usize, u32) -> Box<dyn Policy> + Send + Sync>;

/// Saves the replica, or gets the reason why there is none; called on the replica's thread.
pub type SavesDecider = Box<dyn FnOnce(Result<&LiveDecider, String>) + Send>;

/// Steps that are handed on together.
const BATCH_STEPS: usize = 1024;
/// Batches that may wait for the replica, as while it saves: two million steps, 84 MB.
const WAITING_BATCHES: usize = 2048;
const _: () = assert!(size_of::<DeciderStep>() <= 40, "what is rare is boxed");

/// A step that changes what decides, or what it measures.
pub(super) enum DeciderStep {
    /// A request is decided.
    Request(Request),
    /// A request that was carried out otherwise is measured.
    Measure(Request),
    BackgroundOps(TenantId),
    Divide,
    Answered(TenantId, Op, AnswerTimes),
    Clean {
        pool: usize,
        from: BlockId,
        max_blocks: u32,
    },
    StillDirty {
        tenant: TenantId,
        number: u64,
    },
    Forget {
        tenant: TenantId,
        number: u64,
        reason: LossReason,
    },
    Remove {
        tenant: TenantId,
        from: BlockId,
        max_ids: u32,
    },
    /// Ids that are free are given back.
    Compact,
    CutOff(Option<SequentialCutoff>),
    LoadModels {
        policy: Vec<(String, Vec<u8>)>,
        partition: Box<Models>,
    },
    AddTenant {
        capacity_blocks: u32,
        make: PolicySource,
    },
    SetQuotas {
        quotas: Box<Quotas>,
        shrink: Shrink,
        division: Option<Box<Division>>,
    },
    ReplacePolicies(PolicySource),
}

impl DeciderStep {
    fn carry_out(self, decider: &mut LiveDecider, plan: &mut Plan) {
        let cache = &mut decider.cache;
        match self {
            DeciderStep::Request(request) => decider.request(&request, plan),
            DeciderStep::Measure(request) => decider.measure(&request),
            DeciderStep::BackgroundOps(tenant) => decider.background_ops(tenant, plan),
            DeciderStep::Divide => {
                decider.divide(None, plan);
            }
            DeciderStep::Answered(tenant, op, times) => {
                let division = decider.division.iter_mut();
                division.for_each(|division| division.answered(tenant, op, times));
            }
            DeciderStep::Clean { pool, from, max_blocks } => {
                cache.clean_some(pool, from, max_blocks, plan);
            }
            DeciderStep::StillDirty { tenant, number } => {
                cache.adopt(tenant, number, true, plan);
            }
            DeciderStep::Forget { tenant, number, reason } => {
                cache.forget(tenant, number, reason);
            }
            DeciderStep::Remove { tenant, from, max_ids } => {
                cache.remove_some(tenant, from, max_ids, plan);
            }
            DeciderStep::Compact => {
                cache.compact(&mut |_, _, _| {});
            }
            DeciderStep::CutOff(cutoff) => decider.streams = cutoff.map(SequentialStreams::new),
            DeciderStep::LoadModels { policy, partition } => {
                // A refusal is told by the server, which gets it as well.
                let _ = decider.load_models(&policy, &partition);
            }
            DeciderStep::AddTenant { capacity_blocks, make } => {
                cache.add_tenant(capacity_blocks, |pool, blocks| make(pool, blocks));
            }
            DeciderStep::SetQuotas { quotas, shrink, division } => {
                cache.divide_otherwise(&quotas, shrink, plan);
                decider.division = division.map(|division| *division);
            }
            DeciderStep::ReplacePolicies(make) => {
                cache.replace_policies(plan, |pool, blocks| make(pool, blocks));
            }
        }
    }
}

/// Where a cache stands: equal for two that have taken the same steps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Standing {
    decided: DecisionHash,
    dirty_blocks: u64,
    counts: Vec<Counts>,
}

impl Standing {
    fn of(decider: &LiveDecider) -> Standing {
        let engine = decider.cache.engine();
        Standing {
            decided: decider.decided(),
            dirty_blocks: engine.dirty_blocks(),
            counts: engine.all_counts().to_vec(),
        }
    }

    /// That it stands elsewhere than the server.
    fn differs_from(&self, server: &Standing) -> String {
        let (decided, dirty) = (self.decided.0, self.dirty_blocks);
        let mut counts = self.counts.iter().zip(&server.counts);
        let tenant = counts.position(|(own, counts)| own != counts);
        let tenant = tenant.map(|tenant| format!(", and other counts of tenant {}", tenant + 1));
        format!(
            "found decisions {decided:016x} and {dirty} dirty blocks in the cache that takes the \
             server's steps{}, expected the server's {:016x} and {}; this is a fault of the \
             server, which goes on",
            tenant.unwrap_or_default(),
            server.decided.0,
            server.dirty_blocks
        )
    }
}

enum ReplicaItem {
    Steps(Vec<DeciderStep>),
    /// A snapshot is wanted of a cache that stands there.
    Save(Standing, SavesDecider),
}

/// The replica, as its server sees it.
pub(super) struct DeciderReplica {
    worker: Worker<ReplicaItem, ()>,
    /// Steps that are not handed on yet.
    steps: Vec<DeciderStep>,
}

impl DeciderReplica {
    /// Begins a replica of `decider`, restored into `empty`, which is made from the same settings.
    /// Errors: something cannot be saved; the system's.
    pub fn begin(decider: &LiveDecider, mut empty: LiveDecider) -> Result<DeciderReplica, String> {
        let snapshot = saved(decider).map_err(|error| error.to_string())?;
        empty.go_on_from(&snapshot, decider.decided())?;
        let follow = move |items| follow(empty, items);
        let worker = Worker::spawn("replica", WAITING_BATCHES, follow);
        let worker = worker.map_err(|error| format!("a thread for it: {error}"))?;
        Ok(DeciderReplica { worker, steps: Vec::with_capacity(BATCH_STEPS) })
    }

    /// The server has taken a step. False if the replica is lost: it is too far behind, or has
    /// ended because it differs.
    pub fn step(&mut self, step: DeciderStep) -> bool {
        self.steps.push(step);
        self.steps.len() < BATCH_STEPS || self.hand_on()
    }

    /// Has `saves` save the replica where `decider` stands. False if the replica is lost.
    pub fn save(&mut self, decider: &LiveDecider, saves: SavesDecider) -> bool {
        let item = ReplicaItem::Save(Standing::of(decider), saves);
        self.hand_on() && self.worker.queue().offer(item).is_ok()
    }

    /// Waits until all snapshots that were wanted are taken.
    pub fn finish(self) {
        self.worker.finish();
    }

    fn hand_on(&mut self) -> bool {
        let next = Vec::with_capacity(BATCH_STEPS);
        let steps = std::mem::replace(&mut self.steps, next);
        self.worker.queue().offer(ReplicaItem::Steps(steps)).is_ok()
    }
}

/// What the thread does: it ends when it differs, so that nothing more is handed to it.
fn follow(mut decider: LiveDecider, items: Items<ReplicaItem>) {
    // It may be behind the server, which must not wait for a processor.
    run_behind_others();
    let mut plan = Plan::default();
    for item in items {
        match item {
            ReplicaItem::Steps(steps) => {
                steps.into_iter().for_each(|step| step.carry_out(&mut decider, &mut plan));
            }
            ReplicaItem::Save(expected, saves) => {
                let found = Standing::of(&decider);
                if found != expected {
                    return saves(Err(found.differs_from(&expected)));
                }
                saves(Ok(&decider));
            }
        }
    }
}
