//! How a server negotiates.
//!
//! For: the callers of a session. Must never know: options, requests.

use crate::limits::Limits;

/// Whether a connection must be secure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Tls {
    /// There is no TLS here.
    #[default]
    Off,
    /// A client may begin TLS.
    Available,
    /// A client must begin TLS before it sees anything.
    Required,
}

/// How a server negotiates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Bounds of a connection.
    pub limits: Limits,
    /// Whether a connection must be secure.
    pub tls: Tls,
    /// Whether 32-byte headers are offered; the protocol's document calls them experimental.
    pub extended_headers: bool,
}
