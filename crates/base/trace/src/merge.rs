//! Several tenants' traces as one workload, ordered by time.
//!
//! For: the k-way merge. Must never know: formats, caches, what a tenant is for. Units: nanoseconds
//! since the start of the workload, bytes. Ties go to the tenant listed first, so that the result
//! depends on nothing but the inputs.
//!
//! By default each trace begins at its tenant's start. With [`MergeClock::Common`] the traces keep
//! the clock that they were recorded on, and the earliest begins.
//!
//! Every (tenant, volume) is a *space*: an address space of its own, numbered densely in order of
//! first appearance in the merged stream. Blocks are interned per space.

mod cut;
mod input;

pub use input::{Stop, TIME_SCALES, TenantInput, TenantSource};

use crate::{Call, Skipped, TraceError};
use cachewright_types::Op;
use input::Input;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What time zero of the workload is in each trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MergeClock {
    /// The trace's own first record.
    #[default]
    Own,
    /// The earliest first record of all traces.
    Common,
}

/// Requests of a workload by columns; all columns have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadBatch {
    /// Nanoseconds since the start of the workload, never decreasing.
    pub time_ns: Vec<u64>,
    /// First byte of each request in its space.
    pub offset_bytes: Vec<u64>,
    /// Length of each request; 0 for a flush.
    pub length_bytes: Vec<u64>,
    /// What is asked.
    pub op: Vec<Op>,
    /// The tenant, as an index into [`Workload::tenants`].
    pub tenant: Vec<u16>,
    /// Address space: index into [`Workload::spaces`].
    pub space: Vec<u32>,
    /// The process of each request and its pause; 0 and none where a trace names no processes,
    /// empty where none of them does.
    pub calls: Vec<Call>,
}

impl WorkloadBatch {
    /// Requests held.
    pub fn len(&self) -> usize {
        self.op.len()
    }

    /// Whether no request is held.
    pub fn is_empty(&self) -> bool {
        self.op.is_empty()
    }

    /// Drops all requests, keeps the memory.
    pub fn clear(&mut self) {
        self.time_ns.clear();
        self.offset_bytes.clear();
        self.length_bytes.clear();
        self.op.clear();
        self.tenant.clear();
        self.space.clear();
        self.calls.clear();
    }
}

/// One volume of one tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSpace {
    /// Index into [`Workload::tenants`].
    pub tenant: u16,
    /// The volume's name in the tenant's trace.
    pub volume: String,
}

/// The merged requests of several tenants.
pub struct Workload {
    tenants: Vec<String>,
    inputs: Vec<Input>,
    spaces: Vec<SharedSpace>,
    /// Next request's time and tenant of each input that has one.
    heads: BinaryHeap<Reverse<(u64, u16)>>,
}

impl Workload {
    /// Opens every input and reads its first requests.
    ///
    /// Errors: those of the readers; a time scale that is not a positive number; no tenant, more
    /// than 65,535 tenants, or two of one name. A volume that the trace lacks is an error once the
    /// trace has been read to its end.
    pub fn open(tenants: Vec<TenantInput>) -> Result<Workload, TraceError> {
        Workload::open_on(MergeClock::Own, tenants)
    }

    /// The same on `clock`. Errors: also a trace without times on a common clock.
    pub fn open_on(clock: MergeClock, tenants: Vec<TenantInput>) -> Result<Workload, TraceError> {
        check_names(&tenants)?;
        let mut workload = Workload {
            tenants: tenants.iter().map(|tenant| tenant.name.clone()).collect(),
            inputs: Vec::with_capacity(tenants.len()),
            spaces: Vec::new(),
            heads: BinaryHeap::with_capacity(tenants.len()),
        };
        for tenant in tenants {
            workload.inputs.push(Input::open(tenant)?);
        }
        if clock == MergeClock::Common {
            workload.share_origin()?;
        }
        for (index, input) in workload.inputs.iter_mut().enumerate() {
            if let Some(time_ns) = input.head()? {
                workload.heads.push(Reverse((time_ns, index as u16)));
            }
        }
        Ok(workload)
    }

    /// Makes the earliest first record of all traces the time zero of each.
    fn share_origin(&mut self) -> Result<(), TraceError> {
        if let Some(index) = self.inputs.iter().position(|input| !input.has_times()) {
            return Err(TraceError::Option {
                key: "clock".to_owned(),
                found: format!("common, and no times in the trace of `{}`", self.tenants[index]),
                expected: "times in every trace, or `own`".to_owned(),
            });
        }
        if let Some(earliest) = self.inputs.iter().filter_map(Input::origin_ns).min() {
            self.inputs.iter_mut().for_each(|input| input.set_origin(earliest));
        }
        Ok(())
    }

    /// Appends up to `max` requests to `batch` in order of time, returns how many; 0 means the
    /// end. Errors: those of the readers.
    pub fn read(&mut self, batch: &mut WorkloadBatch, max: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < max {
            let Some(Reverse((_, tenant))) = self.heads.pop() else { break };
            // This input gives its requests until another one's is due.
            let until = self.heads.peek().map(|Reverse(head)| *head);
            let input = &mut self.inputs[usize::from(tenant)];
            count += input.take(tenant, until, max - count, batch, &mut self.spaces)?;
            if let Some(time_ns) = input.head()? {
                self.heads.push(Reverse((time_ns, tenant)));
            }
        }
        Ok(count)
    }

    /// Names of the tenants, in the order given.
    pub fn tenants(&self) -> &[String] {
        &self.tenants
    }

    /// The address spaces met so far.
    pub fn spaces(&self) -> &[SharedSpace] {
        &self.spaces
    }

    /// Whether a tenant's trace has times; without, requests are a nanosecond apart. Nothing for an
    /// unknown tenant.
    pub fn has_times(&self, tenant: u16) -> Option<bool> {
        self.inputs.get(usize::from(tenant)).map(Input::has_times)
    }

    /// Records of a tenant's trace left out so far; nothing for an unknown tenant.
    pub fn skipped(&self, tenant: u16) -> Option<&Skipped> {
        self.inputs.get(usize::from(tenant)).map(Input::skipped)
    }

    /// Requests of a tenant whose time ran backwards so far: moved up to the latest time before
    /// them, or sorted when asked. Nothing for an unknown tenant.
    pub fn out_of_order(&self, tenant: u16) -> Option<u64> {
        self.inputs.get(usize::from(tenant)).map(Input::out_of_order)
    }

    /// Requests to come in all traces at the beginning, when every format states it and no tenant
    /// selects a volume; for progress.
    pub fn requests_hint(&self) -> Option<u64> {
        self.inputs.iter().map(Input::requests_hint).sum()
    }
}

fn check_names(tenants: &[TenantInput]) -> Result<(), TraceError> {
    let refuse = |found: String, expected: &str| {
        Err(TraceError::Option { key: "tenant".to_owned(), found, expected: expected.to_owned() })
    };
    if tenants.is_empty() || tenants.len() > usize::from(u16::MAX) {
        return refuse(format!("{} tenants", tenants.len()), "1 to 65535 tenants");
    }
    let mut names: Vec<&str> = tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => refuse(pair[0].to_owned(), "a name of its own for each tenant"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
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
        let records = times_and_volumes.iter().enumerate().map(|(index, &(time_ns, volume))| {
            Record { time_ns, offset_bytes: index as u64, length_bytes: 1, op: Op::Read, volume }
        });
        let most = times_and_volumes.iter().map(|(_, volume)| volume + 1).max().unwrap_or(0);
        Box::new(Listed {
            records: records.collect(),
            next: 0,
            volumes: (0..most).map(|volume| format!("v{volume}")).collect(),
            skipped: Skipped::default(),
        })
    }

    fn all(workload: &mut Workload, step: usize) -> WorkloadBatch {
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
        let mut workload = Workload::open(vec![a, b]).unwrap();
        assert_eq!(workload.requests_hint(), Some(6));
        let batch = all(&mut workload, 2);
        assert_eq!(batch.time_ns, [0, 5, 10, 15, 20, 25]);
        assert_eq!(batch.tenant, [0, 1, 0, 1, 0, 1]);
        assert_eq!(batch.space, [0, 1, 0, 1, 2, 1]);
        let names: Vec<_> =
            workload.spaces().iter().map(|s| (s.tenant, s.volume.as_str())).collect();
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
            let batch = all(&mut Workload::open_on(clock, inputs(sort)).unwrap(), 9);
            batch.time_ns.into_iter().zip(batch.tenant).collect::<Vec<_>>()
        };
        assert_eq!(times(MergeClock::Own, false), [(0, 0), (10, 1), (40, 0), (40, 0)]);
        assert_eq!(times(MergeClock::Common, false), [(0, 0), (20, 1), (40, 0), (40, 0)]);
        assert_eq!(times(MergeClock::Common, true), [(0, 0), (20, 1), (30, 0), (40, 0)]);
        // The later trace is not moved by its own first record, whatever its place in the list.
        let mut late = TenantInput::reader("late", listed(&[(500, 0)]));
        (late.start, late.time_scale) = (Nanos(7), 2.0);
        let early = TenantInput::reader("early", listed(&[(400, 0)]));
        let mut workload = Workload::open_on(MergeClock::Common, vec![late, early]).unwrap();
        let batch = all(&mut workload, 9);
        assert_eq!((batch.time_ns, batch.tenant), (vec![0, 207], vec![1, 0]));
    }

    #[test]
    fn a_scale_beyond_bounds_is_refused() {
        let error = |scale: f64, times: &[(u64, u32)]| {
            let mut input = TenantInput::reader("a", listed(times));
            input.time_scale = scale;
            let mut workload = match Workload::open(vec![input]) {
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
        let mut workload = Workload::open(vec![TenantInput::reader("a", listed(&times))]).unwrap();
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
            all(&mut Workload::open(vec![input]).unwrap(), 2).time_ns
        };
        for sort in [false, true] {
            assert_eq!(taken(Stop::At(Nanos(75)), None, sort), [5, 35, 35], "75 is too late");
            assert_eq!(taken(Stop::At(Nanos(5)), None, sort), [0; 0]);
            assert_eq!(taken(Stop::After(4), None, sort), [5, 35, 35, 75]);
            assert_eq!(taken(Stop::After(9), None, sort), [5, 35, 35, 75, 85]);
            assert_eq!(taken(Stop::After(1), Some("v1"), sort), [35]);
            assert_eq!(taken(Stop::First(Nanos(75), 9), None, sort), [5, 35, 35]);
            assert_eq!(taken(Stop::First(Nanos(75), 2), None, sort), [5, 35]);
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
            let mut workload = Workload::open(vec![input]).unwrap();
            let batch = all(&mut workload, 2);
            assert!(batch.op.iter().all(|op| *op == operation));
            batch.offset_bytes
        };
        assert_eq!(turned(Op::Write, None, false), [1, 2, 4]);
        assert_eq!(
            turned(Op::Read, Some(Stop::After(2)), false),
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
            let batch = all(&mut Workload::open(vec![input]).unwrap(), 100);
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
        let mut workload = Workload::open(vec![input]).unwrap();
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
        let mut workload = Workload::open(vec![input]).unwrap();
        let batch = all(&mut workload, 9);
        assert_eq!((batch.time_ns, batch.space), (vec![30, 70], vec![0, 0]));

        let mut input = TenantInput::reader("a", listed(&times));
        input.volume = Some("v7".to_owned());
        let error = Workload::open(vec![input]).err().unwrap().to_string();
        assert!(error.contains("`v7`") && error.contains("nearest is `v"), "{error}");
    }

    #[test]
    fn senseless_inputs_are_refused() {
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut input = TenantInput::reader("a", listed(&[(1, 0)]));
            input.time_scale = scale;
            assert!(Workload::open(vec![input]).is_err(), "{scale}");
        }
        assert!(Workload::open(Vec::new()).is_err());
        let twice = vec![
            TenantInput::reader("a", listed(&[(1, 0)])),
            TenantInput::reader("a", listed(&[(1, 0)])),
        ];
        assert!(Workload::open(twice).is_err());
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
            let batch = all(&mut Workload::open(inputs).unwrap(), step);
            let merged: Vec<_> = (0..batch.len())
                .map(|i| (batch.time_ns[i], batch.tenant[i], batch.offset_bytes[i]))
                .collect();
            prop_assert_eq!(merged, expected);
        }
    }
}
