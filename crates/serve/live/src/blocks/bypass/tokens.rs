//! Tokens of operations past the cache.
//!
//! For: the part that gets an operation which is done. Must never know: what it is about.

use crate::io::Token;

/// The own tokens of a server from here on are these.
pub const BYPASS_TOKENS: u64 = 1 << 53;
/// Bits of a token that name what it is about.
const VALUE_BITS: u32 = 40;

/// An operation past the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BypassToken {
    /// The mark on a device of the log.
    Mark(usize),
    /// Dirty content that is rescued, by number.
    Rescue(usize),
    /// A sync of a tenant's backing device, which has all that was rescued.
    RescueSync(usize),
    /// A request, by number.
    Request(usize),
    /// A sync of a tenant's backing device.
    Sync(usize),
}

impl BypassToken {
    /// The token, in a namespace.
    pub fn token(self, namespace: u64) -> Token {
        let (code, value) = match self {
            BypassToken::Mark(device) => (0, device),
            BypassToken::Rescue(number) => (1, number),
            BypassToken::RescueSync(tenant) => (2, tenant),
            BypassToken::Request(number) => (3, number),
            BypassToken::Sync(tenant) => (4, tenant),
        };
        Token(namespace | BYPASS_TOKENS | code << VALUE_BITS | value as u64)
    }

    /// The operation of a token without its namespace.
    pub fn decode(own: u64) -> BypassToken {
        let value = (own & ((1 << VALUE_BITS) - 1)) as usize;
        match own >> VALUE_BITS & 7 {
            0 => BypassToken::Mark(value),
            1 => BypassToken::Rescue(value),
            2 => BypassToken::RescueSync(value),
            3 => BypassToken::Request(value),
            _ => BypassToken::Sync(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_operation() {
        for named in [BypassToken::Mark(3), BypassToken::Rescue(1 << 20), BypassToken::Sync(7)] {
            let Token(token) = named.token(9 << 56);
            assert_eq!((token >> 56, BypassToken::decode(token & ((1 << 56) - 1))), (9, named));
        }
    }
}
