//! Numbers by which sets and starts of servers are told apart.
//!
//! For: names that are given once. Must never know: what they name.

use crate::error::LiveError;
use rustix::rand::{GetRandomFlags, getrandom};

/// A number that no other set or start has. Errors: the system has no randomness.
pub fn random_id() -> Result<u128, LiveError> {
    let mut bytes = [0_u8; 16];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty());
    let whole = filled.is_ok_and(|count| count == bytes.len());
    whole.then(|| u128::from_le_bytes(bytes)).ok_or_else(|| {
        LiveError::Failed("found no randomness in the system, expected some for an id".to_owned())
    })
}
