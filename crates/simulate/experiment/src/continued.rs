//! Replays from any moment of a recording: `recording.parquet@300s`, `recordings@14:05`.
//!
//! Requests before the moment are replayed, and only those from it on are counted. Where a live
//! server has written its state beside the recording, the replay continues from that state, and
//! decides as the server did; else it begins with an empty cache, as every other replay.

use crate::ExperimentError;
use crate::case::{Case, ResolvedCase};
use crate::record;
use crate::spec::{Spec, TenantSpec};
use cachewright_cache::{Cache, Engine, SequentialStreams};
use cachewright_control::{Control, DecisionHash, Division, RequestDecider};
use cachewright_partition::{Models, Need, TenantConstants, TenantGoal};
use cachewright_policy::Policy;
use cachewright_stack::deciding::first_difference;
use cachewright_stack::tables::{ExplainedMisses, Shadow};
use cachewright_stack::{DecidingModels, Goal, ServerTenants, Warmup};
use cachewright_system::continued::ContinuedReplay;
use cachewright_system::{Cuts, LaneResult};
use cachewright_trace::recordings::MOMENTS;
use cachewright_trace::{
    DivisionRow, Divisions, Moment, RecordedState, RecordingName, StateBegin, divisions_path,
    recording_at, recordings_in, state_path,
};
use cachewright_types::Nanos;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Why a stack cannot continue from the state of another one.
const ONLY_ITS_STACK: &str = "a replay continues from a server's state with the server's stack \
                              only; without `@` it begins with an empty cache";

/// The recording of a tenant and the moment from which on it counts, if it names one. Errors: no
/// recording of the moment.
pub fn recording_of(tenant: &TenantSpec) -> Result<Option<(PathBuf, Nanos)>, String> {
    match tenant.moment {
        Some(moment) => {
            let found = recording_at(&tenant.path, moment).map_err(|error| error.to_string());
            found.map(Some)
        }
        None => Ok(None),
    }
}

/// Puts the recordings that cover the moments of a stack in the place of folders of them, and the
/// moment in the place of a warm-up. Errors: by the key: no recording of the moment, tenants with
/// others, a warm-up beside it, a closed loop.
pub fn resolve_moments(spec: &mut Spec, folder: &Path) -> Result<(), String> {
    for tenant in &mut spec.tenants {
        // A file of that name is meant as it is.
        let whole = folder.join(&tenant.trace);
        if tenant.moment.is_some() && whole.is_file() {
            (tenant.path, tenant.moment) = (whole, None);
        }
    }
    check_forms(spec)?;
    let Some(first) = spec.tenants.iter().find(|tenant| tenant.moment.is_some()) else {
        return Ok(());
    };
    let key = |index: usize| format!("`tenant[{}].trace`", index + 1);
    let other = |tenant: &TenantSpec| (&tenant.path, tenant.moment) != (&first.path, first.moment);
    if let Some(index) = spec.tenants.iter().position(other) {
        let (found, expected) = (&spec.tenants[index].trace, &first.trace);
        return Err(format!(
            "{}: found `{found}`, expected `{expected}` as of the other tenants: one recording of \
             all continues from a moment",
            key(index)
        ));
    }
    let Some((path, within)) =
        recording_of(first).map_err(|error| format!("{}: {error}", key(0)))?
    else {
        return Ok(());
    };
    if spec.replay.closed() {
        return Err(format!(
            "`replay.loop`: found `closed` with a moment in {}, expected `open`",
            key(0)
        ));
    }
    if !spec.replay.warmup.is_none() {
        let found = spec.replay.warmup.text();
        return Err(format!(
            "`replay.warmup`: found `{found}` with a moment in {}, expected one of them",
            key(0)
        ));
    }
    spec.replay.warmup = Warmup::Until(within);
    for tenant in &mut spec.tenants {
        (tenant.path, tenant.moment) = (path.clone(), Some(Moment::After(within)));
    }
    Ok(())
}

/// Errors: what stands behind the `@` of a recording that is there is no moment.
fn check_forms(spec: &Spec) -> Result<(), String> {
    for (index, tenant) in spec.tenants.iter().enumerate() {
        let Some((_, text)) = tenant.trace.rsplit_once('@') else { continue };
        let name = tenant.path.to_string_lossy().into_owned();
        let before = name.rsplit_once('@').map(|(before, _)| PathBuf::from(before));
        let is_meant = before.is_some_and(|before| before.exists()) && !tenant.path.exists();
        if tenant.moment.is_none() && is_meant {
            return Err(format!(
                "`tenant[{}].trace`: found `{text}` behind `@`, expected {MOMENTS}",
                index + 1
            ));
        }
    }
    Ok(())
}

/// Whether a replay continues from the state of a server whose divisions are known.
pub fn has_divisions(spec: &Spec) -> bool {
    spec.tenants.first().is_some_and(|first| {
        let beside = [state_path(&first.path), divisions_path(&first.path)];
        first.moment.is_some() && beside.iter().all(|path| path.is_file())
    })
}

/// The state beside the recording of which a stack names a moment; nothing where it names none, or
/// none was written. Errors: a file that cannot be read; a stack that cannot continue from it.
pub fn state(spec: &Spec) -> Result<Option<RecordedState>, ExperimentError> {
    let Some(first) = spec.tenants.first().filter(|tenant| tenant.moment.is_some()) else {
        return Ok(None);
    };
    let path = state_path(&first.path);
    if !path.is_file() {
        return Ok(None);
    }
    check_replay(spec).map_err(|(found, expected)| {
        let message = format!(
            "`tenant[1].trace`: found a moment of a recording with its state, and {found}, \
             expected {expected}"
        );
        ExperimentError::spec(&spec.origin, message)
    })?;
    Ok(Some(RecordedState::read(&path)?))
}

/// Errors: what a replay from a state cannot have, and what it is to have.
fn check_replay(spec: &Spec) -> Result<(), (String, &'static str)> {
    let altered = |tenant: &TenantSpec| {
        tenant.time_scale != 1.0
            || tenant.start != Nanos(0)
            || tenant.sample.0 < 1.0
            || tenant.becomes().is_some()
    };
    let found = if spec.stack.is_some() {
        "`[device]`"
    } else if spec.flash.is_some() {
        "`[flash]`"
    } else if spec.replay.causes != ExplainedMisses::None {
        "`replay.causes`"
    } else if spec.replay.divisions.is_some() {
        "`replay.divisions`"
    } else if spec.cache.shadow != Shadow::None {
        "`cache.shadow`"
    } else if spec.replay.unit() {
        "`replay.blocks = \"unit\"`"
    } else if spec.tenants.iter().any(altered) {
        "a tenant with `time_scale`, `start`, `sample` or `operation`"
    } else {
        return Ok(());
    };
    Err((found.to_owned(), "none: the server had none"))
}

impl ResolvedCase<'_> {
    /// Replays the case from the state beside its recording; `progress` takes the requests done.
    /// Errors: another stack than the server's, a damaged state, those of reading; stopped.
    pub fn replay_from(
        &self,
        state: &RecordedState,
        progress: impl FnMut(u64) -> bool,
    ) -> Result<LaneResult, ExperimentError> {
        let tenants = self.server_tenants(state)?;
        let models = self.models_by_number(&tenants);
        self.check_stack(state, &tenants, &models)?;
        let mut decider = self.decider(&tenants, &models)?;
        let refused = |error: String| {
            self.refuse(format!("`tenant[1].trace`: the state beside the recording: {error}"))
        };
        let decided = DecisionHash(state.decided.unwrap_or_default());
        decider.go_on_from(&state.state, decided).map_err(refused)?;
        let mut replay = ContinuedReplay::new(decider, tenants.numbers(), Nanos(state.origin_ns));
        if state.decided.is_some() {
            replay = replay.compared_with(self.next_begin()?);
        }
        if let Some(divisions) = self.divisions_of_server(state, &tenants)? {
            replay = replay.with_divisions(divisions);
        }
        let cuts = self.with_warmup(Cuts::new(self.recording, 0, self.spec.replay.windows));
        let mut workload = record::open(&self.spec)?;
        Ok(replay.replay(&mut workload, &cuts, progress)?)
    }

    /// The divisions beside the recording, on the server's clock, where the partitioner divides by
    /// response times, which a replay does not have. Errors: a file that cannot be read, or is of
    /// another recording.
    fn divisions_of_server(
        &self,
        state: &RecordedState,
        tenants: &ServerTenants,
    ) -> Result<Option<VecDeque<DivisionRow>>, ExperimentError> {
        let path = divisions_path(&self.spec.tenants[0].path);
        if !self.needs.partitioner_needs(Need::Prices) || !path.is_file() {
            return Ok(None);
        }
        let Divisions { head, rows } = Divisions::read(&path)?;
        let names = tenants.names();
        if head.origin_ns != state.origin_ns || head.tenants != names {
            return Err(self.refuse(format!(
                "`tenant[1].trace`: {}: found divisions of {} from {} ns on, expected those of {} \
                 from {} ns on, as the state beside the recording is",
                path.display(),
                head.tenants.join(", "),
                head.origin_ns,
                names.join(", "),
                state.origin_ns
            )));
        }
        let on_clock = |row: DivisionRow| DivisionRow {
            time_ns: row.time_ns.saturating_add(head.origin_ns),
            ..row
        };
        Ok(Some(rows.into_iter().map(on_clock).collect()))
    }

    /// Where the server stood as its next recording began: the state beside that says it. Nothing
    /// where there is none. Errors: a file that cannot be read.
    fn next_begin(&self) -> Result<Option<StateBegin>, ExperimentError> {
        let path = &self.spec.tenants[0].path;
        let name = path.file_name().and_then(|name| RecordingName::parse(name.to_str()?));
        let (Some(name), Some(folder)) = (name, path.parent()) else { return Ok(None) };
        let next = recordings_in(folder).into_iter().filter(|other| *other > name).min();
        let Some(next) = next else { return Ok(None) };
        let beside = state_path(&folder.join(next.to_string()));
        if !beside.is_file() {
            return Ok(None);
        }
        Ok(StateBegin::of_file(&beside)?)
    }

    /// The tenants of the server by their numbers. Errors: the stack has others.
    fn server_tenants(&self, state: &RecordedState) -> Result<ServerTenants, ExperimentError> {
        let names: Vec<&str> = self.spec.tenants.iter().map(|tenant| &*tenant.name).collect();
        let tenants = ServerTenants::of_settings(&state.settings, &names);
        tenants.map_err(|error| self.refuse(format!("{error}: {ONLY_ITS_STACK}")))
    }

    /// The partitioner's models in the order in which the server has its tenants.
    fn models_by_number(&self, tenants: &ServerTenants) -> Models {
        let own = |place: Option<usize>| self.models.each.get(place?).cloned();
        let each = tenants.places().into_iter().filter_map(own).collect();
        Models { each, ..Models::clone(&self.models) }
    }

    /// Errors: a key that decides has another value than in the server's stack.
    fn check_stack(
        &self,
        state: &RecordedState,
        tenants: &ServerTenants,
        models: &Models,
    ) -> Result<(), ExperimentError> {
        let characterizer = self.caching.characterizer.as_ref().map(|(_, model)| model.as_slice());
        let policy = &self.caching.files;
        let models = DecidingModels { partition: models, policy, characterizer };
        let own = self.spec.deciding(self.capacity_blocks, models, tenants);
        let own = own.map_err(|error| self.refuse(error))?;
        match first_difference(&own, &state.settings) {
            Some((key, found, expected)) => Err(self.refuse(format!(
                "`{key}`: found `{found}`, expected `{expected}`, with which the server decided: \
                 {ONLY_ITS_STACK}"
            ))),
            None => Ok(()),
        }
    }

    /// What decides in a server of this stack that has such tenants, before its first decision.
    fn decider(
        &self,
        tenants: &ServerTenants,
        models: &Models,
    ) -> Result<RequestDecider<Box<dyn Policy>>, ExperimentError> {
        let spec = &self.spec;
        let absent = tenants.absent();
        let partitioner = self.partitioner_without(&absent, models)?;
        let mut control = Control::new(partitioner, self.constants(tenants), self.capacity_blocks);
        control.set_absent(absent);
        let quotas = control.first();
        let new = spec.policy_maker().map_err(|error| self.refuse(error))?;
        let make =
            |pool: usize, capacity| self.caching.with_models(new(capacity, spec.pool_seed(pool)));
        let engine = Engine::new(tenants.count(), &quotas, spec.cache.write, make)
            .shrinking(spec.cache.shrink);
        let block_shift = spec.cache.block.0.trailing_zeros();
        let divides = self.needs.partitioner_needs(Need::Interval);
        let signals = crate::job::wanted(self, self.capacity_blocks, tenants.count());
        let interval_ns = spec.replay.interval.0;
        let division = divides.then(|| Division::new(control, signals, interval_ns, block_shift));
        let streams = spec.cache.cutoff().map(SequentialStreams::new);
        Ok(RequestDecider::new(Cache::new(engine, block_shift), division, streams))
    }

    /// The tenants' facts, as far as the stack says them; the state has the others. Nothing is
    /// known of those that were removed.
    fn constants(&self, tenants: &ServerTenants) -> Vec<TenantConstants> {
        let has_goals = self.needs.partitioner_needs(Need::Goal);
        let constants = |place: Option<usize>| {
            let Some(place) = place else { return TenantConstants::default() };
            let tenant = &self.spec.tenants[place];
            TenantConstants {
                weight: tenant.weight,
                schedule: tenant.schedule.clone(),
                sensitive: tenant.sensitive,
                goal: has_goals.then(|| TenantGoal {
                    hit_ratio: self.goals.get(place).copied().flatten(),
                    response: tenant.goal.and_then(Goal::response),
                    profile: Vec::new(),
                }),
                head_curve: None,
            }
        };
        tenants.places().into_iter().map(constants).collect()
    }
}

impl Case {
    /// A number that differs for different states, but for accidents; 0 without one.
    pub fn state_fingerprint(&self) -> u64 {
        let Some(state) = self.state.as_deref() else { return 0 };
        cachewright_model::fingerprint(&state.state) ^ state.origin_ns
    }
}
