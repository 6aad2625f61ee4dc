//! A meter fed by requests finds what a slow model counts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_control::{RequestMeter, SignalNeeds};
use cachewright_curve::BlockName;
use cachewright_curve::signal::StepCounts;
use cachewright_types::{BlockId, BlockKey, Bytes, Nanos, Op, Request, TenantId};
use proptest::prelude::*;
use std::collections::HashMap;

const INTERVAL_NS: u64 = 1_000;
const STEPS: u32 = 3;

/// A model of the steps of one tenant.
#[derive(Default)]
struct Model {
    steps: Vec<(StepCounts, HashMap<u64, u32>)>,
}

fn meter() -> RequestMeter {
    let needs = SignalNeeds { steps: STEPS, ..SignalNeeds::default() };
    RequestMeter::new(needs.meter(2, INTERVAL_NS).unwrap(), 12)
}

proptest! {
    #[test]
    fn steps_by_numbers_and_of_recordings_are_those_of_the_model(
        mut requests in prop::collection::vec(
            (0..INTERVAL_NS, 0_u16..2, 0_u64..100_000, 0_u64..20_000, any::<bool>()), 0..60,
        ),
    ) {
        requests.sort_by_key(|request| request.0);
        let keys: Vec<BlockKey> = (0..100).map(BlockKey).collect();
        let (mut by_numbers, mut recorded) = (meter(), meter());
        let fresh = || Model { steps: vec![Default::default(); STEPS as usize] };
        let mut models = [fresh(), fresh()];
        for (time_ns, tenant, offset, length, write) in requests {
            let request = Request {
                time: Nanos(time_ns),
                offset: Bytes(offset),
                length: Bytes(length),
                op: if write { Op::Write } else { Op::Read },
                tenant: TenantId(tenant),
            };
            let step = (1..STEPS).filter(|step| {
                time_ns >= INTERVAL_NS * u64::from(*step) / u64::from(STEPS)
            });
            let (step, blocks) = &mut models[usize::from(tenant)].steps[step.count()];
            // A request without bytes touches no block.
            let end = if length == 0 { offset >> 12 } else { (offset + length).div_ceil(4096) };
            let numbers = offset >> 12..end;
            for number in numbers.clone() {
                let start = offset.max(number << 12);
                let end = (offset + length).min((number + 1) << 12);
                step.requests += 1;
                step.writes += u32::from(write);
                step.bytes += end - start;
                *blocks.entry(number).or_insert(0) += 1;
            }
            by_numbers.request(&request, time_ns);
            // Keys that tell the blocks of both tenants apart.
            let name = |number: u64| {
                let index = (number * 2) as u32 + u32::from(tenant);
                (BlockName::Recorded { id: BlockId(number as u32), keys: &keys, index }, false)
            };
            recorded.recorded_request(&request, numbers.map(name), time_ns);
        }
        let unique = |blocks: &HashMap<u64, u32>| {
            blocks.values().filter(|uses| **uses == 1).count()
        };
        let whole = |(step, blocks): (StepCounts, HashMap<u64, u32>)| {
            StepCounts { unique: unique(&blocks) as u32, ..step }
        };
        let expected = models.map(|model| model.steps.into_iter().map(whole).collect());
        let expected: Vec<Vec<StepCounts>> = expected.to_vec();
        prop_assert_eq!(by_numbers.end_interval().steps, expected.clone());
        prop_assert_eq!(recorded.end_interval().steps, expected);
    }
}
