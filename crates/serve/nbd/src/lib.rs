//! The NBD protocol without I/O: bytes in, requests and bytes out.
//!
//! [`server::Session`] reads what a client sent and yields events; [`Replies`] writes answers;
//! [`client::Client`] is the other side. Memory per connection is bounded by [`Limits`], whatever
//! the peer sends. Source: the protocol document of the NBD project (proto.md), with its baseline
//! and maximum interoperability rules.

pub mod client;
pub mod protocol;
pub mod server;

pub use protocol::{BlockSizes, Errno, Export, Exports, Limits, NbdCommand, NbdRequest};
pub use protocol::{Range, Replies, StatusExtent};
pub use server::{Session, SessionEvent, Settings, Tls, Violation};
