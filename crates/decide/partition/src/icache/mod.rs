//! `icache`: partitions for demands that a model per tenant predicts.
//!
//! For: predicted maximum benefit points (MBP) and optimal allocation points (OAP), Algorithm 1, a
//! reserve for each tenant. Must never know: how models were trained, response times, the length of
//! an interval. Source: Li, Sun, Qin, "iCache" (TCAD 2025), sections IV-D to IV-F. Units: blocks;
//! demands in granules.
//!
//! What the paper leaves open: the cache is divided equally until every model has seen a full
//! window. In abundance the paper leaves blocks idle; quotas here sum to the cache. The idle blocks
//! go to the tenant whose predicted OAP (before rounding) rose most since the last interval, the
//! earlier tenant among equals. An OAP before the first prediction counts as 0. `spread` divides
//! the idle blocks among all tenants in proportion to OAP. A prediction out of range is clamped.

pub mod allocate;
pub mod points;
pub mod predict;

use crate::entry::{Entry, Need, Registered};
use crate::{CacheDivision, Models, Partitioner, TenantView, share};
use allocate::{GranuleDemand, ResourceState, SurplusRule, allocate};
use cachewright_types::{Seed, declare};
use predict::{ModelInput, Predictor};

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
        /// reserve of each tenant, in granules divided by the number of tenants
        reserve: f64 = 1.0, "granules / tenants", 0.0 ..= 1000.0;
    }
}

/// Partitions by predicted demand.
#[derive(Clone, Debug)]
pub struct ICache {
    settings: ICacheSettings,
    tenants: usize,
    /// One per tenant; empty without models.
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
        let demand = |prediction: &predict::DemandPrediction| {
            GranuleDemand::rounded(prediction.mbp_share, prediction.oap_share, granules)
        };
        self.demands = predictions.iter().map(demand).collect();
        // Ends of the range for what lies outside, 0 for what is not a number.
        let clamped = |share: f64| share.clamp(0.0, 1.0).max(0.0);
        let oaps = predictions.iter().map(|p| clamped(p.oap_share).max(clamped(p.mbp_share)));
        let fastest = self.fastest_growing(oaps.collect());
        let remains =
            if self.settings.spread { SurplusRule::Spread } else { SurplusRule::To(fastest) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_growing_tenant_is_the_one_whose_oap_rose_most() {
        let mut icache = ICache::new(&ICacheSettings::default(), 3, Seed(1));
        assert_eq!(icache.fastest_growing(vec![0.2, 0.7, 0.7]), 1, "from 0; the first of equals");
        assert_eq!(icache.fastest_growing(vec![0.3, 0.7, 0.9]), 2);
        assert_eq!(icache.fastest_growing(vec![0.2, 0.6, 0.8]), 0, "all fell as much");
        assert_eq!(icache.fastest_growing(vec![0.2, 0.1, 0.7]), 0, "the others fell");
    }
}
