//! The curves of a server's status.
//!
//! For: sizes and quotas that are advised without a recording. Must never know: how curves are
//! sampled, what is advised. Units: bytes, seconds, ratios from 0 to 1.

use cachewright_control::{KeptCurve, KeptPoint};
use cachewright_live::blocks::BlockServer;
use cachewright_result::status::{CurvePoint, SampledCurve};

const NS_PER_S: f64 = 1e9;

/// The curves of all tenants by number; none where none are sampled.
#[derive(Clone, Debug, Default)]
pub struct TenantCurves {
    tenants: Vec<Option<SampledCurve>>,
}

impl TenantCurves {
    /// The curves of the last hour.
    pub fn last_hour(blocks: &mut BlockServer, now_ns: u64) -> TenantCurves {
        let block_bytes = blocks.block_bytes();
        let Some((policy, curves)) = blocks.curves(now_ns) else { return TenantCurves::default() };
        let curve = |curve: KeptCurve| Some(sampled(curve, policy, block_bytes));
        TenantCurves { tenants: curves.into_iter().map(curve).collect() }
    }

    /// The curve of a tenant.
    pub fn take(&mut self, tenant: usize) -> Option<SampledCurve> {
        self.tenants.get_mut(tenant).and_then(Option::take)
    }
}

fn sampled(curve: KeptCurve, policy: &str, block_bytes: u64) -> SampledCurve {
    let KeptCurve { accesses, span_ns, trusted_from_blocks, points } = curve;
    let ratio = |misses: f64| misses / accesses.max(1) as f64;
    let bytes = |blocks: u32| u64::from(blocks) * block_bytes;
    let point = |point: KeptPoint| CurvePoint {
        bytes: bytes(point.size_blocks),
        miss_ratio: ratio(point.misses),
        low: ratio(point.low),
        high: ratio(point.high),
    };
    SampledCurve {
        policy: policy.to_owned(),
        seconds: span_ns as f64 / NS_PER_S,
        accesses,
        trusted_bytes: bytes(trusted_from_blocks),
        points: points.into_iter().map(point).collect(),
    }
}
