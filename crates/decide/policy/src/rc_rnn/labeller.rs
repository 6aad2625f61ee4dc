//! The source of a request's label: a network, or a table of labels known beforehand.
//!
//! For: `rc-rnn`, which takes either as a file. Must never know: queues, features.

use super::model::CachingNetwork;
use super::table::{self, LabelTable};
use cachewright_model::fingerprint;

/// What gives labels.
pub enum LabelSource {
    /// A model.
    Network(Box<CachingNetwork>),
    /// Labels known beforehand.
    Table(LabelTable),
}

/// The source of labels of one kind of workload.
pub struct Labeller {
    /// The kind's name.
    pub name: String,
    /// What gives labels.
    pub source: LabelSource,
    /// Of its file.
    fingerprint: u64,
}

impl Labeller {
    /// Reads a file of either. Errors: what was found and expected.
    pub fn load(name: &str, bytes: &[u8]) -> Result<Labeller, String> {
        let source = if bytes.starts_with(table::MAGIC) {
            LabelTable::load(bytes).map(LabelSource::Table)
        } else {
            CachingNetwork::load(bytes).map(|network| LabelSource::Network(Box::new(network)))
        };
        let source = source.map_err(|error| format!("`{name}`: {error}"))?;
        Ok(Labeller { name: name.to_owned(), source, fingerprint: fingerprint(bytes) })
    }

    /// Whether another one has the same name and the same file.
    pub fn is_like(&self, other: &Labeller) -> bool {
        self.name == other.name && self.fingerprint == other.fingerprint
    }

    /// Forgets what the requests before did to its state; a table goes by their number.
    pub fn reset(&mut self) {
        if let LabelSource::Network(network) = &mut self.source {
            network.reset();
        }
    }
}
