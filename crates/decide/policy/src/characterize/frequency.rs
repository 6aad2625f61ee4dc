//! `frequency`: requests by access frequency, type and size.
//!
//! For: three features of a request: recent requests to its page in bins, whether it writes, its
//! size. Must never know: models, nearby addresses. Source: RC-RNN section 3.2 (Frequency, after
//! Azor and Hystor). The paper does not give the period of the counts: see `counts`.

use crate::characterize::counts::{BINS, PageCounts, bin};
use crate::characterize::entry::{Entry, Need, Registered};
use crate::characterize::{RequestFeatures, is_write, log2_bytes};
use cachewright_types::Request;
use cachewright_types::declare::NoSettings;

const NAMES: [&str; BINS + 2] =
    ["never", "once", "to_3_times", "to_7_times", "more_often", "write", "size"];

/// Counts accesses.
#[derive(Clone, Debug, Default)]
pub struct Frequency {
    counts: PageCounts,
}

impl RequestFeatures for Frequency {
    fn names(&self) -> &'static [&'static str] {
        &NAMES
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
