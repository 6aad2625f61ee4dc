//! Response time as a function of cache size.
//!
//! For: `mrc --latency`: one timed replay per tenant and size, in parallel. Must never know: how
//! curves are drawn. Size 0 is the cache switched off: every request goes to the backing device
//! (past the data cache of a drive).
//! Unlike a miss-ratio curve this one may rise, or have cliffs that no hull shows. Source: icache's
//! labels, which are made of the steps of this curve.

use super::answer::response_times;
use crate::ExperimentError;
use crate::case::{Case, ResolvedCase};
use crate::job::Job;
use crate::needs::Needs;
use crate::progress::OnProgress;
use crate::record::RecordedTenants;
use crate::workload::Workload;
use cachewright_result::curves::{LatencyCurve, LatencyPoint};
use cachewright_system::event_loop::Times;
use cachewright_system::machines::Requests;

/// Each tenant alone under each of `policies`, at each of its sizes in blocks; `case` has devices.
pub fn latency_curves(
    case: &Case,
    recorded: &RecordedTenants,
    requests: Requests,
    policies: &[String],
    sizes: &[Vec<u32>],
    progress: OnProgress<'_>,
) -> Result<Vec<LatencyCurve>, ExperimentError> {
    let recording = &recorded.recording;
    case.resolve(recording)?.check_warmup()?;
    let workload = Workload::on_devices(case, recorded, requests, progress)?;
    let cases: Vec<Case> = policies.iter().map(|policy| with_policy(case, policy)).collect();
    for case in &cases {
        case.check_policy()?;
    }
    let resolved = cases.iter().map(|case| case.resolve(recording));
    let cases = resolved.collect::<Result<Vec<ResolvedCase<'_>>, ExperimentError>>()?;
    let mut jobs = Vec::new();
    let mut named = Vec::new();
    for case in &cases {
        for (tenant, sizes) in sizes.iter().enumerate() {
            named.push((case, tenant, sizes));
            for capacity_blocks in sizes.iter().copied() {
                jobs.push(Job { capacity_blocks, ..Job::alone(&workload, case, tenant) });
            }
        }
    }
    let layout = workload.placed()?.volumes.layout.word();
    let mut found = workload.run(&jobs)?.into_iter();
    let mut curves = Vec::new();
    for (case, tenant, sizes) in named {
        let point = |(size, times): (&u32, Times)| LatencyPoint {
            responses: response_times(&times.tenants[tenant]),
            size_blocks: *size,
            hit_ratio: times.cache.counts[tenant].hit_ratio(),
        };
        let points = sizes.iter().zip(found.by_ref()).map(point).collect();
        curves.push(LatencyCurve {
            tenant: case.spec.tenants[tenant].name.clone(),
            policy: case.spec.cache.policy.name.clone(),
            layout: layout.to_owned(),
            points,
        });
    }
    Ok(curves)
}

/// The case under another policy; its own keeps its settings.
fn with_policy(case: &Case, policy: &str) -> Case {
    let mut case = case.clone();
    case.spec.cache.set_policy(policy);
    case.needs = Needs::of(&case.spec);
    case
}
