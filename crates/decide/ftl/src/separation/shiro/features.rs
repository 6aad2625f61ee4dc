//! What Shiro knows of one page write, and its form as inputs of the model.
//!
//! For: six features (paper, section III-B) kept up from requests, and their encoding as hex digits
//! (or, to compare, as logarithms). Must never know: models, labels. Units: pages and requests;
//! "recent" means counters that are halved at every window. Memory: 4 bytes per chunk of 1 MiB.

use crate::HostRequest;
use std::collections::VecDeque;

/// Bytes of the larger area whose requests are counted (AutoStream, SYSTOR'17, uses 1 to 2 MiB).
const CHUNK_BYTES: u32 = 1 << 20;
/// Requests looked back on for a sequential run (paper, section III-B).
const RUN_REQUESTS: usize = 32;
/// Consecutive bytes that make a request sequential (paper, section III-B).
const RUN_BYTES: u64 = 128 << 10;
/// Hex digits per feature: lifetime, length, sequential, chunk writes, chunk reads, write share.
const DIGITS: [usize; 6] = [8, 3, 1, 4, 4, 4];
/// Digits of all features.
pub const HEX_INPUTS: usize = 24;

/// The features of one page write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Pages the host wrote between the last two writes of this page; 0 if there was one.
    pub previous_lifetime: u32,
    /// Pages of the request.
    pub request_pages: u32,
    /// Whether the request ends a run of 128 KiB within the last 32 writes.
    pub sequential: bool,
    /// Recent write requests to the page's chunk.
    pub chunk_writes: u16,
    /// Recent read requests to the page's chunk.
    pub chunk_reads: u16,
    /// Writes among recent requests, 65535 for all.
    pub write_share: u16,
}

impl Features {
    /// The hex digits of all features, each from 0 to 15, in the order of [`Encoding::Hex`].
    #[inline]
    pub fn hex_digits(&self) -> [u8; HEX_INPUTS] {
        let length = self.request_pages.min(0xFFF);
        let sequential = u32::from(self.sequential);
        let writes = u64::from(self.chunk_writes);
        let low = u64::from(self.previous_lifetime)
            | u64::from(length | sequential << 12) << 32
            | writes << 48;
        let high = u32::from(self.chunk_reads) | u32::from(self.write_share) << 16;
        let mut digits = [0; HEX_INPUTS];
        let (first, last) = digits.split_at_mut(16);
        first.iter_mut().enumerate().for_each(|(i, digit)| *digit = (low >> (4 * i) & 15) as u8);
        last.iter_mut().enumerate().for_each(|(i, digit)| *digit = (high >> (4 * i) & 15) as u8);
        digits
    }
}

/// How features become inputs in `[0, 1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Each hex digit, divided by 15, is an input, the lowest digit first; 24 inputs. A feature
    /// beyond its digits becomes their highest number.
    Hex,
    /// log2(1 + feature), divided by the bits of its digits; 6 inputs.
    Log,
}

impl Encoding {
    /// Inputs of the model.
    pub fn inputs(self) -> usize {
        match self {
            Encoding::Hex => DIGITS.iter().sum(),
            Encoding::Log => DIGITS.len(),
        }
    }

    /// A name per input, in order.
    pub fn names(self) -> Vec<String> {
        let features = [
            "previous_lifetime",
            "request_pages",
            "sequential",
            "chunk_writes",
            "chunk_reads",
            "write_share",
        ];
        match self {
            Encoding::Log => features.map(str::to_owned).to_vec(),
            Encoding::Hex => (features.iter().zip(DIGITS))
                .flat_map(|(name, digits)| (0..digits).map(move |i| format!("{name}.{i}")))
                .collect(),
        }
    }

    /// Appends the inputs of one write.
    #[inline]
    pub fn append(self, features: &Features, inputs: &mut Vec<f32>) {
        let numbers = [
            features.previous_lifetime,
            features.request_pages,
            u32::from(features.sequential),
            u32::from(features.chunk_writes),
            u32::from(features.chunk_reads),
            u32::from(features.write_share),
        ];
        for (number, digits) in numbers.into_iter().zip(DIGITS) {
            let max = (1_u64 << (4 * digits)) - 1;
            let number = u64::from(number).min(max);
            match self {
                Encoding::Hex => {
                    let digit = |i: usize| (number >> (4 * i) & 15) as f32 / 15.0;
                    inputs.extend((0..digits).map(digit));
                }
                Encoding::Log => inputs.push(log2(number + 1) / (4 * digits) as f32),
            }
        }
    }
}

/// log2 by its whole part and a straight line between powers of two: the same bits everywhere.
fn log2(number: u64) -> f32 {
    let whole = 63 - number.leading_zeros();
    whole as f32 + (number as f32 / (1_u64 << whole) as f32 - 1.0)
}

/// Recent requests to one chunk.
#[derive(Clone, Copy, Debug, Default)]
struct ChunkCounters {
    writes: u16,
    reads: u16,
}

/// Keeps what the features need of the requests seen so far.
#[derive(Clone, Debug)]
pub struct Tracker {
    page_bytes: u32,
    chunk_pages: u32,
    chunks: Vec<ChunkCounters>,
    /// First page and end of the last writes, newest last.
    runs: VecDeque<(u32, u32)>,
    reads: u32,
    writes: u32,
    request: Features,
}

impl Tracker {
    /// Nothing seen; `pages` of `page_bytes` each.
    pub fn new(pages: u32, page_bytes: u32) -> Tracker {
        let chunk_pages = (CHUNK_BYTES / page_bytes.max(1)).max(1);
        Tracker {
            page_bytes,
            chunk_pages,
            chunks: vec![ChunkCounters::default(); pages.div_ceil(chunk_pages) as usize],
            runs: VecDeque::with_capacity(RUN_REQUESTS + 1),
            reads: 0,
            writes: 0,
            request: Features::default(),
        }
    }

    /// A request begins.
    pub fn on_request(&mut self, request: &HostRequest) {
        let &HostRequest { first_page, pages, write } = request;
        let end = first_page.saturating_add(pages);
        let first_chunk = (first_page / self.chunk_pages) as usize;
        let end_chunk = (end.div_ceil(self.chunk_pages) as usize).min(self.chunks.len());
        for chunk in self.chunks.get_mut(first_chunk..end_chunk).unwrap_or_default() {
            let counter = if write { &mut chunk.writes } else { &mut chunk.reads };
            *counter = counter.saturating_add(1);
        }
        if !write {
            self.reads = self.reads.saturating_add(1);
            return;
        }
        self.writes = self.writes.saturating_add(1);
        self.runs.push_back((first_page, end));
        if self.runs.len() > RUN_REQUESTS + 1 {
            self.runs.pop_front();
        }
        let all = u64::from(self.reads) + u64::from(self.writes);
        self.request = Features {
            request_pages: pages,
            sequential: self.run_bytes() >= RUN_BYTES,
            write_share: (u64::from(self.writes) * 65535 / all) as u16,
            ..Features::default()
        };
    }

    /// Bytes of the run that the newest write ends.
    fn run_bytes(&self) -> u64 {
        let (mut pages, mut next) = (0_u64, None);
        for &(first, end) in self.runs.iter().rev() {
            if next.is_some_and(|next| next != end) {
                break;
            }
            pages += u64::from(end - first);
            next = Some(first);
        }
        pages * u64::from(self.page_bytes)
    }

    /// The features of a page of the request at hand.
    #[inline]
    pub fn features(&self, page: u32, previous_lifetime: u32) -> Features {
        let chunk = self.chunks.get((page / self.chunk_pages) as usize);
        let ChunkCounters { writes, reads } = chunk.copied().unwrap_or_default();
        Features { previous_lifetime, chunk_writes: writes, chunk_reads: reads, ..self.request }
    }

    /// A window ends: what was recent counts half.
    pub fn halve(&mut self) {
        for chunk in &mut self.chunks {
            chunk.writes /= 2;
            chunk.reads /= 2;
        }
        self.reads /= 2;
        self.writes /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(first_page: u32, pages: u32) -> HostRequest {
        HostRequest { first_page, pages, write: true }
    }

    #[test]
    fn hex_digits_stand_lowest_first_and_saturate() {
        let features = Features {
            previous_lifetime: 0x1A2F,
            request_pages: 5000,
            sequential: true,
            chunk_writes: 16,
            chunk_reads: 0,
            write_share: 0xF01C,
        };
        let mut inputs = Vec::new();
        Encoding::Hex.append(&features, &mut inputs);
        let digits: Vec<u32> = inputs.iter().map(|x| (x * 15.0).round() as u32).collect();
        let lifetime = [15, 2, 10, 1, 0, 0, 0, 0];
        assert_eq!(digits[..8], lifetime);
        assert_eq!(digits[8..], [15, 15, 15, 1, 0, 1, 0, 0, 0, 0, 0, 0, 12, 1, 0, 15]);
        assert_eq!(inputs.len(), Encoding::Hex.inputs());
        assert_eq!(Encoding::Hex.names().len(), HEX_INPUTS);
        assert_eq!(features.hex_digits().map(u32::from)[..], digits[..]);
    }

    #[test]
    fn logarithms_lie_between_0_and_1() {
        let features = Features { previous_lifetime: u32::MAX, ..Features::default() };
        let mut inputs = Vec::new();
        Encoding::Log.append(&features, &mut inputs);
        assert_eq!(inputs.len(), 6);
        assert!((inputs[0] - 1.0).abs() < 1e-6 && inputs[1] == 0.0);
        assert_eq!([1, 2, 3, 4].map(log2), [0.0, 1.0, 1.5, 2.0]);
    }

    #[test]
    fn a_run_needs_128_kib_within_its_requests() {
        let mut tracker = Tracker::new(1 << 16, 4096);
        for first in (0..31).chain([100, 31]) {
            tracker.on_request(&write(first, 1));
            assert!(!tracker.features(first, 0).sequential, "{first}");
        }
        (200..231).for_each(|first| tracker.on_request(&write(first, 1)));
        assert!(!tracker.features(230, 0).sequential, "31 pages are 124 KiB");
        tracker.on_request(&write(231, 1));
        assert!(tracker.features(231, 0).sequential, "32 pages are 128 KiB");
    }

    #[test]
    fn chunks_count_requests_and_forget_by_halves() {
        let mut tracker = Tracker::new(1024, 4096);
        (0..4).for_each(|_| tracker.on_request(&write(255, 2)));
        tracker.on_request(&HostRequest { first_page: 256, pages: 1, write: false });
        let (low, high) = (tracker.features(0, 7), tracker.features(256, 7));
        assert_eq!((low.chunk_writes, low.chunk_reads), (4, 0));
        assert_eq!((high.chunk_writes, high.chunk_reads), (4, 1));
        assert_eq!((low.previous_lifetime, low.request_pages), (7, 2));
        tracker.halve();
        assert_eq!(tracker.features(256, 7).chunk_writes, 2);
        tracker.on_request(&write(0, 1));
        assert_eq!(tracker.features(0, 7).write_share, 65535, "2 + 1 writes, 0 reads");
    }
}
