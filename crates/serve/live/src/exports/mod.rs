//! Volumes as exports of the network block device protocol.
//!
//! For: connections: bytes in, requests to the server of blocks; answers, bytes out. Must never
//! know: caches, the log. Units: bytes. A connection that breaks the protocol is closed. One that
//! leaves in the middle of a write changes nothing: a request begins when all of its payload is
//! there.

mod connection;
mod list;
mod listeners;
mod memory;
mod meters;
mod node;
mod tls;

pub use connection::ConnectionLimits;
pub use list::ServedExport;
pub use meters::Caps;
pub use meters::{AnswerMeter, ExportMeter, LimitMeter, RequestKind};
pub use node::CONTEXTS;
pub use node::{Node, NodeSettings};
pub use tls::{TlsConfig, TlsConfigError, TlsFailure};
