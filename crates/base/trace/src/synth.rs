//! Synthetic tenants described in TOML, as one more trace format.
//!
//! Units: strict in the description, nanoseconds and bytes here. Same description and seed, same
//! requests. Each tenant draws arrivals, addresses, sizes and kinds from streams of its own, so
//! that a change to one leaves the others. The description's keys are documented in docs/synth.md.

mod address;
mod spec;
mod trap;

use crate::formats::registry::{NO_LINES, TraceFormat, Unit};
use crate::reader::{RequestBound, declared, shown};
use crate::{Batch, ByteSource, OpenOptions, Record, Skipped, TraceError, TraceReader};
use address::AddressStream;
pub use address::Zipf;
use cachewright_types::declare;
use cachewright_types::declare::Declared;
use cachewright_types::{Op, Rng, Seed};
use spec::{Mistake, SynthSpec, SynthTenantSpec};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "synth",
    doc: "TOML description of seeded synthetic tenants (first line `[synth]`)",
    source: "docs/synth.md",
    time: Unit::Stated,
    offset: Unit::Stated,
    length: Unit::Stated,
    detected: "-",
    to_say: &[],
    options: SynthOptions::keys,
    recognise,
    near_miss: NO_LINES,
    open: |source, options| Ok(Box::new(Synth::open(source, options)?)),
};

declare! {
    /// Options of reading a description.
    pub struct SynthOptions {
        /// seed in place of the description's
        seed: Option<u64> = None, "";
    }
}

/// Longest description that is read.
const LONGEST_BYTES: usize = 1 << 20;
/// No request is later than this, some 292 years.
const LATEST_NS: f64 = 9.2e18;

/// The first line that says something must be the table of this format.
fn recognise(head: &[u8]) -> u8 {
    let said = head
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty() && !line.starts_with(b"#"));
    let table = said.and_then(|line| line.split(|byte| *byte == b'#').next());
    if table.is_some_and(|line| line.trim_ascii() == b"[synth]") { 97 } else { 0 }
}

/// One tenant's requests.
struct SynthTenant {
    arrival: ArrivalTimes,
    address: AddressStream,
    sizes: Vec<(u64, u64)>,
    weight: u64,
    read_share: f64,
    left: Option<u64>,
    until_ns: f64,
    start_ns: f64,
    size_rng: Rng,
    op_rng: Rng,
}

impl SynthTenant {
    fn new(spec: &SynthTenantSpec, seed: Seed) -> SynthTenant {
        let stream = |what: &str| seed.derive(&format!("synth/{}/{what}", spec.name));
        SynthTenant {
            arrival: ArrivalTimes::new(&spec.arrival, stream("arrival").rng()),
            address: AddressStream::new(&spec.pattern, stream("address")),
            weight: spec.sizes.iter().map(|(_, weight)| weight).sum(),
            sizes: spec.sizes.clone(),
            read_share: spec.read_share,
            left: spec.count,
            until_ns: spec.duration_ns.map_or(LATEST_NS, |ns| ns as f64),
            start_ns: spec.start_ns as f64,
            size_rng: stream("size").rng(),
            op_rng: stream("op").rng(),
        }
    }

    /// Time of the next request, nothing when the tenant is done.
    fn next_time_ns(&mut self) -> Option<u64> {
        if self.left == Some(0) {
            return None;
        }
        self.left = self.left.map(|left| left - 1);
        let since = self.arrival.next_ns();
        let time_ns = self.start_ns + since;
        (since < self.until_ns && time_ns < LATEST_NS).then_some(time_ns as u64)
    }

    fn request(&mut self, time_ns: u64, volume: u32) -> Record {
        let length_bytes = self.size();
        let since_ns = time_ns.saturating_sub(self.start_ns as u64);
        let place = self.address.next(length_bytes, since_ns);
        let read_share = place.read_share.unwrap_or(self.read_share);
        let op = if self.op_rng.unit() < read_share { Op::Read } else { Op::Write };
        Record { time_ns, offset_bytes: place.offset_bytes, length_bytes, op, volume }
    }

    fn size(&mut self) -> u64 {
        let mut drawn = self.size_rng.below(self.weight);
        for (size, weight) in &self.sizes {
            if drawn < *weight {
                return *size;
            }
            drawn -= weight;
        }
        0
    }
}

/// All tenants' requests by time; equal times in the order of the description.
struct Synth {
    tenants: Vec<SynthTenant>,
    due: BinaryHeap<Reverse<(u64, u32)>>,
    volumes: Vec<String>,
    requests: Option<u64>,
    skipped: Skipped,
}

impl Synth {
    fn open(source: ByteSource, options: &OpenOptions) -> Result<Synth, TraceError> {
        let path = source.path().to_owned();
        let mut bytes = vec![0; LONGEST_BYTES + 1];
        let count = source.into_stream().fill(&mut bytes)?;
        let refuse = |mistake: Mistake| TraceError::File {
            path: path.clone(),
            found: mistake.found,
            expected: mistake.expected,
        };
        if count > LONGEST_BYTES {
            return Err(refuse(Mistake::new("more than 1 MiB", "a description in TOML")));
        }
        let text = std::str::from_utf8(&bytes[..count])
            .map_err(|_| refuse(Mistake::new("bytes that are not UTF-8", "TOML")))?;
        let own: SynthOptions = declared(&options.format_options)?;
        let spec = SynthSpec::parse(text, own.seed).map_err(refuse)?;
        let bound = RequestBound::from_options(options);
        for tenant in &spec.tenants {
            let longest = tenant.sizes.iter().map(|(size, _)| *size).max().unwrap_or(0);
            if bound.refuses(Op::Read, longest) {
                let found =
                    format!("a size of {longest} B in tenant `{}`", shown(tenant.name.as_bytes()));
                return Err(refuse(Mistake::new(found, bound.expected())));
            }
        }
        let mut synth = Synth {
            tenants: spec
                .tenants
                .iter()
                .map(|tenant| SynthTenant::new(tenant, spec.seed))
                .collect(),
            due: BinaryHeap::new(),
            volumes: spec.tenants.iter().map(|tenant| tenant.name.clone()).collect(),
            requests: spec
                .tenants
                .iter()
                .map(|tenant| tenant.count.filter(|_| tenant.duration_ns.is_none()))
                .try_fold(0_u64, |sum, count| sum.checked_add(count?)),
            skipped: Skipped::default(),
        };
        for (index, tenant) in synth.tenants.iter_mut().enumerate() {
            let first = tenant.next_time_ns();
            synth.due.extend(first.map(|time_ns| Reverse((time_ns, index as u32))));
        }
        Ok(synth)
    }
}

impl TraceReader for Synth {
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < max {
            let Some(mut head) = self.due.peek_mut() else { break };
            let Reverse((time_ns, volume)) = *head;
            let tenant = &mut self.tenants[volume as usize];
            batch.push(tenant.request(time_ns, volume));
            count += 1;
            match tenant.next_time_ns() {
                Some(next_ns) => *head = Reverse((next_ns, volume)),
                None => {
                    std::collections::binary_heap::PeekMut::pop(head);
                }
            }
        }
        Ok(count)
    }

    fn volumes(&self) -> &[String] {
        &self.volumes
    }

    fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    fn requests_hint(&self) -> Option<u64> {
        self.requests
    }
}

/// What is to be drawn.
#[derive(Clone, Debug, PartialEq)]
struct ArrivalSpec {
    poisson: bool,
    /// Requests per nanosecond.
    rate: f64,
    bursts: Option<Bursts>,
}

/// The rate holds for `on_ns`, then `off_rate` for `off_ns`, and so on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bursts {
    on_ns: f64,
    off_ns: f64,
    /// Requests per nanosecond between bursts.
    off_rate: f64,
}

/// Draws arrivals one after another. Bursts make the rate a step function of time. Each arrival
/// uses up one unit of its integral (constant) or an exponential amount (Poisson, the exact
/// inhomogeneous process).
struct ArrivalTimes {
    spec: ArrivalSpec,
    rng: Rng,
    now_ns: f64,
}

impl ArrivalTimes {
    fn new(spec: &ArrivalSpec, rng: Rng) -> ArrivalTimes {
        ArrivalTimes { spec: spec.clone(), rng, now_ns: 0.0 }
    }

    /// The next arrival.
    fn next_ns(&mut self) -> f64 {
        let work = if self.spec.poisson { -(1.0 - self.rng.unit()).ln() } else { 1.0 };
        self.now_ns = match self.spec.bursts {
            None => self.now_ns + work / self.spec.rate,
            Some(bursts) => advance(self.now_ns, work, self.spec.rate, bursts),
        };
        self.now_ns
    }
}

/// When the integral of the rate from `now_ns` on reaches `work`.
fn advance(now_ns: f64, work: f64, rate: f64, bursts: Bursts) -> f64 {
    let cycle_ns = bursts.on_ns + bursts.off_ns;
    let cycle_work = rate * bursts.on_ns + bursts.off_rate * bursts.off_ns;
    let cycles = (work / cycle_work).floor();
    let mut now_ns = now_ns + cycles * cycle_ns;
    let mut work = work - cycles * cycle_work;
    // What is left takes less than a cycle: the rest of this part, two more and the part's start.
    for _ in 0..4 {
        let phase_ns = now_ns % cycle_ns;
        let (part_rate, end_ns) = if phase_ns < bursts.on_ns {
            (rate, bursts.on_ns)
        } else {
            (bursts.off_rate, cycle_ns)
        };
        let part_work = part_rate * (end_ns - phase_ns);
        if part_work >= work && part_rate > 0.0 {
            return now_ns + work / part_rate;
        }
        work -= part_work;
        now_ns += end_ns - phase_ns;
    }
    now_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::testing::{bad_bytes, read_bytes};
    use crate::formats::open_bytes;
    use crate::formats::testing::options;
    use crate::recognise_bytes;
    use std::collections::{BTreeMap, BTreeSet};

    const HEAD: &str = "# two tenants\n\n[synth] # here\nseed = 7\n";

    fn tenant(name: &str, rest: &str, pattern: &str) -> String {
        format!(
            "[[tenant]]\nname = \"{name}\"\narrival = {{ kind = \"constant\", rate = \"1/us\" }}\n\
         read_share = 0.5\n{rest}\n[tenant.pattern]\n{pattern}\n"
        )
    }

    fn one(pattern: &str) -> Vec<Record> {
        let text = format!("{HEAD}{}", tenant("a", "size = \"4KiB\"\ncount = 2000", pattern));
        read_bytes(&options("synth", &[]), text.as_bytes()).0
    }

    fn offsets(pattern: &str) -> Vec<u64> {
        one(pattern).iter().map(|record| record.offset_bytes).collect()
    }

    fn refused(text: &str) -> String {
        bad_bytes(&options("synth", &[]), text.as_bytes())
    }

    #[test]
    fn a_description_is_recognised_and_repeats_itself() {
        let sizes = "sizes = [{ size = \"4KiB\", weight = 3 }, { size = \"64KiB\", weight = 1 }]";
        let zipf = "kind = \"zipf\"\nspan = \"16MiB\"\nalpha = 1.0";
        let text = format!(
            "{HEAD}{}{}",
            tenant("a", &format!("{sizes}\nduration = \"5ms\""), zipf),
            tenant("b", "size = \"1KiB\"\ncount = 1000\nstart = \"1ms\"", zipf)
        );
        assert_eq!(recognise_bytes(text.as_bytes()).unwrap().name, "synth");
        let (records, volumes) = read_bytes(&OpenOptions::default(), text.as_bytes());
        assert_eq!(volumes, ["a", "b"]);
        let of = |volume: u32| records.iter().filter(move |record| record.volume == volume);
        assert_eq!((of(0).count(), of(1).count()), (4999, 1000));
        assert!(records.is_sorted_by_key(|record| record.time_ns));
        assert_eq!(of(1).next().unwrap().time_ns, 1_001_000);
        let large = of(0).filter(|record| record.length_bytes == 65_536).count();
        let reads = of(0).filter(|record| record.op == Op::Read).count();
        assert!((1100..1400).contains(&large), "{large}");
        assert!((2300..2700).contains(&reads), "{reads}");
        assert!(records.iter().all(|r| r.offset_bytes + r.length_bytes <= 16 << 20));

        assert_eq!(read_bytes(&OpenOptions::default(), text.as_bytes()).0, records);
        let other = read_bytes(&options("synth", &[("seed", "8")]), text.as_bytes()).0;
        assert_eq!(other.len(), records.len());
        assert_ne!(other, records);
        let longer = format!("{text}{}", tenant("c", "size = \"4KiB\"\ncount = 9", zipf));
        let longer = read_bytes(&OpenOptions::default(), longer.as_bytes()).0;
        let kept: Vec<Record> = longer.into_iter().filter(|record| record.volume < 2).collect();
        assert_eq!(kept, records, "another tenant changes nothing");
    }

    #[test]
    fn sequential_and_loop_visit_in_order() {
        let sequential = offsets("kind = \"sequential\"\nspan = \"4MiB\"\noffset = \"1MiB\"");
        let expected: Vec<u64> = (0..2000).map(|i| (1 << 20) + (i % 1024) * 4096).collect();
        assert_eq!(sequential, expected);
        let looped = offsets("kind = \"loop\"\nspan = \"400KiB\"\nscattered = true");
        assert_eq!(looped[..100], looped[100..200]);
        assert_eq!(looped[..100].iter().collect::<BTreeSet<_>>().len(), 100);
        assert!(!looped[..100].is_sorted());
        let runs = offsets("kind = \"sequential\"\nspan = \"1GiB\"\nrun = \"32KiB\"");
        let steps = runs.windows(2).filter(|pair| pair[1] == pair[0] + 4096).count();
        assert!((1740..=1760).contains(&steps), "7 of 8 follow on: {steps}");
    }

    #[test]
    fn zipf_and_hot_cold_are_skewed() {
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        for offset in offsets("kind = \"zipf\"\nspan = \"4MiB\"\nalpha = 1.2\nscattered = false") {
            *counts.entry(offset).or_default() += 1;
        }
        assert_eq!(
            counts.iter().max_by_key(|(_, count)| **count).map(|(offset, _)| *offset),
            Some(0)
        );
        let hot = "kind = \"hot-cold\"\nspan = \"4MiB\"\nhot_space = 0.1\nhot_access = 0.9\n\
               scattered = false";
        let hits = offsets(hot).iter().filter(|offset| **offset < 102 * 4096).count();
        assert!((1740..1860).contains(&hits), "{hits}");
    }

    #[test]
    fn phases_change_and_mixes_mix() {
        let phases = "kind = \"phases\"\nphase = [\
        { count = 10, pattern = { kind = \"uniform\", span = \"1MiB\" } },\
        { duration = \"5us\", pattern = { kind = \"uniform\", span = \"1MiB\", \
          offset = \"1GiB\" } } ]";
        let far: Vec<bool> = offsets(phases).iter().map(|offset| *offset >= 1 << 30).collect();
        // Ten by count, then those within 5 us of the change, which come one per microsecond.
        assert_eq!(far[..15], [vec![false; 10], vec![true; 5]].concat());
        assert_eq!(far[15..30], far[..15]);
        let mix = "kind = \"mix\"\npart = [\
        { weight = 3, pattern = { kind = \"uniform\", span = \"1MiB\" } },\
        { weight = 1, pattern = { kind = \"loop\", span = \"1MiB\", offset = \"1GiB\" } } ]";
        let far = offsets(mix).iter().filter(|offset| **offset >= 1 << 30).count();
        assert!((430..570).contains(&far), "{far}");
    }

    #[test]
    fn a_phase_or_a_part_has_its_own_share_of_reads() {
        let phases = "kind = \"phases\"\nphase = [\
        { count = 3, read_share = 1.0, pattern = { kind = \"loop\", span = \"1MiB\" } },\
        { count = 2, pattern = { kind = \"mix\", part = [\
          { weight = 1, read_share = 0.0, pattern = { kind = \"loop\", span = \"1MiB\" } }] } } ]";
        let (read, write) = (Op::Read, Op::Write);
        let ops: Vec<Op> = one(phases).iter().map(|record| record.op).collect();
        assert_eq!(ops[..7], [read, read, read, write, write, read, read]);
        // The innermost share holds.
        let inner = phases.replace("{ count = 2,", "{ count = 2, read_share = 1.0,");
        assert_eq!(one(&inner)[3].op, write);
        let refused = refused(&format!(
            "{HEAD}{}",
            tenant("a", "size = \"4KiB\"\ncount = 5", &phases.replace("1.0", "1.5"))
        ));
        assert!(refused.contains("`read_share` of 1.5"), "{refused}");
    }

    #[test]
    fn mistakes_are_explained() {
        let uniform = "kind = \"uniform\"\nspan = \"1MiB\"";
        let sized = "size = \"4KiB\"\ncount = 5";
        let cases = [
            (tenant("a", sized, "kind = \"zipff\""), "`zipf`"),
            (tenant("a", sized, "kind = \"zipf\"\nspan = \"1MiB\""), "no `alpha` in tenant `a`"),
            (tenant("a", sized, "kind = \"uniform\"\nspan = \"1\""), "`span` = `1`"),
            (
                tenant("a", sized, &format!("{uniform}\nalpha = 1.0")),
                "`alpha` of a pattern of kind",
            ),
            (tenant("a", sized, &format!("{uniform}\nspam = 1.0")), "unknown field `spam`"),
            (tenant("a", "count = 5", uniform), "not just one of `size`"),
            (tenant("a", "size = \"4KiB\"", uniform), "neither `count` nor `duration`"),
            (tenant("a", "size = \"2MiB\"\ncount = 1", uniform), "room for the largest request"),
            (tenant("a", sized, uniform).replace("1/us", "1"), "requests per us"),
            (tenant("a", sized, uniform).replace("0.5", "1.5"), "`read_share` of 1.5"),
            (tenant("a", sized, uniform).repeat(2), "two tenants `a`"),
            (tenant("a", sized, "kind = \"mix\""), "an empty list"),
            (tenant("a", sized, "kind = \"phases\""), "no `phase`"),
            (String::new(), "no `tenant`"),
            ("[[tenant".to_owned(), "(line 5)"),
            (tenant("a", sized, uniform).replace("[tenant.pattern]", "pattern = 3\n[x]"), "`kind`"),
        ];
        for (text, expected) in cases {
            let error = refused(&format!("{HEAD}{text}"));
            assert!(error.contains(expected), "`{expected}` not in: {error}");
        }
        assert!(refused("[synth]\nseed = -1\n").contains("(line 2)"));
        let error = refused("tenant = [3]\n[synth]\nseed = 7\n");
        assert!(error.contains("expected a table per tenant"), "{error}");
        let error = refused(&format!("synth = 3\n{}", tenant("a", sized, uniform)));
        assert!(
            error.contains("expected a table with `seed`") && !error.contains("struct"),
            "{error}"
        );
    }

    #[test]
    fn other_text_is_not_taken_for_it() {
        for text in ["", "synth\n", "1,2,3\n[synth]\n", "[synthetic]\n"] {
            assert_eq!(recognise(text.as_bytes()), 0, "{text}");
        }
        assert!(open_bytes("sample", &[0xff; 9], &options("synth", &[])).is_err());
    }

    #[test]
    fn the_examples_are_valid() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../specs/synth");
        let mut count = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let mut reader = crate::open(&path, &OpenOptions::default()).unwrap();
            let mut batch = Batch::default();
            while batch.len() < 10_000 && reader.read(&mut batch, 1000).unwrap() > 0 {}
            assert!(batch.time_ns.is_sorted(), "{}", path.display());
            count += 1;
        }
        assert!(count >= 15, "{count} examples");
    }

    fn arrivals(poisson: bool, bursts: Option<Bursts>, count: usize) -> Vec<f64> {
        let spec = ArrivalSpec { poisson, rate: 0.01, bursts };
        let mut arrival = ArrivalTimes::new(&spec, Seed(9).rng());
        (0..count).map(|_| arrival.next_ns()).collect()
    }

    #[test]
    fn constant_arrivals_keep_their_distance() {
        assert_eq!(arrivals(false, None, 3), [100.0, 200.0, 300.0]);
    }

    #[test]
    fn poisson_gaps_have_the_exponentials_mean_and_deviation() {
        let times = arrivals(true, None, 100_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 100.0).abs() < 1.5, "{mean}");
        assert!((variance.sqrt() - 100.0).abs() < 2.0, "{variance}");
    }

    #[test]
    fn bursts_hold_their_rates() {
        let bursts = Bursts { on_ns: 1000.0, off_ns: 9000.0, off_rate: 0.0 };
        let times = arrivals(false, Some(bursts), 25);
        assert!(times.iter().all(|time| time % 10_000.0 <= 1000.0 + 1e-6), "{times:?}");
        assert_eq!(times[19], 11_000.0);

        let bursts = Bursts { off_rate: 0.001, ..bursts };
        let times = arrivals(true, Some(bursts), 100_000);
        let on = times.iter().filter(|time| *time % 10_000.0 < 1000.0).count() as f64;
        let expected = 100_000.0 * 10.0 / 19.0;
        assert!((on - expected).abs() < 0.02 * expected, "{on} of {expected}");
    }

    #[test]
    fn a_rate_far_below_the_cycle_is_no_endless_loop() {
        let bursts = Bursts { on_ns: 1.0, off_ns: 1.0, off_rate: 0.0 };
        let spec = ArrivalSpec { poisson: false, rate: 1e-15, bursts: Some(bursts) };
        let first = ArrivalTimes::new(&spec, Seed(9).rng()).next_ns();
        assert!((first / 2e15 - 1.0).abs() < 1e-6, "{first}");
    }
}
