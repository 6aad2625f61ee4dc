//! Traces in memory, merged.

use super::*;
use crate::{Batch, Record, TraceReader};
use cachewright_types::Nanos;
use proptest::prelude::*;

/// Records in memory as a reader; volume `n` is called `v<n>`.
struct Listed {
    records: Vec<Record>,
    next: usize,
    volumes: Vec<String>,
    skipped: Skipped,
}

impl TraceReader for Listed {
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError> {
        let end = self.records.len().min(self.next + max.min(3));
        self.records[self.next..end].iter().for_each(|record| batch.push(*record));
        let count = end - self.next;
        self.next = end;
        Ok(count)
    }
    fn volumes(&self) -> &[String] {
        &self.volumes
    }
    fn skipped(&self) -> &Skipped {
        &self.skipped
    }
    fn requests_hint(&self) -> Option<u64> {
        Some(self.records.len() as u64)
    }
}

fn listed(times_and_volumes: &[(u64, u32)]) -> Box<dyn TraceReader> {
    let records = times_and_volumes.iter().enumerate().map(|(index, &(time_ns, volume))| Record {
        time_ns,
        offset_bytes: index as u64,
        length_bytes: 1,
        op: Op::Read,
        volume,
    });
    let most = times_and_volumes.iter().map(|(_, volume)| volume + 1).max().unwrap_or(0);
    Box::new(Listed {
        records: records.collect(),
        next: 0,
        volumes: (0..most).map(|volume| format!("v{volume}")).collect(),
        skipped: Skipped::default(),
    })
}

fn all(workload: &mut MergedRequests, step: usize) -> WorkloadBatch {
    let mut batch = WorkloadBatch::default();
    while workload.read(&mut batch, step).unwrap() > 0 {}
    batch
}

#[test]
fn tenants_interleave_by_time_each_from_its_own_zero() {
    let a = TenantInput::reader("a", listed(&[(1000, 0), (1010, 0), (1020, 1)]));
    let mut b = TenantInput::reader("b", listed(&[(7, 0), (12, 0), (17, 0)]));
    b.time_scale = 2.0;
    b.start = Nanos(5);
    let mut workload = MergedRequests::open(vec![a, b]).unwrap();
    assert_eq!(workload.requests_hint(), Some(6));
    let batch = all(&mut workload, 2);
    assert_eq!(batch.time_ns, [0, 5, 10, 15, 20, 25]);
    assert_eq!(batch.tenant, [0, 1, 0, 1, 0, 1]);
    assert_eq!(batch.space, [0, 1, 0, 1, 2, 1]);
    let names: Vec<_> = workload.spaces().iter().map(|s| (s.tenant, s.volume.as_str())).collect();
    assert_eq!(names, [(0, "v0"), (1, "v0"), (0, "v1")]);
}

#[test]
fn traces_may_keep_their_common_clock() {
    let inputs = |sort: bool| {
        let mut a = TenantInput::reader("a", listed(&[(1000, 0), (1040, 0), (1030, 0)]));
        let mut b = TenantInput::reader("b", listed(&[(1010, 0), (1020, 1)]));
        (a.sort, b.sort) = (sort, sort);
        b.volume = Some("v1".to_owned());
        vec![a, b]
    };
    let times = |clock, sort| {
        let batch = all(&mut MergedRequests::open_on(clock, inputs(sort)).unwrap(), 9);
        batch.time_ns.into_iter().zip(batch.tenant).collect::<Vec<_>>()
    };
    assert_eq!(times(MergeClock::Own, false), [(0, 0), (10, 1), (40, 0), (40, 0)]);
    assert_eq!(times(MergeClock::Common, false), [(0, 0), (20, 1), (40, 0), (40, 0)]);
    assert_eq!(times(MergeClock::Common, true), [(0, 0), (20, 1), (30, 0), (40, 0)]);
    // The later trace is not moved by its own first record, whatever its place in the list.
    let mut late = TenantInput::reader("late", listed(&[(500, 0)]));
    (late.start, late.time_scale) = (Nanos(7), 2.0);
    let early = TenantInput::reader("early", listed(&[(400, 0)]));
    let mut workload = MergedRequests::open_on(MergeClock::Common, vec![late, early]).unwrap();
    let batch = all(&mut workload, 9);
    assert_eq!((batch.time_ns, batch.tenant), (vec![0, 207], vec![1, 0]));
}

#[test]
fn a_scale_beyond_bounds_is_refused() {
    let error = |scale: f64, times: &[(u64, u32)]| {
        let mut input = TenantInput::reader("a", listed(times));
        input.time_scale = scale;
        let mut workload = match MergedRequests::open(vec![input]) {
            Ok(workload) => workload,
            Err(error) => return error.to_string(),
        };
        let mut batch = WorkloadBatch::default();
        workload.read(&mut batch, 9).map_or_else(|error| error.to_string(), |_| String::new())
    };
    let bounds = "`time_scale`: found `1e300`, expected a number from 1e-9 to 1e9 (2.0 lasts \
                  twice as long)";
    assert_eq!(error(1e300, &[(0, 0)]), bounds);
    assert!(error(1e-10, &[(0, 0)]).starts_with("`time_scale`: found `1e-10`"));
    let late = "`time_scale`: found `1e9`, expected a factor that puts every request within \
                292 years";
    assert_eq!(error(1e9, &[(0, 0), (1 << 40, 0)]), late);
    assert_eq!(error(1e9, &[(0, 0), (1 << 30, 0)]), "");
}

#[test]
fn times_that_run_backwards_are_clamped_and_counted() {
    let times = [(50, 0), (40, 0), (70, 0), (60, 0), (70, 0)];
    let mut workload =
        MergedRequests::open(vec![TenantInput::reader("a", listed(&times))]).unwrap();
    assert_eq!(all(&mut workload, 9).time_ns, [0, 0, 20, 20, 20]);
    assert_eq!(workload.out_of_order(0), Some(2));
    assert_eq!(workload.out_of_order(1), None);
}

#[test]
fn a_tenant_may_end_before_its_trace() {
    let times = [(100, 0), (130, 1), (130, 0), (170, 1), (180, 0)];
    let taken = |stop, volume: Option<&str>, sort| {
        let mut input = TenantInput::reader("a", listed(&times));
        (input.stop, input.sort) = (Some(stop), sort);
        input.volume = volume.map(str::to_owned);
        input.start = Nanos(5);
        all(&mut MergedRequests::open(vec![input]).unwrap(), 2).time_ns
    };
    for sort in [false, true] {
        assert_eq!(taken(EarlyEnd::At(Nanos(75)), None, sort), [5, 35, 35], "75 is too late");
        assert_eq!(taken(EarlyEnd::At(Nanos(5)), None, sort), [0; 0]);
        assert_eq!(taken(EarlyEnd::After(4), None, sort), [5, 35, 35, 75]);
        assert_eq!(taken(EarlyEnd::After(9), None, sort), [5, 35, 35, 75, 85]);
        assert_eq!(taken(EarlyEnd::After(1), Some("v1"), sort), [35]);
        assert_eq!(taken(EarlyEnd::First(Nanos(75), 9), None, sort), [5, 35, 35]);
        assert_eq!(taken(EarlyEnd::First(Nanos(75), 2), None, sort), [5, 35]);
    }
}

#[test]
fn reads_and_writes_may_all_be_of_one_kind() {
    let ops = [Op::Trim, Op::Write, Op::Read, Op::Flush, Op::Write];
    let turned = |operation, stop, sort| {
        let record = |(at, op): (usize, &Op)| Record {
            time_ns: 100 - 10 * u64::from(sort) * at as u64,
            offset_bytes: at as u64,
            length_bytes: 1,
            op: *op,
            volume: 0,
        };
        let reader = Listed {
            records: ops.iter().enumerate().map(record).collect(),
            next: 0,
            volumes: vec!["v0".to_owned()],
            skipped: Skipped::default(),
        };
        let mut input = TenantInput::reader("a", Box::new(reader));
        (input.operation, input.stop, input.sort) = (Some(operation), stop, sort);
        let mut workload = MergedRequests::open(vec![input]).unwrap();
        let batch = all(&mut workload, 2);
        assert!(batch.op.iter().all(|op| *op == operation));
        batch.offset_bytes
    };
    assert_eq!(turned(Op::Write, None, false), [1, 2, 4]);
    assert_eq!(
        turned(Op::Read, Some(EarlyEnd::After(2)), false),
        [1, 2],
        "trims count for nothing"
    );
    assert_eq!(turned(Op::Read, None, true), [4, 2, 1]);
}

/// Requests of one chunk stay together, about the share asked for is taken, a larger sample has
/// all of a smaller one.
#[test]
fn a_sample_takes_whole_chunks() {
    let taken = |sample: f64| -> Vec<u64> {
        let record = |at: u64| Record {
            time_ns: at,
            offset_bytes: at << 18,
            length_bytes: 1,
            op: Op::Read,
            volume: 0,
        };
        let reader = Listed {
            records: (0..8000).map(record).collect(),
            next: 0,
            volumes: vec!["v0".to_owned()],
            skipped: Skipped::default(),
        };
        let mut input = TenantInput::reader("a", Box::new(reader));
        input.sample = sample;
        let batch = all(&mut MergedRequests::open(vec![input]).unwrap(), 100);
        batch.offset_bytes.iter().map(|offset| offset >> 18).collect()
    };
    let (tenth, half) = (taken(0.1), taken(0.5));
    assert!((600..1000).contains(&tenth.len()) && (3700..4300).contains(&half.len()));
    assert!(tenth.iter().all(|at| half.contains(at)));
    assert!(tenth.chunks(4).all(|chunk| chunk.iter().all(|at| at / 4 == chunk[0] / 4)));
    assert_eq!(taken(1.0).len(), 8000);
}

#[test]
fn or_sorted_when_asked() {
    let mut input = TenantInput::reader("a", listed(&[(50, 0), (40, 0), (70, 0), (40, 0)]));
    input.sort = true;
    let mut workload = MergedRequests::open(vec![input]).unwrap();
    let batch = all(&mut workload, 9);
    assert_eq!(batch.time_ns, [0, 0, 10, 30]);
    assert_eq!(batch.offset_bytes, [1, 3, 0, 2], "equal times keep their order");
    assert_eq!(workload.out_of_order(0), Some(2));
}

#[test]
fn one_volume_of_a_trace_keeps_the_traces_clock() {
    let times = [(100, 0), (130, 1), (150, 0), (170, 1)];
    let mut input = TenantInput::reader("a", listed(&times));
    input.volume = Some("v1".to_owned());
    let mut workload = MergedRequests::open(vec![input]).unwrap();
    let batch = all(&mut workload, 9);
    assert_eq!((batch.time_ns, batch.space), (vec![30, 70], vec![0, 0]));

    let mut input = TenantInput::reader("a", listed(&times));
    input.volume = Some("v7".to_owned());
    let error = MergedRequests::open(vec![input]).err().unwrap().to_string();
    assert!(error.contains("`v7`") && error.contains("nearest is `v"), "{error}");
}

#[test]
fn senseless_inputs_are_refused() {
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut input = TenantInput::reader("a", listed(&[(1, 0)]));
        input.time_scale = scale;
        assert!(MergedRequests::open(vec![input]).is_err(), "{scale}");
    }
    assert!(MergedRequests::open(Vec::new()).is_err());
    let twice = vec![
        TenantInput::reader("a", listed(&[(1, 0)])),
        TenantInput::reader("a", listed(&[(1, 0)])),
    ];
    assert!(MergedRequests::open(twice).is_err());
}

proptest! {
    #[test]
    fn the_merge_is_a_stable_sort(
        traces in prop::collection::vec(prop::collection::vec(0_u64..50, 0..40), 1..6),
        step in 1_usize..20
    ) {
        let mut expected = Vec::new();
        let mut inputs = Vec::new();
        for (tenant, times) in traces.iter().enumerate() {
            let mut times = times.clone();
            times.sort_unstable();
            let first = times.first().copied().unwrap_or(0);
            expected.extend(
                times.iter().enumerate().map(|(i, t)| (t - first, tenant as u16, i as u64)),
            );
            let listing: Vec<(u64, u32)> = times.iter().map(|t| (*t, 0)).collect();
            inputs.push(TenantInput::reader(&format!("t{tenant}"), listed(&listing)));
        }
        expected.sort_unstable();
        let batch = all(&mut MergedRequests::open(inputs).unwrap(), step);
        let merged: Vec<_> = (0..batch.len())
            .map(|i| (batch.time_ns[i], batch.tenant[i], batch.offset_bytes[i]))
            .collect();
        prop_assert_eq!(merged, expected);
    }
}

#[test]
fn what_comes_before_any_trace_comes_before_all_of_them_in_the_same_spaces() {
    for step in [1, 2, 100] {
        let mut a = TenantInput::reader("a", listed(&[(1_000, 1), (1_005, 0)]));
        a.before = Some(Box::new(TenantInput::reader("a", listed(&[(7, 0), (9, 0), (50, 1)]))));
        let mut b = TenantInput::reader("b", listed(&[(3, 0), (4, 0)]));
        b.start = Nanos(2);
        let mut workload = MergedRequests::open(vec![a, b]).unwrap();
        assert_eq!(workload.requests_hint(), Some(7));
        let batch = all(&mut workload, step);
        // The trace of `a` begins at the end of what came before, 43 ns, and so does that of `b`.
        assert_eq!(batch.time_ns, [0, 2, 43, 44, 46, 47, 49]);
        assert_eq!(batch.tenant, [0, 0, 0, 0, 1, 1, 0]);
        assert_eq!(batch.space, [0, 0, 1, 1, 2, 2, 0]);
        let names: Vec<&str> = workload.spaces().iter().map(|s| s.volume.as_str()).collect();
        assert_eq!(names, ["v0", "v1", "v0"]);
        assert_eq!((workload.begin_ns(), workload.requests_before(0)), (44, 3));
        assert_eq!(workload.requests_before(1), 0);
    }
}
