//! Characterizers tell which kind of workload runs.
//!
//! For: the most likely kind of a volume's requests, among the kinds of a trained model; and the
//! class of each request (sequential, overlapped, strided, random), which needs no model. Units:
//! bytes, nanoseconds, requests. Source: Ebrahimi et al., RC-RNN, sections 3.2, 4.2 and 5.2.1.
//!
//! Characterizers observe reads and writes only, because most traces carry no trims or flushes.
//! Addresses are of one volume, so each volume needs its own characterizer.

pub mod classes;
pub mod features;
pub mod windowed;

use cachewright_snapshot::Snapshot;
use cachewright_types::declare::Declared;
use cachewright_types::registry::{settings, unknown};
use cachewright_types::{Op, RegistryError, Request, Value};
pub use classes::{ClassSettings, RequestClass, RequestClassifier};
pub use features::PageCounts;
pub use windowed::{VOTING_WINDOWS, WINDOW_REQUESTS, Windowed};

/// The most likely kind of workload.
#[derive(Clone, Debug, PartialEq)]
pub struct KindEstimate {
    /// Index into [`Characterizer::kinds`].
    pub kind: usize,
    /// The score of that kind, 0 to 1.
    pub confidence: f64,
    /// A probability per kind; their sum is 1.
    pub scores: Vec<f64>,
}

/// Tells which kind of workload runs.
pub trait Characterizer: Snapshot + Send {
    /// Observes the next request. O(1).
    fn observe(&mut self, request: &Request);

    /// Loads a trained model and forgets earlier requests. Errors: what was found and what was
    /// expected.
    fn learn(&mut self, model: &[u8]) -> Result<(), String>;

    /// Names of the model's kinds; empty without a model.
    fn kinds(&self) -> &[String];

    /// The kind of the last requests; nothing without a model, or before there are enough requests.
    fn classify(&mut self) -> Option<KindEstimate>;
}

/// The features of a request that a characterizer reads.
pub trait RequestFeatures: Snapshot + Send {
    /// A name per feature.
    fn names(&self) -> &'static [&'static str];

    /// Observes the next read or write and appends its features.
    fn row(&mut self, request: &Request, row: &mut Vec<f32>);
}

/// Whether characterizers observe a request: it reads or writes.
pub fn is_access(request: &Request) -> bool {
    matches!(request.op, Op::Read | Op::Write)
}

/// Bytes on a logarithmic scale: 0 for 0 bytes, about 12 for 4 KiB.
pub(crate) fn log2_bytes(bytes: u64) -> f32 {
    (bytes as f64 + 1.0).log2() as f32
}

/// 1 for a write, 0 for a read.
pub(crate) fn is_write(request: &Request) -> f32 {
    if request.op == Op::Write { 1.0 } else { 0.0 }
}

/// What a characterizer needs beyond requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A trained model, through [`Characterizer::learn`].
    Model,
}

impl Need {
    /// The word used in tables and errors.
    pub fn word(self) -> &'static str {
        match self {
            Need::Model => "model",
        }
    }
}

/// What a user can know of one characterizer without reading code.
pub type Entry = cachewright_types::registry::Entry<Need>;

/// The features of a characterizer in the registry; [`Windowed`] classifies windows
/// of them.
pub trait Registered: RequestFeatures + Sized + 'static {
    /// Its settings.
    type Settings: Declared;
    /// Its facts.
    const ENTRY: Entry;
    /// Features before the first request.
    fn new(settings: &Self::Settings) -> Self;
}

macro_rules! characterizers {
    ($($characterizer:ty),* $(,)?) => {
        cachewright_types::registry!("characterizer": $($characterizer),*);

        /// The characterizer registered as `name`, with `pairs` set over its defaults; it has no
        /// model yet.
        pub fn boxed(
            name: &str,
            pairs: &[(String, Value)],
        ) -> Result<Box<dyn Characterizer>, RegistryError> {
            let features = features(name, pairs)?;
            Ok(Box::new(Windowed::new(entry(name)?.name, features)))
        }

        /// What the characterizer registered as `name` sees of requests.
        pub fn features(
            name: &str,
            pairs: &[(String, Value)],
        ) -> Result<Box<dyn RequestFeatures>, RegistryError> {
            $(if <$characterizer as Registered>::ENTRY.name == name {
                let name = <$characterizer>::ENTRY.name;
                let settings = settings("characterizer", name, pairs)?;
                return Ok(Box::new(<$characterizer>::new(&settings)));
            })*
            Err(unknown("characterizer", name, &entries()))
        }
    };
}

characterizers! {
    features::RcRnnFeatures,
    features::Twsd,
    features::Frequency,
    features::IoSize,
}
