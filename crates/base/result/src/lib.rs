//! Every answer as a plain struct that can be written and read as JSON.
//!
//! For: one description of the documents that commands return, from which the reference page, the
//! JSON schema and the Python types are made. Must never know: how an answer is found, and where
//! it is written. Units: the last word of a field's name, or its comment; shares and ratios run
//! from 0 to 1. The order of fields is the order of keys in the JSON text.

pub mod advise;
pub mod case;
pub mod channels;
pub mod characterize;
pub mod curves;
pub mod device;
pub mod drive;
pub mod energy;
mod entries;
pub mod facts;
pub mod flash;
pub mod fleet;
pub mod history;
pub mod info;
pub mod live;
pub mod load;
pub mod plan;
pub mod registry;
pub mod run;
mod schema;
pub mod series;
pub mod status;
pub mod store;
pub mod timing;
pub mod training;
pub mod wa;
pub mod written;

pub use entries::Entries;
pub use schema::{definitions, documents, schemas};
