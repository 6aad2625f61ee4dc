//! The source of a request's label: a network, or a table of labels known beforehand.
//!
//! For: `rc-rnn`, which takes either as a file. Must never know: queues, features.

use super::model::CachingNetwork;
use super::table::{self, LabelTable};

/// The source of labels.
pub enum Labeller {
    /// A model.
    Network(Box<CachingNetwork>),
    /// Labels known beforehand.
    Table(LabelTable),
}

impl Labeller {
    /// Reads a file of either. Errors: what was found and expected.
    pub fn load(bytes: &[u8]) -> Result<Labeller, String> {
        if bytes.starts_with(table::MAGIC) {
            return LabelTable::load(bytes).map(Labeller::Table);
        }
        CachingNetwork::load(bytes).map(|network| Labeller::Network(Box::new(network)))
    }

    /// Forgets what the requests before did to its state; a table goes by their number.
    pub fn reset(&mut self) {
        if let Labeller::Network(network) = self {
            network.reset();
        }
    }
}
