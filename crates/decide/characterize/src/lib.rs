//! Characterisation: which kind of workload is running.
//!
//! For: a volume's requests in, the most likely of the kinds that a model was trained on out; and
//! the class of each request (sequential, overlapped, strided, random), which needs no model. Must
//! never know: caches, devices, files, what is done about a kind. Units: bytes, nanoseconds,
//! requests. Source: Ebrahimi et al., RC-RNN, sections 3.2, 4.2 and 5.2.1.
//!
//! Only reads and writes are heard; trims and flushes, which most traces do not carry, are passed
//! over. Addresses are of one volume: who hears several gives each a characterizer of its own.

pub mod classes;
pub mod counts;
pub mod entry;
pub mod frequency;
pub mod io_size;
pub mod rc_rnn;
pub mod registry;
pub mod twsd;
pub mod windowed;

pub use classes::{Class, ClassSettings, Classes};
pub use counts::Counts;
pub use entry::{Entry, Need, Registered};
pub use registry::{boxed, entries, entry, features};
pub use windowed::{JUDGED_WINDOWS, WINDOW_REQUESTS, Windowed};

use cachewright_types::{Op, Request};

/// What a characterizer thinks is running.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Index into [`Characterizer::kinds`].
    pub kind: usize,
    /// How sure it is, 0 to 1: the score of that kind.
    pub confidence: f64,
    /// A probability per kind; together 1.
    pub scores: Vec<f64>,
}

/// Says which kind of workload is running.
pub trait Characterizer: Send {
    /// Hears of a request, in order of arrival. O(1).
    fn asked(&mut self, request: &Request);

    /// Takes a trained model, and forgets what was heard. Errors: what was found and expected, in
    /// words.
    fn learn(&mut self, model: &[u8]) -> Result<(), String>;

    /// Names of the kinds it can tell apart; none before a model was taken.
    fn kinds(&self) -> &[String];

    /// The kind of the requests heard last; nothing before there are enough of them or a model.
    fn judge(&mut self) -> Option<Judgement>;
}

/// What a characterizer sees of each request, as numbers.
pub trait Features: Send {
    /// A name per number.
    fn names(&self) -> &'static [&'static str];

    /// Hears of a read or write, in order of arrival, and appends its numbers.
    fn row(&mut self, request: &Request, row: &mut Vec<f32>);
}

/// Whether a request is one that characterizers hear.
pub fn is_heard(request: &Request) -> bool {
    matches!(request.op, Op::Read | Op::Write)
}

/// Bytes on a logarithmic scale: 0 of 0, about 12 of 4 KiB.
pub(crate) fn log2_bytes(bytes: u64) -> f32 {
    (bytes as f64 + 1.0).log2() as f32
}

/// 1 of a write, 0 of a read.
pub(crate) fn is_write(request: &Request) -> f32 {
    if request.op == Op::Write { 1.0 } else { 0.0 }
}
