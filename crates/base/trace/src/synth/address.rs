//! Where requests go.
//!
//! For: address patterns, alone, mixed and in phases. Must never know: arrivals, kinds of requests.
//! Units: bytes. A region is cut into slots of `align` bytes; patterns draw slots. A request that
//! would end beyond its region is moved back into it.

use super::permutation::Permutation;
use super::zipf::Zipf;
use cachewright_types::{Rng, Seed};

/// What is to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PatternSpec {
    Region(AddressRegion, AddressShape),
    /// Alternatives with weights.
    Mix(Vec<(u64, PatternSpec)>),
    /// One after another, over and over or staying at the last.
    Phases(Vec<(Length, PatternSpec)>, bool),
}

/// How long a phase lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Length {
    Requests(u64),
    Nanos(u64),
}

/// A part of the address space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AddressRegion {
    pub(super) offset: u64,
    pub(super) span: u64,
    pub(super) align: u64,
    /// Whether slots stand in a random order.
    pub(super) scattered: bool,
}

/// How slots of a region are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AddressShape {
    Uniform,
    Zipf {
        alpha: f64,
    },
    /// A share of the requests goes to a share of the slots.
    HotCold {
        hot_space: f64,
        hot_access: f64,
    },
    /// Each request begins where the one before ended; after `run` bytes at a random slot.
    Sequential {
        run: Option<u64>,
    },
    /// All slots in order, over and over.
    Loop,
}

/// Draws addresses one after another.
pub(super) enum AddressStream {
    Region(Cursor),
    Mix { parts: Vec<(u64, AddressStream)>, weight: u64, rng: Rng },
    Phases(Phases),
}

/// Draws within a region.
pub(super) struct Cursor {
    region: AddressRegion,
    slots: u64,
    shape: AddressShape,
    zipf: Zipf,
    order: Option<Permutation>,
    rng: Rng,
    /// Next byte of a sequential run, or next slot of a loop.
    next: u64,
    /// Bytes left of the run.
    left: u64,
}

/// Draws from the phase that it is time for.
pub(super) struct Phases {
    phases: Vec<(Length, AddressStream)>,
    repeat: bool,
    current: usize,
    /// Requests drawn in this phase.
    drawn: u64,
    /// When this phase began.
    since_ns: u64,
}

impl AddressStream {
    pub(super) fn new(spec: &PatternSpec, seed: Seed) -> AddressStream {
        let part = |index: usize, spec: &PatternSpec| {
            AddressStream::new(spec, seed.derive(&index.to_string()))
        };
        match spec {
            PatternSpec::Region(region, shape) => {
                AddressStream::Region(Cursor::new(*region, *shape, seed))
            }
            PatternSpec::Mix(specs) => AddressStream::Mix {
                weight: specs.iter().map(|(weight, _)| weight).sum(),
                parts: specs.iter().enumerate().map(|(i, (w, spec))| (*w, part(i, spec))).collect(),
                rng: seed.derive("mix").rng(),
            },
            PatternSpec::Phases(specs, repeat) => AddressStream::Phases(Phases {
                phases: specs.iter().enumerate().map(|(i, (l, s))| (*l, part(i, s))).collect(),
                repeat: *repeat,
                current: 0,
                drawn: 0,
                since_ns: 0,
            }),
        }
    }

    /// First byte of the next request, of `length` bytes, `now_ns` after the tenant's start.
    pub(super) fn next(&mut self, length: u64, now_ns: u64) -> u64 {
        match self {
            AddressStream::Region(cursor) => cursor.next(length),
            AddressStream::Mix { parts, weight, rng } => {
                let drawn = rng.below(*weight);
                let mut below = 0;
                let chosen = parts.iter_mut().find(|(weight, _)| {
                    below += *weight;
                    drawn < below
                });
                chosen.map_or(0, |(_, part)| part.next(length, now_ns))
            }
            AddressStream::Phases(phases) => phases.next(length, now_ns),
        }
    }
}

impl Phases {
    fn next(&mut self, length: u64, now_ns: u64) -> u64 {
        // A pause may outlast several phases; whole rounds of timed phases are passed at once.
        let round_ns: u64 = self.phases.iter().fold(0, |sum: u64, (length, _)| match length {
            Length::Nanos(ns) => sum.saturating_add(*ns),
            Length::Requests(_) => sum,
        });
        let timed = self.phases.iter().all(|(length, _)| matches!(length, Length::Nanos(_)));
        if timed && self.repeat {
            self.since_ns += now_ns.saturating_sub(self.since_ns) / round_ns * round_ns;
        }
        for _ in 0..self.phases.len() {
            let last = self.current + 1 == self.phases.len();
            let over = match self.phases[self.current].0 {
                Length::Requests(count) => self.drawn >= count,
                Length::Nanos(ns) => now_ns.saturating_sub(self.since_ns) >= ns,
            };
            if !over || (last && !self.repeat) {
                break;
            }
            self.since_ns = match self.phases[self.current].0 {
                Length::Requests(_) => now_ns,
                Length::Nanos(ns) => self.since_ns.saturating_add(ns),
            };
            self.current = if last { 0 } else { self.current + 1 };
            self.drawn = 0;
        }
        self.drawn += 1;
        self.phases[self.current].1.next(length, now_ns)
    }
}

impl Cursor {
    fn new(region: AddressRegion, shape: AddressShape, seed: Seed) -> Cursor {
        let slots = (region.span / region.align).max(1);
        let alpha = if let AddressShape::Zipf { alpha } = shape { alpha } else { 0.0 };
        let order = Permutation::new(slots, seed.derive("order"));
        Cursor {
            region,
            slots,
            shape,
            zipf: Zipf::new(slots, alpha),
            order: region.scattered.then_some(order),
            rng: seed.derive("draw").rng(),
            next: 0,
            left: match shape {
                AddressShape::Sequential { run: Some(_) } => 0,
                _ => u64::MAX,
            },
        }
    }

    fn next(&mut self, length: u64) -> u64 {
        let slot = match self.shape {
            AddressShape::Uniform => self.rng.below(self.slots),
            AddressShape::Zipf { .. } => self.zipf.sample(&mut self.rng) - 1,
            AddressShape::HotCold { hot_space, hot_access } => {
                self.hot_or_cold(hot_space, hot_access)
            }
            AddressShape::Loop => {
                let slot = self.next;
                self.next = (slot + 1) % self.slots;
                slot
            }
            AddressShape::Sequential { run } => return self.sequential(run, length),
        };
        let slot = self.order.map_or(slot, |order| order.apply(slot));
        self.place(slot * self.region.align, length)
    }

    fn hot_or_cold(&mut self, hot_space: f64, hot_access: f64) -> u64 {
        let hot = ((self.slots as f64 * hot_space).round() as u64).clamp(1, self.slots);
        let cold = self.slots - hot;
        if cold == 0 || self.rng.unit() < hot_access {
            self.rng.below(hot)
        } else {
            hot + self.rng.below(cold)
        }
    }

    fn sequential(&mut self, run: Option<u64>, length: u64) -> u64 {
        if self.left == 0 {
            self.next = self.rng.below(self.slots) * self.region.align;
            self.left = run.unwrap_or(u64::MAX);
        }
        if length > self.region.span.saturating_sub(self.next) {
            self.next = 0;
        }
        let start = self.next;
        self.next = start.saturating_add(length);
        if run.is_some() {
            self.left = self.left.saturating_sub(length);
        }
        self.place(start, length)
    }

    /// The address of byte `start` of the region, moved back so that the request ends within it.
    fn place(&self, start: u64, length: u64) -> u64 {
        let last = self.region.span.saturating_sub(length);
        let last = last - last % self.region.align;
        self.region.offset + if start + length > self.region.span { last.min(start) } else { start }
    }
}
