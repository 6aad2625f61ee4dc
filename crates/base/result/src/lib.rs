//! Every answer as a plain struct that can be written and read as JSON: the one description of the
//! documents that commands return, from which the reference page, the JSON schema and the Python
//! types are made.
//!
//! Units: the last word of a field's name, or its comment; shares and ratios run from 0 to 1. The
//! order of fields is the order of keys in the JSON text.

pub mod curves;
pub mod devices;
pub mod document;
pub mod fleet;
pub mod live;
pub mod plan;
pub mod registry;
pub mod rehearsal;
pub mod run;
mod schema;
pub mod status;
pub mod timing;
pub mod trace;
pub mod training;
pub mod wa;
pub mod workload;

pub use document::Entries;
pub use schema::{definitions, documents, schemas};
