//! Volumes as exports of the network block device protocol.
//!
//! For: connections: bytes in, requests to the server of blocks; answers, bytes out. Must never
//! know: caches, the log. Units: bytes. A connection that breaks the protocol is closed. One that
//! leaves in the middle of a write changes nothing: a request begins when all of its payload is
//! there.

mod caps;
mod channel;
mod connection;
mod list;
mod listeners;
mod losses;
mod memory;
mod meters;
mod node;
mod places;
mod requests;
mod status;
mod timer;
mod tls;
mod tokens;
mod turns;

pub use caps::Caps;
pub use connection::ConnectionLimits;
pub use list::ServedExport;
pub use meters::{AnswerMeter, ExportMeter, LimitMeter, RequestKind};
pub use node::{Node, NodeSettings};
pub use status::CONTEXTS;
pub use tls::{TlsConfig, TlsConfigError, TlsFailure};
