//! The NBD protocol without I/O: bytes in, requests and bytes out.
//!
//! For: both sides of fixed newstyle negotiation and transmission. [`server::Session`] reads what a
//! client sent and yields events; [`reply::Replies`] writes answers; [`client::Client`] is the
//! other side. Must never know: sockets, files, clocks, threads, what an export holds. Units:
//! bytes. Memory per connection is bounded by [`Limits`], whatever the peer sends.
//! Source: the protocol document of the NBD project (proto.md), with its baseline and maximum
//! interoperability rules.

pub mod client;
pub mod export;
pub mod limits;
pub mod protocol;
pub mod reply;
pub mod request;
pub mod server;
mod wire;

pub use export::{BlockSizes, Export, Exports};
pub use limits::Limits;
pub use protocol::Errno;
pub use reply::{Replies, StatusExtent};
pub use request::{NbdCommand, NbdRequest, Range};
pub use server::{Session, SessionEvent, Settings, Tls, Violation};
