//! The cache divided anew while it serves.
//!
//! For: quotas that follow the requests, as in a replay of them. Must never know: which partitioner
//! divides, where its settings come from. Units: nanoseconds of the decision clock, blocks.
//!
//! What a division takes away leaves at once, or as other tenants need the room. The steps are
//! carried out like those of any other decision: clean blocks are dropped, dirty ones are written
//! back first.

use super::server::{BlockServer, State};
use crate::log::format::GROUP_RECORDS;
use cachewright_cache::{Plan, SequentialCutoff, Shrink};
pub use cachewright_control::Division;
use cachewright_control::{HourlyCurves, KeptCurve, Models};
use cachewright_types::TenantId;

/// Most blocks that a division writes back together.
const PIECE_BLOCKS: usize = 16;

impl BlockServer {
    /// Divides the cache anew from now on. The cache has the first quotas of the division.
    pub fn divide_by(&mut self, division: Division) {
        self.state().decisions.divide_by(division);
    }

    /// Lets requests of long sequential streams go past the cache from now on, or none.
    pub fn cut_off(&mut self, cutoff: Option<SequentialCutoff>) {
        self.state().decisions.cut_off(cutoff);
    }

    /// Keeps curves of the last hour from `now_ns` on, or none.
    pub fn keep_curves(&mut self, now_ns: u64, curves: Option<HourlyCurves>) {
        self.state().decisions.keep_curves(now_ns, curves);
    }

    /// Goes on with the hour of curves. To be called some times a minute.
    pub fn tick_curves(&mut self, now_ns: u64) {
        self.state().decisions.tick_curves(now_ns);
    }

    /// The policy and the curves of the last hour by tenant, where they are kept. Those that
    /// divisions are made from end with the last division.
    pub fn curves(&mut self, now_ns: u64) -> Option<(String, Vec<KeptCurve>)> {
        let mut state = self.state();
        let (policy, curves) = state.decisions.curves(now_ns)?;
        Some((policy.to_owned(), curves))
    }

    /// Gives the policies of all pools, and the partitioner, other trained models, which count from
    /// the next decision on, and the next division. None of a kind change nothing. Errors: a model
    /// is refused, in words; policies and partitioner go on by those before.
    pub fn load_models(
        &mut self,
        policy: &[(String, Vec<u8>)],
        partition: &Models,
    ) -> Result<(), String> {
        self.state().decisions.load_models(policy, partition)
    }
}

impl State {
    /// Divides as often as is due, where the log has space for the records of what leaves. False if
    /// it has not: no request is to be decided before. Where tenants shrink as needed none leaves.
    pub(super) fn divide_due(&mut self) -> bool {
        // A reload may have put off the division that waited.
        self.space.division_waits = false;
        while self.decisions.division_is_due(self.now_ns) {
            let takes = self.decisions.decider.cache.engine().shrink() == Shrink::AtOnce;
            let mut pools = 0..self.content.log.set().pools();
            // What leaves makes space, so that it leaves where nothing else can.
            let lacks_space =
                |pool| !self.has_space(pool, self.groups_of(pool)) && !self.is_stuck(pool);
            self.space.division_waits = takes && pools.any(lacks_space);
            if self.space.division_waits {
                return false;
            }
            self.divide();
        }
        true
    }

    /// Groups that take a record of each block that the tenants of a pool of devices hold.
    fn groups_of(&self, pool: usize) -> u64 {
        let (engine, tenants) =
            (self.decisions.decider.cache.engine(), self.volumes.tenants().count());
        let blocks = self.content.streams.layout().quota(engine, tenants, pool);
        blocks / GROUP_RECORDS as u64 + 1
    }

    /// Divides as often as is due before what is decided now.
    pub(super) fn divide_before(&mut self) {
        while self.decisions.division_is_due(self.now_ns) {
            self.divide();
        }
    }

    /// Ends an interval.
    fn divide(&mut self) {
        self.content.cleaner.obstacles.note_change();
        let plan = self.decisions.divide();
        self.carry_in_pieces(plan);
    }

    /// Carries out a plan that takes many blocks away, as some decisions.
    pub(super) fn carry_in_pieces(&mut self, plan: Plan) {
        for moves in plan.moves.chunks(PIECE_BLOCKS) {
            self.decisions.begin();
            let piece = Plan { moves: moves.to_vec(), all_hit: false };
            self.carry_alone(TenantId(0), piece);
        }
        self.decisions.give_back(plan);
        self.decisions.give_ids_back(&mut self.content.copies);
    }
}
