//! `frequency`: requests by access frequency, type and size.
//!
//! For: how often a request's place was asked for lately, in bins, whether it writes and how large
//! it is. Must never know: networks, neighbours in address. Source: RC-RNN section 3.2 (Frequency,
//! after Azor and Hystor). How far back frequency is counted is not given: see `counts`.

use crate::counts::{BINS, Counts, bin};
use crate::entry::{Entry, Need, Registered};
use crate::{Features, is_write, log2_bytes};
use cachewright_types::Request;
use cachewright_types::declare::NoSettings;

const NAMES: [&str; BINS + 2] =
    ["never", "once", "to_3_times", "to_7_times", "more_often", "write", "size"];

/// Counts accesses.
#[derive(Clone, Debug, Default)]
pub struct Frequency {
    counts: Counts,
}

impl Features for Frequency {
    fn names(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn row(&mut self, request: &Request, row: &mut Vec<f32>) {
        let begin = row.len();
        row.resize(begin + BINS, 0.0);
        row[begin + bin(self.counts.count(request))] = 1.0;
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
