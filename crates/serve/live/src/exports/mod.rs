//! The NBD front end: volumes as exports of the network block device protocol.
//!
//! Bytes come in and become requests to the engine; answers become bytes that go out. A connection
//! that breaks the protocol is closed. One that leaves in the middle of a write changes nothing: a
//! request begins when all of its payload is there.

mod connection;
mod list;
mod listeners;
mod nbd;
mod tls;

pub use connection::{ConnectionLimits, request_kind};
pub use nbd::{CONTEXTS, NbdFrontEnd, NbdSettings};
pub use tls::{TlsConfig, TlsConfigError, TlsFailure};
