//! The protocol, both sides: bytes worked by hand, refusals, hostile peers, client against server,
//! and other people's clients where they are installed.
//!
//! For: the public interface of the crate. Must never know: its private parts.

#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

mod hostile;
mod memory;
mod negotiation;
mod pairs;
mod requests;
mod tools;
