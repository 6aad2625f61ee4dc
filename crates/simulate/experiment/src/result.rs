//! Counters to JSON, as the result file has them.
//!
//! For: the shape of `result.json`. Must never know: where it is written. Units are in the names.

use crate::case::Case;
use crate::spec::Front;
use cachewright_curve::Curve;
use cachewright_measure::{Counts, WriteEffect};
use cachewright_partition::Need;
use cachewright_system::closed::Experience;
use cachewright_system::series::State;
use cachewright_system::{LaneResult, Recording};
use serde_json::{Map, Value, json};

/// Points kept of a curve in a result.
pub const CURVE_POINTS: usize = 200;

/// What one case found; `goals` are hit ratios by tenant, judged over the whole run.
pub fn case_json(
    case: &Case,
    capacity_blocks: u32,
    lane: &LaneResult,
    experience: Option<&[Experience]>,
    goals: &[Option<f64>],
) -> Value {
    let effect = case.spec.cache.write.effect();
    let mut total = Counts::default();
    lane.counts.iter().for_each(|counts| total.add(counts));
    let mut all = counts_json(&total, effect);
    all.insert("dirty_blocks".into(), lane.dirty_blocks.into());
    let set = goals.iter().flatten().count();
    if set > 0 {
        all.insert("goals".into(), set.into());
        all.insert("goals_met".into(), goals_met(lane, goals).into());
    }
    if let Some(moved) = &lane.moved {
        all.insert("divisions".into(), moved.divisions.into());
        all.insert("moved_mean".into(), moved.mean.into());
        all.insert("moved_most".into(), moved.most.into());
        all.insert("turns".into(), moved.turns.iter().sum::<u32>().into());
    }
    if let Some(experience) = experience {
        let starts = case.spec.tenants.iter().map(|tenant| tenant.start.0);
        let start_ns = starts.min().unwrap_or(0);
        let whole = experience.iter().fold(Experience::default(), |sum, one| Experience {
            requests: sum.requests + one.requests,
            busy_ns: sum.busy_ns.saturating_add(one.busy_ns),
            finished_ns: sum.finished_ns.max(one.finished_ns),
        });
        add_experience(&mut all, &whole, start_ns);
    }
    let tenants: Vec<Value> = lane
        .counts
        .iter()
        .enumerate()
        .map(|(index, counts)| {
            let mut map = Map::new();
            map.insert("name".into(), case.spec.tenants[index].name.clone().into());
            map.append(&mut counts_json(counts, effect));
            if let Some(goal) = goals.get(index).copied().flatten() {
                map.insert("goal_hit_ratio".into(), goal.into());
                map.insert("goal_met".into(), (counts.hit_ratio() >= goal).into());
            }
            map.append(&mut blocks_json(lane, index));
            if let Some(one) = lane.required.get(index).filter(|_| case.needs(Need::Curve)) {
                map.insert("required_blocks".into(), one.blocks.into());
                map.insert("required_miss_ratio".into(), one.miss_ratio.into());
            }
            if let Some(moved) = &lane.moved {
                map.insert("turns".into(), moved.turns.get(index).copied().into());
            }
            if let Some(one) = experience.and_then(|experience| experience.get(index)) {
                add_experience(&mut map, one, case.spec.tenants[index].start.0);
            }
            Value::Object(map)
        })
        .collect();
    json!({
        "case": case.index,
        "settings": settings_json(case),
        "capacity_blocks": capacity_blocks,
        "block_bytes": case.spec.cache.block.0,
        "total": all,
        "tenants": tenants,
    })
}

/// What a tenant may hold and holds, how the two compared, and the pool it shares.
fn blocks_json(lane: &LaneResult, tenant: usize) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("quota_blocks".into(), lane.quota_blocks[tenant].into());
    map.insert("occupancy_blocks".into(), lane.occupancy_blocks[tenant].into());
    if let Some(states) = states_json(lane, tenant as u32) {
        map.insert("states".into(), states);
    }
    if let Some(pool) = lane.pools.get(tenant) {
        map.insert("pool".into(), (*pool).into());
    }
    map
}

/// Shares of the windows that ended in each state; nothing without a quota of its own.
fn states_json(lane: &LaneResult, tenant: u32) -> Option<Value> {
    let own = lane.rows.iter().filter(|row| row.tenant == tenant && row.state != State::None);
    let states: Vec<State> = own.map(|row| row.state).collect();
    let share = |state: State| {
        let count = states.iter().filter(|found| **found == state).count();
        (state.word().to_owned(), Value::from(count as f64 / states.len() as f64))
    };
    (!states.is_empty()).then(|| State::ALL[1..].iter().map(|state| share(*state)).collect())
}

/// Goals met over the whole run.
fn goals_met(lane: &LaneResult, goals: &[Option<f64>]) -> usize {
    let met = |(counts, goal): (&Counts, &Option<f64>)| {
        goal.is_some_and(|goal| counts.hit_ratio() >= goal)
    };
    lane.counts.iter().zip(goals).filter(|pair| met(*pair)).count()
}

/// The stages' values and what was varied.
pub fn settings_json(case: &Case) -> Value {
    let cache = &case.spec.cache;
    let mut map = Map::new();
    map.insert("cache.policy".into(), cache.policy.name.clone().into());
    map.insert("cache.partition".into(), cache.partition.name.clone().into());
    map.insert("cache.capacity".into(), cache.capacity.to_string().into());
    map.insert("cache.write".into(), cache.write.word().into());
    if let Some(flash) = &case.spec.flash {
        map.insert("flash.separation".into(), flash.separation.name.clone().into());
        map.insert("flash.reclaim".into(), flash.reclaim.name.clone().into());
    }
    if let Some(stack) = &case.spec.stack {
        let backing = match &stack.front {
            Front::Device(cache) => {
                map.insert("device.cache.model".into(), cache.model.clone().into());
                "device.backing.model"
            }
            Front::DataCache(_) => "device.ssd.model",
        };
        map.insert(backing.into(), stack.backing.model.clone().into());
        map.insert("machine.system".into(), stack.system.word().into());
    }
    for (key, value) in &case.varied {
        map.insert(key.clone(), value.clone().into());
    }
    Value::Object(map)
}

fn counts_json(counts: &Counts, effect: WriteEffect) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
    put("accesses", counts.accesses().into());
    put("hits", counts.hits().into());
    put("misses", counts.misses().into());
    put("hit_ratio", counts.hit_ratio().into());
    put("read_accesses", counts.reads.into());
    put("read_hits", counts.read_hits.into());
    put("read_hit_ratio", counts.read_hit_ratio().into());
    put("write_accesses", counts.writes.into());
    put("write_hits", counts.write_hits.into());
    put("requests", counts.requests.into());
    put("request_hits", counts.request_hits.into());
    put("admissions", counts.admissions().into());
    put("bypasses", counts.bypasses().into());
    put("evictions", counts.evictions.into());
    put("writebacks", counts.writebacks.into());
    put("invalidations", counts.invalidations.into());
    put("cache_writes", counts.cache_writes(effect).into());
    put("backing_reads", counts.backing_reads().into());
    put("backing_writes", counts.backing_writes(effect).into());
    map
}

fn add_experience(map: &mut Map<String, Value>, experience: &Experience, start_ns: u64) {
    map.insert("mean_response_ns".into(), experience.mean_response_ns().into());
    map.insert("throughput_per_s".into(), experience.throughput_per_s(start_ns).into());
    map.insert("finished_ns".into(), experience.finished_ns.into());
    map.insert("run_time_ns".into(), experience.finished_ns.saturating_sub(start_ns).into());
}

/// A workload's totals.
pub fn workload_json(recording: &Recording, block_bytes: u64) -> Value {
    let requests: u64 = recording.totals.iter().flat_map(|totals| totals.requests).sum();
    json!({
        "requests": requests,
        "block_accesses": recording.block_accesses(),
        "distinct_blocks": recording.distinct,
        "span_ns": recording.span_ns(),
        "working_set_bytes": u64::from(recording.distinct) * block_bytes,
    })
}

/// A curve's knots, thinned.
pub fn curve_points(curve: &Curve) -> Vec<Value> {
    let thin = curve.resampled(CURVE_POINTS);
    thin.sizes().iter().map(|size| json!([size, thin.miss_ratio(*size)])).collect()
}
