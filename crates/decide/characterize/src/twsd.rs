//! `twsd`: requests by class, access frequency, type and size.
//!
//! For: what `frequency` sees, and whether a request is sequential, overlapped, strided or random.
//! Must never know: networks. Source: RC-RNN section 3.2 (TWSD, temporal working set distribution,
//! after Tarihi et al., TC'16; the method of ReCA).

use crate::Features;
use crate::classes::{Class, ClassSettings, Classes};
use crate::counts::BINS;
use crate::entry::{Entry, Need, Registered};
use crate::frequency::Frequency;
use cachewright_types::Request;

const CLASSES: usize = Class::ALL.len();
const NAMES: [&str; CLASSES + BINS + 2] = [
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

/// Compares with earlier requests and counts.
#[derive(Clone, Debug)]
pub struct Twsd {
    classes: Classes,
    frequency: Frequency,
}

impl Features for Twsd {
    fn names(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn row(&mut self, request: &Request, row: &mut Vec<f32>) {
        let begin = row.len();
        row.resize(begin + CLASSES, 0.0);
        if let Some(class) = self.classes.class(request) {
            row[begin + class as usize] = 1.0;
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
        Twsd { classes: Classes::new(settings), frequency: Frequency::default() }
    }
}
