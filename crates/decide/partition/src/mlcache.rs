//! `mlcache`: shares that a network computes from reuse distances of writes.
//!
//! For: one dense network for all tenants, from histograms of reuse distances of writes to shares
//! of the cache. Must never know: how distances were measured, how the network was trained. Units:
//! blocks. Source: Liu et al., MLCache (ICCAD 2020; TPDS 2023), as far as it is public: ten bins
//! per tenant, the last for longer distances and first writes, all bins of all tenants summing to
//! 1; two hidden layers of 256 (here those of the file); a softmax over tenants.
//!
//! Ours: whole blocks by largest remainder; each tenant keeps `floor_blocks`; equal shares before
//! the first interval with a write; an interval without writes changes nothing. The paper's
//! parallel write-back is not part of a division and left out.

use crate::network::TrainedNetwork;
use crate::registry::{Entry, Need, Registered};
use crate::{CacheDivision, Models, Partitioner, TenantView, share};
use cachewright_curve::signal::BINS;
use cachewright_model::NetworkKind;
use cachewright_snapshot::Snapshot;
use cachewright_types::{Seed, declare};

declare! {
    /// Settings of `mlcache`.
    pub struct MlCacheSettings {
        /// blocks that every tenant keeps; less if the cache is too small
        floor_blocks: u32 = 1, "blocks", 0 ..= 4294967295;
    }
}

/// Shares from histograms of reuse.
#[derive(Clone, Debug, Snapshot)]
pub struct MlCache {
    #[snapshot(settings)]
    settings: MlCacheSettings,
    #[snapshot(settings)]
    tenants: usize,
    #[snapshot(each)]
    network: Option<TrainedNetwork>,
    /// Shares of the last interval with writes; empty before.
    shares: Vec<f64>,
}

impl Registered for MlCache {
    type Settings = MlCacheSettings;
    const ENTRY: Entry = Entry {
        name: "mlcache",
        doc: "shares by a network over how soon each tenant rewrites its blocks",
        source: "Liu et al., MLCache (ICCAD 2020), as far as public",
        needs: &[Need::Interval, Need::JointModel, Need::Reuse],
    };

    fn new(settings: &MlCacheSettings, tenants: usize, _: Seed) -> Self {
        MlCache { settings: settings.clone(), tenants, network: None, shares: Vec::new() }
    }
}

/// Names of the network's inputs: the bins of the first tenant first, `reuse.0.0` to `reuse.0.9`.
pub fn input_names(tenants: usize) -> Vec<String> {
    let bins = |tenant: usize| (0..BINS).map(move |bin| format!("reuse.{tenant}.{bin}"));
    (0..tenants).flat_map(bins).collect()
}

/// Every bin of every tenant over the sum of all bins; nothing if all bins are 0.
pub fn inputs(histograms: &[[u32; BINS]]) -> Option<Vec<f32>> {
    let bins = || histograms.iter().flatten();
    let sum: u64 = bins().copied().map(u64::from).sum();
    (sum > 0).then(|| bins().map(|&count| (f64::from(count) / sum as f64) as f32).collect())
}

/// The softmax of a network's outputs; NaN has no share.
fn softmax(outputs: &[f64]) -> Vec<f64> {
    let largest = outputs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Differences to the largest, at most 0; f32 as the network's own arithmetic.
    let mut shares: Vec<f32> = outputs.iter().map(|output| (output - largest) as f32).collect();
    shares.iter_mut().filter(|share| share.is_nan()).for_each(|share| *share = f32::NEG_INFINITY);
    cachewright_model::softmax(&mut shares);
    shares.into_iter().map(f64::from).collect()
}

impl Partitioner for MlCache {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        let bins = |tenant: &TenantView| *tenant.signals.reuse.unwrap_or(&[0; BINS]);
        let histograms: Vec<[u32; BINS]> = tenants.iter().map(bins).collect();
        if let (Some(network), Some(inputs)) = (&mut self.network, inputs(&histograms))
            && let Some(outputs) = network.step(&inputs)
        {
            self.shares = softmax(&outputs);
        }
        if self.shares.len() != tenants.len() {
            return CacheDivision::PerTenant(share::equal(total_blocks, tenants.len()));
        }
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        CacheDivision::PerTenant(share::proportional_above(total_blocks, &self.shares, floor))
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(self.settings.floor_blocks, tenants, total_blocks)
    }

    fn learn(&mut self, models: &Models) -> Result<(), String> {
        let Some(bytes) = &models.joint else {
            return Err("found no model of all tenants together, expected one".to_owned());
        };
        let network =
            TrainedNetwork::load(bytes).map_err(|error| format!("joint model: {error}"))?;
        let check = || {
            let kind = network.architecture().kind;
            if kind != NetworkKind::Mlp {
                return Err(format!("found a model of kind {}, expected mlp", kind.name()));
            }
            network.expect_features(&input_names(self.tenants))?;
            network.expect_outputs(self.tenants, "one per tenant")
        };
        check().map_err(|error| format!("joint model: {error}"))?;
        self.network = Some(network);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_of_all_tenants_sum_to_1() {
        let first = [0, 0, 0, 0, 0, 0, 0, 0, 0, 30];
        let second = [10, 0, 60, 0, 0, 0, 0, 0, 0, 0];
        let actual = inputs(&[first, second]);
        let mut expected = [0.0; 20];
        (expected[9], expected[10], expected[12]) = (0.3, 0.1, 0.6);
        assert_eq!(actual.as_deref(), Some(&expected[..]));
        assert_eq!(inputs(&[[0; 10]; 2]), None);
        assert_eq!(input_names(2)[9..11], ["reuse.0.9".to_owned(), "reuse.1.0".to_owned()]);
    }

    #[test]
    fn shares_are_a_softmax_of_what_is_a_number() {
        let close = |actual: Vec<f64>, expected: &[f64]| {
            actual.len() == expected.len()
                && actual
                    .iter()
                    .zip(expected)
                    .all(|(actual, expected)| (actual - expected).abs() < 1e-6)
        };
        assert!(close(softmax(&[0.0, 3.0_f64.ln()]), &[0.25, 0.75]));
        assert!(close(softmax(&[f64::NAN, 1e30, 1e30]), &[0.0, 0.5, 0.5]));
    }
}
