//! The class of each request: sequential, overlapped, strided or random.
//!
//! For: characterizers, and policies that admit by class. Units: bytes; distances between the ends
//! of requests. Source: RC-RNN section 3.2, which follows Tarihi et al. (TC'16) and ReCA
//! (Salkhordeh et al., TPDS'18).
//!
//! What the paper leaves open: "previous requests" are the last 128 reads and writes of the volume;
//! a request is large above 64 KiB; a gap is small up to 64 KiB. If several classes fit, the first
//! of sequential, overlapped, strided counts, because reuse tells more than nearness. A request is
//! compared with all remembered requests, in O(128) and without branches.

use crate::characterize::is_access;
use cachewright_snapshot::SnapshotValue;
use cachewright_types::{Request, declare};

/// The place of a request among earlier requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, SnapshotValue)]
#[repr(u8)]
pub enum RequestClass {
    /// Large, or adjacent to the start or end of an earlier request.
    Sequential = 0,
    /// Shares bytes with an earlier request.
    Overlapped = 1,
    /// A small gap away from an earlier request.
    Strided = 2,
    /// No relation to an earlier request.
    Random = 3,
}

impl RequestClass {
    /// All classes, in numeric order.
    pub const ALL: [RequestClass; 4] = [
        RequestClass::Sequential,
        RequestClass::Overlapped,
        RequestClass::Strided,
        RequestClass::Random,
    ];

    /// The word used in tables and features.
    pub fn word(self) -> &'static str {
        match self {
            RequestClass::Sequential => "sequential",
            RequestClass::Overlapped => "overlapped",
            RequestClass::Strided => "strided",
            RequestClass::Random => "random",
        }
    }
}

declare! {
    /// Settings of the classes of requests.
    pub struct ClassSettings {
        /// a request larger than this is sequential
        large_kib: u32 = 64, "KiB", 1 ..= 1048576;
        /// a gap up to this makes a request strided
        gap_kib: u32 = 64, "KiB", 0 ..= 1048576;
        /// earlier requests that are looked at
        remembered: u32 = 128, "requests", 1 ..= 4096;
    }
}

/// Classifies each request of one volume.
#[derive(Clone, Debug, SnapshotValue)]
pub struct RequestClassifier {
    large_bytes: u64,
    gap_bytes: u64,
    remembered: usize,
    /// First byte and end of each remembered request; once full, `oldest` is overwritten next.
    ranges: Vec<(u64, u64)>,
    oldest: usize,
}

impl RequestClassifier {
    /// A classifier without earlier requests.
    pub fn new(settings: &ClassSettings) -> RequestClassifier {
        RequestClassifier {
            large_bytes: u64::from(settings.large_kib) << 10,
            gap_bytes: u64::from(settings.gap_kib) << 10,
            remembered: settings.remembered as usize,
            ranges: Vec::with_capacity(settings.remembered as usize),
            oldest: 0,
        }
    }

    /// Observes a request and returns its class; nothing for trims and flushes.
    pub fn class(&mut self, request: &Request) -> Option<RequestClass> {
        if !is_access(request) {
            return None;
        }
        let start = request.offset.0;
        let end = start.saturating_add(request.length.0);
        let (mut touches, mut overlaps, mut is_near) = (false, false, false);
        for &(first, last) in &self.ranges {
            touches |= start == last || end == first;
            overlaps |= start < last && first < end;
            let gap = start.saturating_sub(last).max(first.saturating_sub(end));
            is_near |= gap <= self.gap_bytes;
        }
        self.remember((start, end));
        Some(if touches || request.length.0 > self.large_bytes {
            RequestClass::Sequential
        } else if overlaps {
            RequestClass::Overlapped
        } else if is_near {
            RequestClass::Strided
        } else {
            RequestClass::Random
        })
    }

    fn remember(&mut self, range: (u64, u64)) {
        if self.ranges.len() < self.remembered {
            self.ranges.push(range);
            return;
        }
        self.ranges[self.oldest] = range;
        self.oldest = (self.oldest + 1) % self.remembered;
    }
}

impl Default for RequestClassifier {
    fn default() -> RequestClassifier {
        RequestClassifier::new(&ClassSettings::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::{Bytes, Nanos, Op, TenantId};

    const KIB: u64 = 1 << 10;

    fn request(op: Op, offset_kib: u64, length_kib: u64) -> Request {
        let (offset, length) = (Bytes(offset_kib * KIB), Bytes(length_kib * KIB));
        Request { time: Nanos(0), offset, length, op, tenant: TenantId(0) }
    }

    #[test]
    fn each_class_as_the_paper_words_it() {
        let mut classes = RequestClassifier::default();
        let mut class = |offset, length| classes.class(&request(Op::Read, offset, length));
        assert_eq!(class(1000, 8), Some(RequestClass::Random), "nothing came before");
        assert_eq!(class(1008, 8), Some(RequestClass::Sequential), "begins where one ended");
        assert_eq!(class(996, 4), Some(RequestClass::Sequential), "ends where one began");
        assert_eq!(class(1004, 8), Some(RequestClass::Overlapped), "shares bytes with two");
        assert_eq!(class(1080, 8), Some(RequestClass::Strided), "64 KiB after the end of one");
        assert_eq!(class(1153, 8), Some(RequestClass::Random), "65 KiB after");
        assert_eq!(class(500_000, 64), Some(RequestClass::Random), "not larger than 64 KiB");
        assert_eq!(class(600_000, 65), Some(RequestClass::Sequential), "large");
    }

    #[test]
    fn a_forgotten_request_and_a_trim_change_nothing() {
        let settings = ClassSettings { remembered: 2, ..ClassSettings::default() };
        let mut classes = RequestClassifier::new(&settings);
        assert_eq!(classes.class(&request(Op::Write, 0, 4)), Some(RequestClass::Random));
        assert_eq!(classes.class(&request(Op::Trim, 4, 4)), None);
        assert_eq!(classes.class(&request(Op::Flush, 0, 0)), None);
        assert_eq!(classes.class(&request(Op::Write, 4, 4)), Some(RequestClass::Sequential));
        assert_eq!(classes.class(&request(Op::Read, 9000, 4)), Some(RequestClass::Random));
        assert_eq!(classes.class(&request(Op::Read, 9900, 4)), Some(RequestClass::Random));
        assert_eq!(
            classes.class(&request(Op::Read, 0, 4)),
            Some(RequestClass::Random),
            "forgotten"
        );
    }
}
