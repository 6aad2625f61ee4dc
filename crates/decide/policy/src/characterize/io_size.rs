//! `io-size`: requests by their size alone.
//!
//! For: the size class of each request; over a window, a histogram of sizes. Must never know:
//! models. Source: RC-RNN section 3.2 (IOSize). The paper does not give the classes; here they are
//! powers of two from 4 KiB to 256 KiB, and larger.

use crate::characterize::RequestFeatures;
use crate::characterize::entry::{Entry, Need, Registered};
use cachewright_types::Request;
use cachewright_types::declare::NoSettings;

const NAMES: [&str; 8] =
    ["to_4kib", "to_8kib", "to_16kib", "to_32kib", "to_64kib", "to_128kib", "to_256kib", "larger"];

/// Features of a size; without state.
#[derive(Clone, Debug, Default)]
pub struct IoSize;

impl RequestFeatures for IoSize {
    fn names(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn row(&mut self, request: &Request, row: &mut Vec<f32>) {
        let pages = request.length.0.div_ceil(4096).max(1);
        let class = pages.next_power_of_two().trailing_zeros() as usize;
        let start = row.len();
        row.resize(start + NAMES.len(), 0.0);
        row[start + class.min(NAMES.len() - 1)] = 1.0;
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
