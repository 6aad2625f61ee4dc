//! `rc-rnn`: features of single requests, for a recurrent network over windows of 100.
//!
//! For: inter-arrival time, address, size and type of each request. Must never know: models.
//! Source: RC-RNN section 5.2.1 (arrival time, address, size, type; one LSTM layer of 50 units,
//! softmax). The paper does not give the encoding. Here times and sizes are logarithms. An address
//! appears twice: as published (`address`, GiB), and as the distance from the end of the previous
//! request (`jump`, a signed logarithm). The distance does not identify the volume. A trainer
//! switches off features that a model must not use.

use crate::characterize::entry::{Entry, Need, Registered};
use crate::characterize::{RequestFeatures, is_write, log2_bytes};
use cachewright_types::declare::NoSettings;
use cachewright_types::{Nanos, Request};

const NAMES: [&str; 5] = ["gap", "jump", "address", "size", "write"];

/// Time and end of the previous request.
#[derive(Clone, Debug, Default)]
pub struct RcRnnFeatures {
    before: Option<(Nanos, u64)>,
}

impl RequestFeatures for RcRnnFeatures {
    fn names(&self) -> &'static [&'static str] {
        &NAMES
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
