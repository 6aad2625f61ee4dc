//! `rc-rnn`: each request as it is, for a recurrent network over windows of 100.
//!
//! For: inter-arrival time, address, size and type of each request as numbers. Must never know:
//! networks. Source: RC-RNN section 5.2.1 (arrival time, address, size, type; one LSTM layer of 50
//! units, softmax). The encoding is not given. Times and sizes are logarithms; an address is
//! offered both as it is (`address`, GiB), as published, and as the distance from the end of the
//! request before (`jump`, a logarithm with its sign), which does not know the volume by its
//! addresses. A trainer switches off what a model shall not see.

use crate::entry::{Entry, Need, Registered};
use crate::{Features, is_write, log2_bytes};
use cachewright_types::declare::NoSettings;
use cachewright_types::{Nanos, Request};

const NAMES: [&str; 5] = ["gap", "jump", "address", "size", "write"];

/// The request before.
#[derive(Clone, Debug, Default)]
pub struct RcRnn {
    before: Option<(Nanos, u64)>,
}

impl Features for RcRnn {
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

impl Registered for RcRnn {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "rc-rnn",
        doc: "a recurrent network over inter-arrival time, address, size and type of each request",
        source: "Ebrahimi et al., RC-RNN, section 5.2.1",
        needs: &[Need::Model],
    };

    fn new(_: &NoSettings) -> RcRnn {
        RcRnn::default()
    }
}
