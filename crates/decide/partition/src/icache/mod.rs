//! `icache`: partitions for demands that a model per tenant predicts.
//!
//! For: predicted maximum benefit points (MBP) and optimal allocation points (OAP), Algorithm 1, a
//! reserve for everyone. Must never know: how models were trained, response times, the interval's
//! length. Source: Li, Sun, Qin, "iCache" (TCAD 2025), sections IV-D to IV-F. Units: blocks;
//! demands in granules. What the paper leaves open: until every model has seen a full window, the
//! cache is divided equally. In abundance the paper leaves space idle; quotas here sum to the
//! cache, so it goes to the tenant whose predicted OAP (before rounding) rose most since the last
//! interval, the earlier tenant first among equals and an OAP before the first prediction counting
//! as 0; `spread` gives it to all in proportion to OAP. A prediction out of range is clamped.

pub mod allocate;
pub mod points;
pub mod predict;

use crate::entry::{Entry, Need, Registered};
use crate::{Division, Models, Partitioner, TenantView, share};
use allocate::{Demand, Remains, Resources, allocate};
use cachewright_types::{Seed, declare};
use predict::{Looks, Predictor};

declare! {
    /// Settings of `icache`.
    pub struct ICacheSettings {
        /// granules that demands are rounded to; the models' labels must have as many
        granules: u32 = 10, "granules", 1 ..= 1000;
        /// steps whose features an interval has; the paper's are seconds of 3 minutes
        steps_per_interval: u32 = 180, "steps", 1 ..= 100000;
        /// latest steps that a model looks at, as it was trained
        window_steps: u32 = 180, "steps", 1 ..= 100000;
        /// carry recurrent state on from step to step; not from zero for each window
        carried: bool = false, "";
        /// give what no tenant asked for to all by OAP; not to the fastest-growing tenant
        spread: bool = false, "";
        /// what every tenant keeps, in granules divided by the number of tenants
        reserve: f64 = 1.0, "granules / tenants", 0.0 ..= 1000.0;
    }
}

/// Partitions by predicted demand.
#[derive(Clone, Debug)]
pub struct ICache {
    settings: ICacheSettings,
    tenants: usize,
    /// One per tenant; empty before models were given.
    predictors: Vec<Predictor>,
    /// OAPs of the last division, in shares of the cache; 0 before.
    last_oaps: Vec<f64>,
    demands: Vec<Demand>,
    resources: Option<Resources>,
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
    /// The state of the cache at the last division; nothing while it is divided equally.
    pub fn resources(&self) -> Option<Resources> {
        self.resources
    }

    /// What tenants were predicted to ask for at the last division; empty while it is divided
    /// equally.
    pub fn demands(&self) -> &[Demand] {
        &self.demands
    }

    /// The tenant whose OAP rose most; OAPs are kept for the next time.
    fn fastest_growing(&mut self, oaps: Vec<f64>) -> usize {
        let rise = |at: usize| oaps[at] - self.last_oaps.get(at).copied().unwrap_or(0.0);
        let mut fastest = 0;
        for at in 1..oaps.len() {
            if rise(at) > rise(fastest) {
                fastest = at;
            }
        }
        self.last_oaps = oaps;
        fastest
    }
}

impl Partitioner for ICache {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> Division {
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
            return Division::PerTenant(share::equal(total_blocks, tenants.len()));
        };
        let granules = self.settings.granules;
        let demand = |prediction: &predict::Prediction| {
            Demand::rounded(prediction.mbp_share, prediction.oap_share, granules)
        };
        self.demands = predictions.iter().map(demand).collect();
        // Ends of the range for what lies outside, 0 for what is not a number.
        let clamped = |share: f64| share.clamp(0.0, 1.0).max(0.0);
        let oaps = predictions.iter().map(|p| clamped(p.oap_share).max(clamped(p.mbp_share)));
        let fastest = self.fastest_growing(oaps.collect());
        let remains = if self.settings.spread { Remains::Spread } else { Remains::To(fastest) };
        let (state, mut quotas) = allocate(&self.demands, granules, total_blocks, remains);
        self.resources = Some(state);
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        share::raise(&mut quotas, &vec![floor; tenants.len()]);
        Division::PerTenant(quotas)
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        let granule = f64::from(total_blocks) / f64::from(self.settings.granules);
        let asked = (self.settings.reserve * granule / tenants.max(1) as f64).ceil();
        share::feasible_floor(asked as u32, tenants, total_blocks)
    }

    fn learn(&mut self, models: &Models) -> Result<(), String> {
        let (found, expected) = (models.each.len(), self.tenants);
        if found != expected {
            return Err(format!(
                "found {found} models, expected one for each of {expected} tenants"
            ));
        }
        let ICacheSettings { window_steps, granules, carried, .. } = self.settings;
        let looks = Looks { window_steps, granules, carried };
        let none = Vec::new();
        let load = |(place, bytes): (usize, &Vec<u8>)| {
            let wrong = |error| format!("model {} of {expected}: {error}", place + 1);
            let mut predictor = Predictor::load(bytes, looks).map_err(wrong)?;
            for (number, bytes) in models.later.get(place).unwrap_or(&none).iter().enumerate() {
                let update = |error| wrong(format!("update {}: {error}", number + 1));
                predictor.load_later(bytes).map_err(update)?;
            }
            Ok(predictor)
        };
        self.predictors =
            models.each.iter().enumerate().map(load).collect::<Result<_, String>>()?;
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
