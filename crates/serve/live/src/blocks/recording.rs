//! What is recorded of the decisions of a server.
//!
//! For: a served cache that is to be replayed. Must never know: where a recording goes. Units:
//! requests. A replay from an empty cache decides as the server did, if the server began with an
//! empty cache and recorded from its first decision; a replay that continues from a snapshot taken
//! as the recording began decides as the server did in any case.

use super::replica::LiveDecider;
use super::server::BlockServer;
use crate::io::Io;
use crate::record::{RecordSink, RecordedRequests, RequestRecorder};
use cachewright_control::DecisionHash;
use cachewright_trace::{DivisionRow, StateBegin};
use cachewright_types::Nanos;
use std::cell::Ref;

impl BlockServer {
    /// Records what is decided from the last decision on, beginning with the quotas where the cache
    /// is divided while it serves; a recording under way ends.
    pub fn record(&mut self, sink: Box<dyn RecordSink>) {
        let mut state = self.state();
        // A replay knows no volumes that were removed, and is to read where a recording ends.
        let tenant = state.volumes.first_served();
        let decisions = &mut state.decisions;
        decisions.recorder.take().map(RequestRecorder::finish);
        let origin = decisions.last_time();
        let mut recorder = RequestRecorder::new(sink, origin, tenant);
        let engine = decisions.decider.cache.engine();
        let division = decisions.decider.division.as_ref();
        if let Some(quotas) = division.and_then(|division| division.quotas(engine)) {
            recorder.divided(DivisionRow { time_ns: origin.0, quotas });
        }
        decisions.recorder = Some(recorder);
    }

    /// Whether snapshots of what decides can be taken without a pause.
    pub fn has_replica(&self) -> bool {
        self.look().decisions.has_replica()
    }

    /// Has snapshots of what decides taken without a pause from now on: a replica of it, restored
    /// into an `empty` one of the same settings, takes its steps on a thread. Nothing is decided
    /// until it is there. Errors: a policy or a division that cannot be saved.
    pub fn replicate(&mut self, empty: LiveDecider) -> Result<(), String> {
        self.state().decisions.replicate(empty)
    }

    /// Hands `saves` a replica of what decides as it stands after the last decision, later and on
    /// another thread, or the reason why there is none. False without a replica: it has not begun,
    /// or has ended because it was too far behind or differed.
    pub fn save_decider(
        &mut self,
        saves: impl FnOnce(Result<&LiveDecider, String>) + Send + 'static,
    ) -> bool {
        self.state().decisions.save_replica(Box::new(saves))
    }

    /// Takes no more snapshots; those that are being taken are handed on later.
    pub fn drop_replica(&mut self) {
        self.state().decisions.drop_replica();
    }

    /// Takes no more snapshots; waits for those that are being taken.
    pub fn end_replica(&mut self) {
        self.state().decisions.end_replica();
    }

    /// What decides, to be saved while nothing is decided.
    pub fn decider(&self) -> Ref<'_, LiveDecider> {
        Ref::map(self.look(), |state| &state.decisions.decider)
    }

    /// Where the server stands after the last decision, as a recording that begins there says it.
    pub fn state_begin(&self) -> StateBegin {
        let DecisionHash(decided) = self.look().decisions.decided();
        StateBegin { origin_ns: self.last_decision().0, decided }
    }

    /// The time of the last decision, at which a recording that begins now has its time 0.
    pub fn last_decision(&self) -> Nanos {
        self.look().decisions.last_time()
    }

    /// The time that a decision made at `now_ns` would have.
    pub fn next_decision(&self, now_ns: u64) -> Nanos {
        self.look().decisions.next_time(now_ns)
    }

    /// What is recorded so far, if anything is to be.
    pub fn recorded(&self) -> Option<RecordedRequests> {
        self.look().decisions.recorder.as_ref().map(RequestRecorder::recorded)
    }

    /// Has what is recorded by `now_ns` kept, so that it outlives a kill: at most so often. To be
    /// called some times a second.
    pub fn keep_recording(&mut self, now_ns: u64, every_ns: u64) {
        self.state().decisions.keep_recording(now_ns, every_ns);
    }

    /// Ends a recording; what was decided by now is handed on.
    pub fn end_recording(&mut self, io: &mut impl Io) -> Option<RecordedRequests> {
        let mut state = self.state();
        state.now_ns = io.now_ns();
        state.divide_before();
        let (now_ns, tenant) = (state.now_ns, state.volumes.first_served());
        let recorded = state.decisions.end_recording(now_ns, tenant);
        if recorded.is_some() {
            // A replay ends with the divisions that are due right behind its last request.
            state.divide_before();
        }
        drop(state);
        self.settle();
        self.submit(io);
        recorded
    }
}
