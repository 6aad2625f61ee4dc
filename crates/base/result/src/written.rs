//! By which program, and in which shape, a document was written.
//!
//! For: the first keys of every document, by which a reader accepts or refuses it. Must never know:
//! what the document holds. Raise [`SCHEMA_VERSION`] when a key goes or changes its meaning; a new
//! key alone keeps the version.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the keys of all documents and of what they mean.
pub const SCHEMA_VERSION: u32 = 1;

/// The first keys of every document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    /// Version of Cachewright that wrote the document.
    pub cachewright: String,
    /// Version of the keys of all documents; a reader of another version refuses the document.
    #[schemars(extend("const" = SCHEMA_VERSION))]
    pub schema_version: u32,
}

impl Written {
    /// Written by this program.
    pub fn here() -> Written {
        let cachewright = env!("CARGO_PKG_VERSION").to_owned();
        Written { cachewright, schema_version: SCHEMA_VERSION }
    }
}
