//! What each characterizer reads of a request.

use super::classes::{ClassSettings, RequestClass, RequestClassifier};
use super::{Entry, Need, Registered, RequestFeatures, is_write, log2_bytes};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::declare::NoSettings;
use cachewright_types::{Nanos, Request};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Requests remembered.
pub const REMEMBERED: usize = 65_536;
/// Bins of counts: never, once, 2 to 3, 4 to 7, 8 times or more.
pub const BINS: usize = 5;

const PAGE_BITS: u32 = 12;

/// Counts per page over the last requests.
///
/// The page of a request is the 4 KiB page in which it starts. Counts cover the last 65,536
/// requests, so that memory is bounded and a count means the same early and late in a run.
#[derive(Clone, Debug, SnapshotValue)]
pub struct PageCounts {
    counts: HashMap<u64, u32, FixedState>,
    /// Pages in order of arrival; once full, `oldest` is overwritten next.
    pages: Vec<u64>,
    oldest: usize,
    remembered: usize,
}

impl PageCounts {
    /// Counts without requests.
    pub fn new() -> PageCounts {
        PageCounts::remembering(REMEMBERED)
    }

    /// Counts over another number of requests; at least one.
    pub fn remembering(requests: usize) -> PageCounts {
        PageCounts {
            counts: HashMap::with_hasher(FixedState::default()),
            pages: Vec::new(),
            oldest: 0,
            remembered: requests.max(1),
        }
    }

    /// Remembered requests that started in the page of this request; then remembers it.
    pub fn count(&mut self, request: &Request) -> u32 {
        let page = request.offset.0 >> PAGE_BITS;
        if self.pages.len() < self.remembered {
            self.pages.push(page);
            return self.add(page);
        }
        let before = self.add(page);
        let forgotten = std::mem::replace(&mut self.pages[self.oldest], page);
        self.oldest = (self.oldest + 1) % self.remembered;
        if let Some(count) = self.counts.get_mut(&forgotten) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&forgotten);
            }
        }
        before
    }

    /// The number of pages remembered: the working set of these requests.
    pub fn pages(&self) -> usize {
        self.counts.len()
    }

    fn add(&mut self, page: u64) -> u32 {
        let count = self.counts.entry(page).or_insert(0);
        *count += 1;
        *count - 1
    }
}

impl Default for PageCounts {
    fn default() -> PageCounts {
        PageCounts::new()
    }
}

/// The bin of a count.
pub fn bin(count: u32) -> usize {
    (u32::BITS - count.leading_zeros()).min(BINS as u32 - 1) as usize
}

const FREQUENCY_NAMES: [&str; BINS + 2] =
    ["never", "once", "to_3_times", "to_7_times", "more_often", "write", "size"];

/// Counts accesses.
///
/// Three features of a request: recent requests to its page in bins, whether it writes, its size.
/// Source: RC-RNN section 3.2 (Frequency, after Azor and Hystor), which does not give the period of
/// the counts: see [`PageCounts`].
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct Frequency {
    counts: PageCounts,
}

impl RequestFeatures for Frequency {
    fn names(&self) -> &'static [&'static str] {
        &FREQUENCY_NAMES
    }

    fn row(&mut self, request: &Request, row: &mut Vec<f32>) {
        let start = row.len();
        row.resize(start + BINS, 0.0);
        row[start + bin(self.counts.count(request))] = 1.0;
        row.extend([is_write(request), log2_bytes(request.length.0)]);
    }
}

impl Registered for Frequency {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "frequency",
        doc: "a classifier over access frequency, type and size of requests",
        source: "Ebrahimi et al., RC-RNN, section 3.2",
        needs: &[Need::Model],
    };

    fn new(_: &NoSettings) -> Frequency {
        Frequency::default()
    }
}

const CLASSES: usize = RequestClass::ALL.len();
const TWSD_NAMES: [&str; CLASSES + BINS + 2] = [
    "sequential",
    "overlapped",
    "strided",
    "random",
    "never",
    "once",
    "to_3_times",
    "to_7_times",
    "more_often",
    "write",
    "size",
];

/// Classes and counts of requests.
///
/// The features of [`Frequency`], and the class of a request: sequential, overlapped, strided or
/// random. Source: RC-RNN section 3.2 (TWSD, temporal working set distribution, after Tarihi et
/// al., TC'16; the method of ReCA).
#[derive(Clone, Debug, SnapshotValue)]
pub struct Twsd {
    classes: RequestClassifier,
    frequency: Frequency,
}

impl RequestFeatures for Twsd {
    fn names(&self) -> &'static [&'static str] {
        &TWSD_NAMES
    }

    fn row(&mut self, request: &Request, row: &mut Vec<f32>) {
        let start = row.len();
        row.resize(start + CLASSES, 0.0);
        if let Some(class) = self.classes.class(request) {
            row[start + class as usize] = 1.0;
        }
        self.frequency.row(request, row);
    }
}

impl Registered for Twsd {
    type Settings = ClassSettings;
    const ENTRY: Entry = Entry {
        name: "twsd",
        doc: "a classifier over class (sequential, overlapped, strided, random), access frequency, \
              type and size of requests",
        source: "Ebrahimi et al., RC-RNN, section 3.2",
        needs: &[Need::Model],
    };

    fn new(settings: &ClassSettings) -> Twsd {
        Twsd { classes: RequestClassifier::new(settings), frequency: Frequency::default() }
    }
}

const IO_SIZE_NAMES: [&str; 8] =
    ["to_4kib", "to_8kib", "to_16kib", "to_32kib", "to_64kib", "to_128kib", "to_256kib", "larger"];

/// Features of a size; without state.
///
/// Over a window, a histogram of sizes. Source: RC-RNN section 3.2 (IOSize). The paper does not
/// give the classes; here they are powers of two from 4 KiB to 256 KiB, and larger.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct IoSize;

impl RequestFeatures for IoSize {
    fn names(&self) -> &'static [&'static str] {
        &IO_SIZE_NAMES
    }

    fn row(&mut self, request: &Request, row: &mut Vec<f32>) {
        let pages = request.length.0.div_ceil(4096).max(1);
        let class = pages.next_power_of_two().trailing_zeros() as usize;
        let start = row.len();
        row.resize(start + IO_SIZE_NAMES.len(), 0.0);
        row[start + class.min(IO_SIZE_NAMES.len() - 1)] = 1.0;
    }
}

impl Registered for IoSize {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "io-size",
        doc: "a classifier over the sizes of requests",
        source: "Ebrahimi et al., RC-RNN, section 3.2",
        needs: &[Need::Model],
    };

    fn new(_: &NoSettings) -> IoSize {
        IoSize
    }
}

const RC_RNN_NAMES: [&str; 5] = ["gap", "jump", "address", "size", "write"];

/// Time and end of the previous request.
///
/// Source: RC-RNN section 5.2.1 (arrival time, address, size, type; one LSTM layer of 50 units,
/// softmax). The paper does not give the encoding. Here times and sizes are logarithms. An address
/// appears twice: as published (`address`, GiB), and as the distance from the end of the previous
/// request (`jump`, a signed logarithm), which does not identify the volume. A trainer switches off
/// features that a model must not use.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct RcRnnFeatures {
    before: Option<(Nanos, u64)>,
}

impl RequestFeatures for RcRnnFeatures {
    fn names(&self) -> &'static [&'static str] {
        &RC_RNN_NAMES
    }

    fn row(&mut self, request: &Request, row: &mut Vec<f32>) {
        let start = request.offset.0;
        let (time, end) = self.before.unwrap_or((request.time, start));
        let gap_ns = request.time.0.saturating_sub(time.0);
        let jump = log2_bytes(start.abs_diff(end));
        self.before = Some((request.time, start.saturating_add(request.length.0)));
        row.extend([
            log2_bytes(gap_ns),
            if start < end { -jump } else { jump },
            (start as f64 / f64::from(1 << 30)) as f32,
            log2_bytes(request.length.0),
            is_write(request),
        ]);
    }
}

impl Registered for RcRnnFeatures {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "rc-rnn",
        doc: "a recurrent network over inter-arrival time, address, size and type of each request",
        source: "Ebrahimi et al., RC-RNN, section 5.2.1",
        needs: &[Need::Model],
    };

    fn new(_: &NoSettings) -> RcRnnFeatures {
        RcRnnFeatures::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::{Bytes, Op, TenantId};

    fn read(page: u64) -> Request {
        let (offset, length) = (Bytes((page << PAGE_BITS) + 512), Bytes(512));
        Request { time: Nanos(0), offset, length, op: Op::Read, tenant: TenantId(0) }
    }

    #[test]
    fn bins_are_powers_of_two() {
        assert_eq!([0, 1, 2, 3, 4, 7, 8, 1000, u32::MAX].map(bin), [0, 1, 2, 2, 3, 3, 4, 4, 4]);
    }

    #[test]
    fn a_forgotten_request_is_no_longer_counted() {
        let mut counts = PageCounts::remembering(3);
        let actual: Vec<u32> = [1, 1, 1, 1, 2, 3, 4, 1].map(|p| counts.count(&read(p))).to_vec();
        assert_eq!(actual, [0, 1, 2, 3, 0, 0, 0, 0]);
        assert_eq!(counts.pages(), 3);
    }
}
