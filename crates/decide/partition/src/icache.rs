//! `icache`: partitions for demands that a model per tenant predicts.
//!
//! A model predicts maximum benefit points (MBP) and optimal allocation points (OAP); Algorithm 1
//! divides by them. Source: Li, Sun, Qin, "iCache" (TCAD 2025), sections IV-C to IV-F. Units:
//! blocks; demands in granules, which are equal parts of the cache.
//!
//! What the paper leaves open: the cache is divided equally until every model has seen a full
//! window. In abundance the paper leaves blocks idle, and so does `idle`; without it quotas sum to
//! the cache. The idle blocks go to the tenant whose predicted OAP (before rounding) rose most
//! since the last interval, the earlier tenant among equals. An OAP before the first prediction
//! counts as 0. `spread` divides the idle blocks among all tenants in proportion to OAP. A
//! prediction out of range is clamped.

use crate::network::TrainedNetwork;
use crate::registry::{Entry, Need, Registered};
use crate::{CacheDivision, Models, Partitioner, TenantView, share};
use cachewright_curve::signal::{FEATURES, StepCounts};
use cachewright_model::fingerprint;
use cachewright_snapshot::{
    Snapshot, SnapshotError, SnapshotReader, SnapshotValue, SnapshotWriter,
};
use cachewright_types::{Seed, declare};
use std::collections::VecDeque;

declare! {
    /// Settings of `icache`.
    pub struct ICacheSettings {
        /// granules of the cache; the models' labels must have the same number
        granules: u32 = 10, "granules", 1 ..= 1000;
        /// steps of an interval; in the paper 180 seconds
        steps_per_interval: u32 = 180, "steps", 1 ..= 100000;
        /// latest steps that a model reads, as in its training
        window_steps: u32 = 180, "steps", 1 ..= 100000;
        /// keep recurrent state from step to step; otherwise start each window from zero
        carried: bool = false, "";
        /// divide granules beyond all demands by OAP; otherwise to the fastest-growing tenant
        spread: bool = false, "";
        /// leave granules beyond all demands to no tenant, as published; goes before `spread`
        idle: bool = false, "";
        /// reserve of each tenant, in granules divided by the number of tenants
        reserve: f64 = 1.0, "granules / tenants", 0.0 ..= 1000.0;
    }
}

/// Partitions by predicted demand.
#[derive(Clone, Debug, Snapshot)]
pub struct ICache {
    #[snapshot(settings)]
    settings: ICacheSettings,
    #[snapshot(settings)]
    tenants: usize,
    /// One per tenant; empty without models.
    #[snapshot(each)]
    predictors: Vec<Predictor>,
    /// OAPs of the last division, in shares of the cache; 0 before.
    last_oaps: Vec<f64>,
    demands: Vec<GranuleDemand>,
    resources: Option<ResourceState>,
}

impl Registered for ICache {
    type Settings = ICacheSettings;
    const ENTRY: Entry = Entry {
        name: "icache",
        doc: "demands in response time predicted by a model per tenant, divided by Algorithm 1",
        source: "Li, Sun, Qin, iCache (TCAD 2025), sections IV-D to IV-F",
        needs: &[Need::Interval, Need::Model, Need::Features],
    };

    fn new(settings: &ICacheSettings, tenants: usize, _: Seed) -> Self {
        ICache {
            settings: settings.clone(),
            tenants,
            predictors: Vec::new(),
            last_oaps: vec![0.0; tenants],
            demands: Vec::new(),
            resources: None,
        }
    }
}

impl ICache {
    /// The state of the cache at the last division; nothing while the cache is divided equally.
    pub fn resources(&self) -> Option<ResourceState> {
        self.resources
    }

    /// The predicted demands at the last division; empty while the cache is divided equally.
    pub fn demands(&self) -> &[GranuleDemand] {
        &self.demands
    }

    /// The tenant whose OAP rose most; keeps the OAPs for the next call.
    fn fastest_growing(&mut self, oaps: Vec<f64>) -> usize {
        let rise = |index: usize| oaps[index] - self.last_oaps.get(index).copied().unwrap_or(0.0);
        let mut fastest = 0;
        for index in 1..oaps.len() {
            if rise(index) > rise(fastest) {
                fastest = index;
            }
        }
        self.last_oaps = oaps;
        fastest
    }
}

impl Partitioner for ICache {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        self.predictors.iter_mut().for_each(Predictor::begin_interval);
        let both = self.predictors.iter_mut().zip(tenants);
        both.for_each(|(predictor, tenant)| {
            predictor.learn(tenant.signals.steps.unwrap_or_default())
        });
        let predictions: Option<Vec<_>> =
            self.predictors.iter().map(Predictor::prediction).collect();
        let complete = |all: &Vec<_>| !all.is_empty() && all.len() == tenants.len();
        let Some(predictions) = predictions.filter(complete) else {
            (self.resources, self.demands) = (None, Vec::new());
            return CacheDivision::PerTenant(share::equal(total_blocks, tenants.len()));
        };
        let granules = self.settings.granules;
        let demand = |prediction: &DemandPrediction| {
            GranuleDemand::rounded(prediction.mbp_share, prediction.oap_share, granules)
        };
        self.demands = predictions.iter().map(demand).collect();
        // Ends of the range for what lies outside, 0 for what is not a number.
        let clamped = |share: f64| share.clamp(0.0, 1.0).max(0.0);
        let oaps = predictions.iter().map(|p| clamped(p.oap_share).max(clamped(p.mbp_share)));
        let fastest = self.fastest_growing(oaps.collect());
        let remains = match (self.settings.idle, self.settings.spread) {
            (true, _) => SurplusRule::Idle,
            (false, true) => SurplusRule::Spread,
            (false, false) => SurplusRule::To(fastest),
        };
        let (state, mut quotas) = allocate(&self.demands, granules, total_blocks, remains);
        self.resources = Some(state);
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        share::raise(&mut quotas, &vec![floor; tenants.len()]);
        CacheDivision::PerTenant(quotas)
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        let granule = f64::from(total_blocks) / f64::from(self.settings.granules);
        let reserve_blocks = (self.settings.reserve * granule / tenants.max(1) as f64).ceil();
        share::feasible_floor(reserve_blocks as u32, tenants, total_blocks)
    }

    fn learn(&mut self, models: &Models) -> Result<(), String> {
        let (actual, expected) = (models.each.len(), self.tenants);
        if actual != expected {
            return Err(format!(
                "found {actual} models, expected one for each of {expected} tenants"
            ));
        }
        let ICacheSettings { window_steps, granules, carried, .. } = self.settings;
        let looks = ModelInput { window_steps, granules, carried };
        let none = Vec::new();
        let load = |(place, bytes): (usize, &Vec<u8>)| {
            let refuse = |error| format!("model {} of {expected}: {error}", place + 1);
            let mut predictor = Predictor::load(bytes, looks).map_err(refuse)?;
            for (number, bytes) in models.later.get(place).unwrap_or(&none).iter().enumerate() {
                let update = |error| refuse(format!("update {}: {error}", number + 1));
                predictor.load_later(bytes).map_err(update)?;
            }
            Ok(predictor)
        };
        let mut predictors =
            models.each.iter().enumerate().map(load).collect::<Result<Vec<Predictor>, String>>()?;
        for (predictor, before) in predictors.iter_mut().zip(std::mem::take(&mut self.predictors)) {
            predictor.succeed(before);
        }
        self.predictors = predictors;
        Ok(())
    }

    fn steps(&self) -> u32 {
        self.settings.steps_per_interval
    }
}

/// Demand of one tenant in granules: 1 <= `mbp` <= `oap` <= all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SnapshotValue)]
pub struct GranuleDemand {
    /// Maximum benefit point: the size whose last granule shortened responses most.
    pub mbp: u32,
    /// Optimal allocation point: the size from which more granules gain too little.
    pub oap: u32,
}

impl GranuleDemand {
    /// Rounds shares of the cache to whole granules: at least one, at most `granules`, OAP at least
    /// MBP. NaN becomes one granule, as for a tenant that no cache helps.
    pub fn rounded(mbp_share: f64, oap_share: f64, granules: u32) -> GranuleDemand {
        let all = granules.max(1);
        let round = |share: f64| (share * f64::from(all)).round().max(1.0).min(f64::from(all));
        let mbp = round(mbp_share) as u32;
        GranuleDemand { mbp, oap: mbp.max(round(oap_share) as u32) }
    }
}

/// How demands compare with the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SnapshotValue)]
pub enum ResourceState {
    /// All OAPs fit.
    Abundant,
    /// All MBPs fit, but not all OAPs.
    Strained,
    /// Not even all MBPs fit.
    Constrained,
}

impl ResourceState {
    /// The state of a cache of `granules`.
    pub fn classify(demands: &[GranuleDemand], granules: u32) -> ResourceState {
        let sum =
            |part: fn(&GranuleDemand) -> u32| demands.iter().map(part).map(u64::from).sum::<u64>();
        if sum(|demand| demand.oap) <= u64::from(granules) {
            ResourceState::Abundant
        } else if sum(|demand| demand.mbp) <= u64::from(granules) {
            ResourceState::Strained
        } else {
            ResourceState::Constrained
        }
    }
}

/// The division of granules beyond all demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurplusRule {
    /// All to this tenant.
    To(usize),
    /// To all tenants, in proportion to OAP.
    Spread,
    /// To no tenant.
    Idle,
}

/// Divides `total_blocks` of `granules` granules by the state of the cache.
pub fn allocate(
    demands: &[GranuleDemand],
    granules: u32,
    total_blocks: u32,
    remains: SurplusRule,
) -> (ResourceState, Vec<u32>) {
    let state = ResourceState::classify(demands, granules);
    let parts = |part: fn(&GranuleDemand) -> u32| -> Vec<f64> {
        demands.iter().map(|demand| f64::from(part(demand))).collect()
    };
    let (mbps, oaps) = (parts(|demand| demand.mbp), parts(|demand| demand.oap));
    let (sum_mbp, sum_oap) = (mbps.iter().sum::<f64>(), oaps.iter().sum::<f64>());
    let quotas = match (state, remains) {
        (ResourceState::Abundant, SurplusRule::Spread) => share::proportional(total_blocks, &oaps),
        (ResourceState::Abundant, SurplusRule::To(_) | SurplusRule::Idle) => {
            let idle = f64::from(granules) - sum_oap;
            let weights: Vec<f64> = oaps.iter().copied().chain([idle]).collect();
            let mut quotas = share::proportional(total_blocks, &weights);
            let idle = quotas.pop().unwrap_or(0);
            if let SurplusRule::To(tenant) = remains
                && let Some(quota) = quotas.get_mut(tenant)
            {
                *quota += idle;
            }
            quotas
        }
        (ResourceState::Strained, _) => {
            let extra = f64::from(granules) - sum_mbp;
            let both = mbps.iter().zip(&oaps);
            let weights: Vec<f64> = both.map(|(mbp, oap)| mbp + extra * oap / sum_oap).collect();
            share::proportional(total_blocks, &weights)
        }
        (ResourceState::Constrained, _) => share::proportional(total_blocks, &mbps),
    };
    (state, quotas)
}

/// Parts into which a window is pooled for models without a state.
pub const PARTS: usize = 12;

/// The input of a model, as in its training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelInput {
    /// Latest steps that it reads.
    pub window_steps: u32,
    /// Granules of its labels.
    pub granules: u32,
    /// Whether a recurrent state is kept from interval to interval.
    pub carried: bool,
}

/// A prediction for the next interval.
#[derive(Clone, Copy, Debug, PartialEq, SnapshotValue)]
pub struct DemandPrediction {
    /// Maximum benefit point.
    pub mbp_share: f64,
    /// Optimal allocation point.
    pub oap_share: f64,
}

/// A model and the latest steps of its tenant. The model is fed as in its training: a window of the
/// latest steps from a zero state, or step by step with a state that is kept. A model without a
/// state reads the pooled window.
#[derive(Clone, Debug)]
pub struct Predictor {
    network: TrainedNetwork,
    /// Of the files of the first model and of those that replace it.
    fingerprints: Vec<u64>,
    looks: ModelInput,
    /// Models that replace the first, each with its first interval, in order.
    later: VecDeque<(u32, TrainedNetwork)>,
    /// Intervals begun.
    begun: u32,
    /// Steps seen.
    seen: u64,
    /// Features of the latest steps.
    window: VecDeque<[f32; FEATURES.len()]>,
    /// The last prediction.
    prediction: Option<DemandPrediction>,
}

/// Models and what they look at are settings; how many of those that replace the first one are left
/// says which is in use.
impl Snapshot for Predictor {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        let Predictor {
            network,
            fingerprints: _,
            looks: _,
            later,
            begun,
            seen,
            window,
            prediction,
        } = self;
        later.len().save(out);
        network.save(out);
        begun.save(out);
        seen.save(out);
        window.save(out);
        prediction.save(out);
    }

    fn restore(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        let left = usize::load(from)?;
        if left > self.later.len() {
            let found = format!("{left} models to come");
            return Err(SnapshotError::value(found, format!("at most {}", self.later.len())));
        }
        let passed = self.later.len() - left;
        if let Some((_, network)) = self.later.drain(..passed).next_back() {
            self.network = network;
        }
        self.network.restore(from)?;
        self.begun.restore(from)?;
        self.seen.restore(from)?;
        self.window.restore(from)?;
        self.prediction.restore(from)
    }
}

impl Predictor {
    /// Reads a model file and checks its input. Errors: what was found and what was expected.
    pub fn load(bytes: &[u8], looks: ModelInput) -> Result<Predictor, String> {
        let (network, later) = (network(bytes, looks)?, VecDeque::new());
        Ok(Predictor {
            network,
            fingerprints: vec![fingerprint(bytes)],
            looks,
            later,
            begun: 0,
            seen: 0,
            window: VecDeque::new(),
            prediction: None,
        })
    }

    /// Reads a model that replaces the first from the interval in its note `from_interval`. Errors:
    /// as for the first model; an interval that is not after the previous one.
    pub fn load_later(&mut self, bytes: &[u8]) -> Result<(), String> {
        let network = network(bytes, self.looks)?;
        let from = network.whole_note("from_interval")?;
        let last = self.later.back().map_or(0, |(last, _)| *last);
        if from <= last {
            return Err(format!(
                "note `from_interval`: found {from}, expected more than {last}, where the model \
                 before takes over"
            ));
        }
        self.later.push_back((from, network));
        self.fingerprints.push(fingerprint(bytes));
        Ok(())
    }

    /// Goes on where the predictor before is: with its steps and its prediction, which is of the
    /// model before until steps of another interval are read. With the same files it is that one,
    /// the state of its model included.
    pub fn succeed(&mut self, before: Predictor) {
        if self.fingerprints == before.fingerprints {
            *self = before;
            return;
        }
        let Predictor { begun, seen, window, prediction, .. } = before;
        (self.begun, self.seen, self.window) = (begun, seen, window);
        self.prediction = prediction;
    }

    /// Begins an interval and switches to a model that starts there. The window stays; a kept state
    /// starts from zero.
    pub fn begin_interval(&mut self) {
        while self.later.front().is_some_and(|(from, _)| *from <= self.begun) {
            if let Some((_, network)) = self.later.pop_front() {
                self.network = network;
            }
        }
        self.begun += 1;
    }

    /// Reads the steps of the interval that ended.
    pub fn learn(&mut self, steps: &[StepCounts]) {
        let carried = self.looks.carried && self.network.architecture().kind.is_recurrent();
        for step in steps.iter().map(StepCounts::features) {
            if carried {
                self.prediction =
                    self.network.step(&step).and_then(|outputs| predicted_points(&outputs));
            }
            self.window.push_back(step);
            if self.window.len() > self.looks.window_steps as usize {
                self.window.pop_front();
            }
        }
        self.seen += steps.len() as u64;
        if !carried && !steps.is_empty() {
            self.prediction = self.predict_window();
        }
    }

    /// The prediction for the next interval; nothing before a full window of steps.
    pub fn prediction(&self) -> Option<DemandPrediction> {
        self.prediction.filter(|_| self.seen >= u64::from(self.looks.window_steps))
    }

    /// The prediction of a full window.
    fn predict_window(&mut self) -> Option<DemandPrediction> {
        if self.window.len() < self.looks.window_steps as usize {
            return None;
        }
        self.network.reset();
        if !self.network.architecture().kind.is_recurrent() {
            let outputs = self.network.step(&pooled(self.window.make_contiguous()))?;
            return predicted_points(&outputs);
        }
        let mut outputs = None;
        for features in &self.window {
            outputs = self.network.step(features);
        }
        predicted_points(&outputs?)
    }
}

/// Reads a model file and checks its input.
fn network(bytes: &[u8], looks: ModelInput) -> Result<TrainedNetwork, String> {
    let network = TrainedNetwork::load(bytes)?;
    if network.architecture().kind.is_recurrent() {
        network.expect_features(&FEATURES.map(str::to_owned))?;
    } else {
        network.expect_features(&pooled_names())?;
        if (looks.window_steps as usize) < PARTS {
            let (kind, actual) = (network.architecture().kind.name(), looks.window_steps);
            return Err(format!(
                "`window_steps`: found {actual}, expected at least {PARTS} for a model of kind \
                 {kind}"
            ));
        }
    }
    network.expect_outputs(2, "MBP and OAP")?;
    network.expect_note("granules", looks.granules)?;
    network.expect_note("window_steps", looks.window_steps)?;
    Ok(network)
}

fn predicted_points(outputs: &[f64]) -> Option<DemandPrediction> {
    let [mbp_share, oap_share] = *outputs else { return None };
    Some(DemandPrediction { mbp_share, oap_share })
}

/// Names of the inputs of a model without a state: the features of the earliest part first.
pub fn pooled_names() -> Vec<String> {
    let part = |part: usize| FEATURES.iter().map(move |feature| format!("{feature}.{part}"));
    (0..PARTS).flat_map(part).collect()
}

/// The means of the features in each of [`PARTS`] parts of a window, the earliest first. Of `n`
/// steps, part `p` has those from `p n / PARTS` up to `(p + 1) n / PARTS`, both rounded down.
pub fn pooled(window: &[[f32; FEATURES.len()]]) -> Vec<f32> {
    let mut inputs = Vec::with_capacity(PARTS * FEATURES.len());
    for part in 0..PARTS {
        let steps = &window[part * window.len() / PARTS..(part + 1) * window.len() / PARTS];
        for feature in 0..FEATURES.len() {
            let sum: f64 = steps.iter().map(|step| f64::from(step[feature])).sum();
            inputs.push((sum / steps.len().max(1) as f64) as f32);
        }
    }
    inputs
}

/// The paper's L: 5 %.
pub const MIN_GAIN: f64 = 0.05;

/// The base of the smallest gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GainOf {
    /// The response before the step.
    Before,
    /// The largest gain of all steps.
    Largest,
    /// The gain of all granules together over the smallest size.
    Whole,
}

impl GainOf {
    /// All readings by name.
    pub const NAMED: [(&'static str, GainOf); 3] =
        [("before", GainOf::Before), ("largest", GainOf::Largest), ("whole", GainOf::Whole)];

    /// The reading with this name. Errors: what was found and what was expected.
    pub fn parse(name: &str) -> Result<GainOf, String> {
        let known = GainOf::NAMED.iter().find(|(known, _)| *known == name);
        known.map(|(_, gain_of)| *gain_of).ok_or_else(|| {
            let names = GainOf::NAMED.map(|(known, _)| known).join(", ");
            format!("`gain_of`: found `{name}`, expected one of {names}")
        })
    }
}

/// The rule that finds the two points of a tenant in its response times by cache size: the labels
/// of models. Section IV-C: K is the reduction of the mean response by one more granule;
/// "increments were set at 10 %", so that the first K is that of the second granule.
///
/// What the paper leaves open: a K that is not positive (noise) or not a number counts as 0. If all
/// are 0, both points are one granule. Among equal K the smallest size is taken. The paper's L is
/// "5 % of performance improvement", without a unit: [`GainOf`] has three readings. A K of 0 is
/// below any of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointRule {
    /// Whether the step from a cache that is switched off to one granule counts.
    pub from_off: bool,
    /// The smallest gain of a step that justifies its granule.
    pub least_gain: f64,
    /// The base of `least_gain`.
    pub gain_of: GainOf,
}

impl Default for PointRule {
    /// The most likely reading of the paper: steps between cache sizes, L of the response before.
    fn default() -> Self {
        PointRule { from_off: false, least_gain: MIN_GAIN, gain_of: GainOf::Before }
    }
}

/// The points of `responses` with 0, 1, ... granules of the cache. MBP is the size whose last
/// granule gained most. OAP is the first larger size whose last granule gained too little, or the
/// whole cache.
pub fn points(responses: &[f64], reading: PointRule) -> GranuleDemand {
    let gain = |size: usize| (responses[size - 1] - responses[size]).max(0.0);
    let first = if reading.from_off { 1 } else { 2 };
    let all = responses.len().saturating_sub(1);
    let mut mbp = first;
    for size in first + 1..=all {
        if gain(size) > gain(mbp) {
            mbp = size;
        }
    }
    if all < first || gain(mbp) <= 0.0 {
        return GranuleDemand { mbp: 1, oap: 1 };
    }
    let lowest = responses[first..].iter().copied().fold(f64::INFINITY, f64::min);
    let whole = (responses[first - 1] - lowest).max(0.0);
    let base = |size: usize| match reading.gain_of {
        GainOf::Before => responses[size - 1],
        GainOf::Largest => gain(mbp),
        GainOf::Whole => whole,
    };
    let enough =
        |size: &usize| gain(*size) <= 0.0 || gain(*size) < reading.least_gain * base(*size);
    let oap = (mbp + 1..=all).find(enough).unwrap_or(all);
    GranuleDemand { mbp: mbp as u32, oap: oap as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_fastest_growing_tenant_is_the_one_whose_oap_rose_most() {
        let mut icache = ICache::new(&ICacheSettings::default(), 3, Seed(1));
        assert_eq!(icache.fastest_growing(vec![0.2, 0.7, 0.7]), 1, "from 0; the first of equals");
        assert_eq!(icache.fastest_growing(vec![0.3, 0.7, 0.9]), 2);
        assert_eq!(icache.fastest_growing(vec![0.2, 0.6, 0.8]), 0, "all fell as much");
        assert_eq!(icache.fastest_growing(vec![0.2, 0.1, 0.7]), 0, "the others fell");
    }

    fn demands(pairs: &[(u32, u32)]) -> Vec<GranuleDemand> {
        pairs.iter().map(|&(mbp, oap)| GranuleDemand { mbp, oap }).collect()
    }

    #[test]
    fn an_abundant_cache_gives_what_is_asked_and_the_rest_to_one_or_to_all() {
        // OAPs of 3 and 2 of 10 granules of 100 blocks; 5 granules remain.
        let demand_cases = demands(&[(1, 3), (2, 2)]);
        let alone = allocate(&demand_cases, 10, 1000, SurplusRule::To(1));
        assert_eq!(alone, (ResourceState::Abundant, vec![300, 700]));
        let all = allocate(&demand_cases, 10, 1000, SurplusRule::Spread);
        assert_eq!(all, (ResourceState::Abundant, vec![600, 400]));
        let idle = allocate(&demand_cases, 10, 1000, SurplusRule::Idle);
        assert_eq!(idle, (ResourceState::Abundant, vec![300, 200]), "as published: 500 stay free");
        let full = allocate(&demands(&[(1, 8), (1, 2)]), 10, 1000, SurplusRule::To(1));
        assert_eq!(full, (ResourceState::Abundant, vec![800, 200]), "OAPs fill it exactly");
    }

    #[test]
    fn a_strained_cache_gives_mbp_and_what_is_left_by_oap() {
        // MBPs take 5 granules; the other 5 go 9 : 6, thus 3 and 2.
        let strained = allocate(&demands(&[(4, 9), (1, 6)]), 10, 1000, SurplusRule::To(0));
        assert_eq!(strained, (ResourceState::Strained, vec![700, 300]));
        // 1 + 8 * 9 / 11 and 1 + 8 * 2 / 11 granules: 754.5 and 245.5 blocks.
        let unequal = allocate(&demands(&[(1, 9), (1, 2)]), 10, 1000, SurplusRule::Spread);
        assert_eq!(unequal.1.iter().sum::<u32>(), 1000);
        assert!(unequal.1[0].abs_diff(755) <= 1, "{unequal:?}");
        let exact = allocate(&demands(&[(6, 8), (4, 4)]), 10, 1000, SurplusRule::To(0));
        assert_eq!(exact, (ResourceState::Strained, vec![600, 400]), "MBPs fill it exactly");
    }

    #[test]
    fn a_constrained_cache_is_divided_by_mbp() {
        let short = allocate(&demands(&[(9, 10), (6, 6), (5, 5)]), 10, 1000, SurplusRule::To(0));
        assert_eq!(short, (ResourceState::Constrained, vec![450, 300, 250]));
    }

    #[test]
    fn predictions_are_rounded_into_the_cache() {
        let rounded = |mbp, oap| GranuleDemand::rounded(mbp, oap, 10);
        assert_eq!(rounded(0.24, 0.56), GranuleDemand { mbp: 2, oap: 6 });
        assert_eq!(rounded(0.7, 0.2), GranuleDemand { mbp: 7, oap: 7 }, "OAP is not below MBP");
        assert_eq!(rounded(-3.0, 0.04), GranuleDemand { mbp: 1, oap: 1 });
        assert_eq!(rounded(0.0, f64::INFINITY), GranuleDemand { mbp: 1, oap: 10 });
        assert_eq!(rounded(f64::NAN, f64::NAN), GranuleDemand { mbp: 1, oap: 1 });
        assert_eq!(rounded(1.7, f64::NEG_INFINITY), GranuleDemand { mbp: 10, oap: 10 });
    }

    /// Granules, and demands of up to eight tenants within them.
    fn demand_cases() -> impl Strategy<Value = (u32, Vec<GranuleDemand>)> {
        (1_u32..20).prop_flat_map(|granules| {
            let demand = (1..=granules, 0_u32..20).prop_map(move |(mbp, more)| GranuleDemand {
                mbp,
                oap: (mbp + more).min(granules),
            });
            (Just(granules), prop::collection::vec(demand, 1..9))
        })
    }

    proptest! {
        #[test]
        fn quotas_sum_to_the_cache_and_keep_what_the_state_promises(
            (granules, demands) in demand_cases(),
            total in prop_oneof![0_u32..100, 0_u32..1_000_000, Just(u32::MAX)],
            to in 0_usize..8,
        ) {
            for remains in [SurplusRule::To(to % demands.len()), SurplusRule::Spread] {
                let (state, quotas) = allocate(&demands, granules, total, remains);
                let sum: u64 = quotas.iter().copied().map(u64::from).sum();
                prop_assert_eq!(sum, u64::from(total));
                let blocks = |part: u32| {
                    (f64::from(total) * f64::from(part) / f64::from(granules)).floor()
                };
                for (demand, &quota) in demands.iter().zip(&quotas) {
                    match state {
                        ResourceState::Abundant => {
                            prop_assert!(f64::from(quota) >= blocks(demand.oap));
                        }
                        ResourceState::Strained => {
                            prop_assert!(f64::from(quota) >= blocks(demand.mbp));
                        }
                        ResourceState::Constrained => {
                            prop_assert!(f64::from(quota) <= blocks(demand.mbp) + 1.0);
                        }
                    }
                }
            }
        }

        #[test]
        fn a_larger_demand_gets_no_fewer_blocks_in_the_same_state(
            (granules, demands) in demand_cases(), tenant in 0_usize..8, total in 0_u32..100_000,
        ) {
            let tenant = tenant % demands.len();
            let GranuleDemand { mbp, oap } = demands[tenant];
            let more = [(mbp + 1, oap.max(mbp + 1)), (mbp, oap + 1)];
            for (mbp, oap) in more.into_iter().filter(|(_, oap)| *oap <= granules) {
                let mut greedy = demands.clone();
                greedy[tenant] = GranuleDemand { mbp, oap };
                for remains in [SurplusRule::To(tenant), SurplusRule::Spread] {
                    let before = allocate(&demands, granules, total, remains);
                    let after = allocate(&greedy, granules, total, remains);
                    if before.0 == after.0 {
                        let no_fewer = after.1[tenant] + 1 >= before.1[tenant];
                        prop_assert!(no_fewer, "{before:?} {after:?}");
                    }
                }
            }
        }

        #[test]
        fn equal_demands_get_equal_blocks(
            (granules, demands) in demand_cases(), total in 0_u32..100_000,
        ) {
            let twins = demands.iter().flat_map(|demand| [*demand; 2]);
            let twins: Vec<GranuleDemand> = twins.collect();
            let (_, quotas) = allocate(&twins, granules, total, SurplusRule::Spread);
            prop_assert!(quotas.chunks(2).all(|pair| pair[0].abs_diff(pair[1]) <= 1), "{quotas:?}");
        }
    }

    #[test]
    fn pooling_takes_means_of_twelve_parts() {
        let window: Vec<[f32; 4]> = (0..24).map(|step| [step as f32, 1.0, 0.0, 0.5]).collect();
        let inputs = pooled(&window);
        assert_eq!(inputs.len(), 48);
        assert_eq!(inputs[..8], [0.5, 1.0, 0.0, 0.5, 2.5, 1.0, 0.0, 0.5]);
        assert_eq!(inputs[44], 22.5);
        let names = pooled_names();
        assert_eq!((names[0].as_str(), names[4].as_str()), ("intensity.0", "intensity.1"));
        assert_eq!(names[47], "unique_ratio.11");
    }

    #[test]
    fn parts_of_an_uneven_window_differ_by_a_step() {
        let window: Vec<[f32; 4]> = (0..13).map(|step| [step as f32; 4]).collect();
        let means: Vec<f32> = pooled(&window).chunks(4).map(|part| part[0]).collect();
        // The last part holds steps 11 and 12.
        assert_eq!(means, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.5]);
    }

    fn read(responses: &[f64], reading: PointRule) -> (u32, u32) {
        let GranuleDemand { mbp, oap } = points(responses, reading);
        (mbp, oap)
    }

    fn points_from_off(responses: &[f64]) -> (u32, u32) {
        read(responses, PointRule { from_off: true, ..PointRule::default() })
    }

    #[test]
    fn the_step_from_a_cache_switched_off_does_not_count_by_default() {
        // Gains from the second granule on: 4, 30, 6, 1.
        let responses = [900.0, 100.0, 96.0, 66.0, 60.0, 59.0];
        assert_eq!(read(&responses, PointRule::default()), (3, 5), "6 of 66 is worth it, 1 is not");
        assert_eq!(points_from_off(&responses), (1, 2), "with size 0 the first granule gains most");
        assert_eq!(read(&[100.0, 50.0], PointRule::default()), (1, 1), "one size has no step");
        assert_eq!(read(&[100.0, 50.0, 50.0], PointRule::default()), (1, 1), "nothing gained");
    }

    #[test]
    fn readings_have_names() {
        for (name, gain_of) in GainOf::NAMED {
            assert_eq!(GainOf::parse(name), Ok(gain_of));
        }
        let refused = GainOf::parse("first").unwrap_err();
        assert_eq!(refused, "`gain_of`: found `first`, expected one of before, largest, whole");
    }

    #[test]
    fn the_least_gain_is_a_share_of_what_the_reading_says() {
        // Gains from the second granule on: 40, 4, 2.5, 0.5; together 47.
        let responses = [900.0, 100.0, 60.0, 56.0, 53.5, 53.0];
        let oap = |gain_of| read(&responses, PointRule { gain_of, ..PointRule::default() }).1;
        assert_eq!(oap(GainOf::Before), 4, "2.5 is below 5 % of 56");
        assert_eq!(oap(GainOf::Largest), 5, "0.5 is below 5 % of 40, 2.5 is not");
        assert_eq!(oap(GainOf::Whole), 5, "0.5 is below 5 % of 47");
        let whole = PointRule { gain_of: GainOf::Whole, least_gain: 0.06, ..PointRule::default() };
        assert_eq!(read(&responses, whole).1, 4, "2.5 is below 6 % of 47");
    }

    #[test]
    fn curves_worked_by_hand() {
        // Gains 10, 40, 5, 1: 5 of 50 is worth it, 1 of 45 is not.
        assert_eq!(points_from_off(&[100.0, 90.0, 50.0, 45.0, 44.0]), (2, 4));
        assert_eq!(points_from_off(&[100.0, 40.0, 39.0, 39.0, 39.0]), (1, 2));
        assert_eq!(points_from_off(&[100.0, 98.0, 96.0, 40.0, 39.0]), (3, 4));
        assert_eq!(points_from_off(&[100.0, 50.0, 25.0, 12.0]), (1, 3), "always worth it: all");
        assert_eq!(points_from_off(&[100.0, 90.0, 80.0]), (1, 2), "the first of equals");
        assert_eq!(points_from_off(&[100.0, 99.0, 10.0]), (2, 2), "nothing above it");
        assert_eq!(points_from_off(&[100.0, 50.0, 47.5, 47.5]), (1, 3), "5 % exactly is worth it");
        assert_eq!(points_from_off(&[5.0, 0.0, 0.0, 0.0]), (1, 2), "nothing is left to gain");
        assert_eq!(
            points_from_off(&[100.0, 60.0, 57.1, 20.0]),
            (1, 2),
            "a cliff behind a plain is not seen"
        );
    }

    #[test]
    fn noise_and_nothing_ask_for_one_granule() {
        assert_eq!(points_from_off(&[50.0, 51.0, 52.0]), (1, 1));
        assert_eq!(points_from_off(&[0.0; 11]), (1, 1));
        assert_eq!(points_from_off(&[f64::NAN; 4]), (1, 1));
        assert_eq!(points_from_off(&[7.0]), (1, 1));
        assert_eq!(points_from_off(&[]), (1, 1));
        assert_eq!(points_from_off(&[50.0, 60.0, 20.0, 21.0, 20.9]), (2, 3), "a rise is no gain");
    }

    proptest! {
        #[test]
        fn points_are_sizes_and_oap_is_not_below_mbp(
            responses in prop::collection::vec(prop_oneof![0.0..1e6_f64, Just(f64::NAN)], 2..20),
            least_gain in 0.0..1.0_f64,
            from_off in any::<bool>(),
            gain_of in prop::sample::select(GainOf::NAMED.map(|(_, gain_of)| gain_of).to_vec()),
        ) {
            let reading = PointRule { from_off, least_gain, gain_of };
            let GranuleDemand { mbp, oap } = points(&responses, reading);
            prop_assert!(1 <= mbp && mbp <= oap && (oap as usize) < responses.len());
            let scaled: Vec<f64> = responses.iter().map(|response| 4.0 * response).collect();
            prop_assert_eq!(points(&scaled, reading), GranuleDemand { mbp, oap }, "any unit");
            let lower = points(&responses, PointRule { least_gain: least_gain / 2.0, ..reading });
            prop_assert!(lower.mbp == mbp && lower.oap >= oap, "less is enough");
        }
    }
}
