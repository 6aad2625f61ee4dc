//! The class of each request: sequential, overlapped, strided or random.
//!
//! For: characterisation, and policies that admit by class. Must never know: caches, kinds of
//! workload. Units: bytes; distances between the ends of requests. Source: RC-RNN section 3.2,
//! which follows Tarihi et al. (TC'16) and ReCA (Salkhordeh et al., TPDS'18).
//!
//! What the paper leaves open: "previous requests" are the last 128 reads and writes of the volume;
//! a request is large above 64 KiB; a gap is small up to 64 KiB. Where several classes fit, the
//! first of sequential, overlapped, strided counts: what is wanted again says more than what lies
//! near. A request is compared with all remembered ones, O(128) and without branches.

use crate::is_heard;
use cachewright_types::{Request, declare};

/// How a request lies to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// Large, or begins where an earlier one ended, or ends where one began.
    Sequential = 0,
    /// Shares bytes with an earlier one.
    Overlapped = 1,
    /// A small gap away from an earlier one.
    Strided = 2,
    /// None of these.
    Random = 3,
}

impl Class {
    /// All classes, in the order of their numbers.
    pub const ALL: [Class; 4] =
        [Class::Sequential, Class::Overlapped, Class::Strided, Class::Random];

    /// The word used in tables and features.
    pub fn word(self) -> &'static str {
        match self {
            Class::Sequential => "sequential",
            Class::Overlapped => "overlapped",
            Class::Strided => "strided",
            Class::Random => "random",
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

/// Tells the class of each request of one volume.
#[derive(Clone, Debug)]
pub struct Classes {
    large_bytes: u64,
    gap_bytes: u64,
    remembered: usize,
    /// First byte and end of each remembered request; once full, `oldest` is overwritten next.
    ranges: Vec<(u64, u64)>,
    oldest: usize,
}

impl Classes {
    /// One that has heard nothing.
    pub fn new(settings: &ClassSettings) -> Classes {
        Classes {
            large_bytes: u64::from(settings.large_kib) << 10,
            gap_bytes: u64::from(settings.gap_kib) << 10,
            remembered: settings.remembered as usize,
            ranges: Vec::with_capacity(settings.remembered as usize),
            oldest: 0,
        }
    }

    /// Hears of a request and tells its class; nothing for what neither reads nor writes.
    pub fn class(&mut self, request: &Request) -> Option<Class> {
        if !is_heard(request) {
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
            Class::Sequential
        } else if overlaps {
            Class::Overlapped
        } else if is_near {
            Class::Strided
        } else {
            Class::Random
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

impl Default for Classes {
    fn default() -> Classes {
        Classes::new(&ClassSettings::default())
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
        let mut classes = Classes::default();
        let mut class = |offset, length| classes.class(&request(Op::Read, offset, length));
        assert_eq!(class(1000, 8), Some(Class::Random), "nothing came before");
        assert_eq!(class(1008, 8), Some(Class::Sequential), "begins where one ended");
        assert_eq!(class(996, 4), Some(Class::Sequential), "ends where one began");
        assert_eq!(class(1004, 8), Some(Class::Overlapped), "shares bytes with two");
        assert_eq!(class(1080, 8), Some(Class::Strided), "64 KiB after the end of one");
        assert_eq!(class(1153, 8), Some(Class::Random), "65 KiB after");
        assert_eq!(class(500_000, 64), Some(Class::Random), "not larger than 64 KiB");
        assert_eq!(class(600_000, 65), Some(Class::Sequential), "large");
    }

    #[test]
    fn what_is_forgotten_and_what_is_no_access_changes_nothing() {
        let settings = ClassSettings { remembered: 2, ..ClassSettings::default() };
        let mut classes = Classes::new(&settings);
        assert_eq!(classes.class(&request(Op::Write, 0, 4)), Some(Class::Random));
        assert_eq!(classes.class(&request(Op::Trim, 4, 4)), None);
        assert_eq!(classes.class(&request(Op::Flush, 0, 0)), None);
        assert_eq!(classes.class(&request(Op::Write, 4, 4)), Some(Class::Sequential));
        assert_eq!(classes.class(&request(Op::Read, 9000, 4)), Some(Class::Random));
        assert_eq!(classes.class(&request(Op::Read, 9900, 4)), Some(Class::Random));
        assert_eq!(classes.class(&request(Op::Read, 0, 4)), Some(Class::Random), "forgotten");
    }
}
