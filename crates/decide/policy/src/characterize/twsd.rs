//! `twsd`: requests by class, access frequency, type and size.
//!
//! For: the features of `frequency`, and the class of a request: sequential, overlapped, strided or
//! random. Must never know: models. Source: RC-RNN section 3.2 (TWSD, temporal working set
//! distribution, after Tarihi et al., TC'16; the method of ReCA).

use crate::characterize::RequestFeatures;
use crate::characterize::classes::{ClassSettings, RequestClass, RequestClassifier};
use crate::characterize::counts::BINS;
use crate::characterize::entry::{Entry, Need, Registered};
use crate::characterize::frequency::Frequency;
use cachewright_types::Request;

const CLASSES: usize = RequestClass::ALL.len();
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

/// Classes and counts of requests.
#[derive(Clone, Debug)]
pub struct Twsd {
    classes: RequestClassifier,
    frequency: Frequency,
}

impl RequestFeatures for Twsd {
    fn names(&self) -> &'static [&'static str] {
        &NAMES
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
