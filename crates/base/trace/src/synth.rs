//! Synthetic tenants described in TOML, as one more trace format.
//!
//! For: seeded workloads of known shape. Must never know: caches. Units: strict in the description,
//! nanoseconds and bytes here. Same description and seed, same requests. Each tenant draws
//! arrivals, addresses, sizes and kinds from streams of its own, so that a change to one leaves the
//! others. The description's keys are documented in docs/synth.md.

mod address;
mod arrival;
mod permutation;
mod spec;
mod zipf;

pub use zipf::Zipf;

use self::address::AddressStream;
use self::arrival::ArrivalTimes;
use self::spec::{Mistake, SynthSpec, SynthTenantSpec};
use crate::formats::entry::{NO_LINES, TraceFormat, Unit};
use crate::options::{declared, shown};
use crate::reader::RequestBound;
use crate::{Batch, ByteSource, OpenOptions, Record, Skipped, TraceError, TraceReader};
use cachewright_types::declare::Declared;
use cachewright_types::{Op, Rng, Seed, declare};
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
        let offset_bytes = self.address.next(length_bytes, since_ns);
        let op = if self.op_rng.unit() < self.read_share { Op::Read } else { Op::Write };
        Record { time_ns, offset_bytes, length_bytes, op, volume }
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
        let spec = SynthSpec::parse(text).map_err(refuse)?;
        let bound = RequestBound::from_options(options);
        for tenant in &spec.tenants {
            let longest = tenant.sizes.iter().map(|(size, _)| *size).max().unwrap_or(0);
            if bound.refuses(Op::Read, longest) {
                let found =
                    format!("a size of {longest} B in tenant `{}`", shown(tenant.name.as_bytes()));
                return Err(refuse(Mistake::new(found, bound.expected())));
            }
        }
        let own: SynthOptions = declared(&options.format_options)?;
        let seed = Seed(own.seed.unwrap_or(spec.seed));
        let mut synth = Synth {
            tenants: spec.tenants.iter().map(|tenant| SynthTenant::new(tenant, seed)).collect(),
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

#[cfg(test)]
mod tests;
