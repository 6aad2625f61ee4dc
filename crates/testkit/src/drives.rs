//! The drive of the reference runs, and flows of requests that wait for answers.

use cachewright_device::ssd::SsdParams;
use cachewright_device::{Command, Completion, Device};
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Nanos, Op, Rng, Seed, TenantId, Value};

/// The drive of the reference runs called SMALL (16 GiB, empty, whole map in memory), with `pairs`
/// set over it.
pub fn small(pairs: &[(&str, &str)]) -> SsdParams {
    let mut params = SsdParams::default();
    let base = [
        ("channels", "4"),
        ("chips", "2"),
        ("dies", "1"),
        ("blocks", "512"),
        ("mapping", "ideal"),
        ("fill", "empty"),
        ("reclaim.d", "9"),
    ];
    for (key, text) in base.iter().chain(pairs) {
        params.set(key, &cachewright_types::Value::read(text)).unwrap();
    }
    params
}

/// A flow as MQSim's generator makes them: requests of one size at uniform places.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub tenant: u16,
    pub depth: u64,
    pub count: u64,
    pub length: u64,
    pub align: u64,
    pub read_share: f64,
    /// First byte and bytes of its region.
    pub region: (u64, u64),
    /// Consecutive instead of uniform.
    pub streaming: bool,
    /// Share of the region that the rest of the requests goes to; 0 is none.
    pub hot: f64,
}

impl Flow {
    /// Uniform requests over a region.
    pub fn uniform(length: u64, read_share: f64, depth: u64, count: u64, bytes: u64) -> Flow {
        let region = (0, bytes);
        let (tenant, align, streaming, hot) = (0, length, false, 0.0);
        Flow { tenant, depth, count, length, align, read_share, region, streaming, hot }
    }
}

/// Response times of one flow.
#[derive(Clone, Debug, Default)]
pub struct Times {
    pub all: Vec<u64>,
    pub reads: Vec<u64>,
    pub writes: Vec<u64>,
    pub end: u64,
}

impl Times {
    pub fn mean(values: &[u64]) -> f64 {
        values.iter().sum::<u64>() as f64 / values.len().max(1) as f64
    }

    /// The value of which a share of all lies below, after sorting.
    pub fn quantile(values: &[u64], share: f64) -> u64 {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted[((sorted.len() - 1) as f64 * share) as usize]
    }

    pub fn sum(values: &[u64]) -> u64 {
        values.iter().sum()
    }
}

/// A flow while it runs.
struct Running {
    flow: Flow,
    rng: Rng,
    made: u64,
    next: u64,
    pub times: Times,
}

impl Running {
    fn command(&mut self) -> Command {
        let Flow { length, align, region: (first, bytes), .. } = self.flow;
        let slots = bytes / align;
        let slot = if self.flow.streaming {
            let slot = self.next;
            self.next = if slot + 2 * (length / align) > slots { 0 } else { slot + length / align };
            slot
        } else if self.flow.hot > 0.0 {
            let hot = ((slots as f64 * self.flow.hot) as u64).max(1);
            if self.rng.unit() < self.flow.hot {
                hot + self.rng.below(slots - hot)
            } else {
                self.rng.below(hot)
            }
        } else {
            self.rng.below(slots)
        };
        let slot = slot.min(slots - length / align);
        let op = if self.rng.unit() < self.flow.read_share { Op::Read } else { Op::Write };
        let tag = u64::from(self.flow.tenant) << 48 | u64::from(op == Op::Write) << 47 | self.made;
        self.made += 1;
        let (offset, length) = (Bytes(first + slot * align), Bytes(length));
        Command { tag, op, offset, length, tenant: TenantId(self.flow.tenant) }
    }
}

/// Runs flows that wait for answers until all have ended; checks that every command completes once
/// and that the parts of its time add up. Returns each flow's times.
pub fn run(device: &mut dyn Device, flows: &[Flow], seed: u64) -> Vec<Times> {
    let mut running: Vec<Running> = flows
        .iter()
        .map(|flow| Running {
            flow: *flow,
            rng: Seed(seed).derive(&format!("flow-{}", flow.tenant)).rng(),
            made: 0,
            next: 0,
            times: Times::default(),
        })
        .collect();
    let start = Nanos(1);
    for flow in &mut running {
        for _ in 0..flow.flow.depth.min(flow.flow.count) {
            device.submit(start, flow.command());
        }
    }
    let mut done = Vec::new();
    while let Some(due) = device.next_due() {
        device.advance(due, &mut done);
        for completion in done.drain(..) {
            note(&mut running, &completion, device);
        }
    }
    assert_eq!(device.outstanding(), 0, "nothing is left");
    for flow in &running {
        assert_eq!(flow.times.all.len() as u64, flow.flow.count, "every command completes");
    }
    running.into_iter().map(|flow| flow.times).collect()
}

fn note(running: &mut [Running], completion: &Completion, device: &mut dyn Device) {
    let time = completion.finished.0 - completion.submitted.0;
    assert_eq!(completion.spent.total_ns(), time, "the parts add up");
    let tenant = (completion.tag >> 48) as u16;
    let flow = running.iter_mut().find(|flow| flow.flow.tenant == tenant).unwrap();
    flow.times.all.push(time);
    let write = completion.tag >> 47 & 1 == 1;
    if write {
        flow.times.writes.push(time)
    } else {
        flow.times.reads.push(time)
    }
    flow.times.end = completion.finished.0;
    if flow.made < flow.flow.count {
        let command = flow.command();
        device.submit(completion.finished, command);
    }
}

/// The value of a text of a stack file.
pub fn value(text: &str) -> Value {
    cachewright_types::Value::read(text)
}
