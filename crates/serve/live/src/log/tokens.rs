//! Tokens of operations of the log.
//!
//! For: the part that gets an operation which is done. Must never know: what is done then.

use super::set::SegmentId;
use crate::io::Token;

/// Bits of a token that say what it is for.
const PURPOSE_SHIFT: u32 = 52;
/// Bits of a token that belong to the owner.
const NAMESPACE_SHIFT: u32 = 56;

/// What the token of an operation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPurpose {
    /// A group is written, of this number.
    Group(u64),
    /// A device is synced.
    Sync(usize),
    /// A block is read, for this caller.
    Read(u64),
    /// The records of a sealed segment are read.
    Records(SegmentId),
    /// The footer of a full segment is written.
    Footer(SegmentId),
    /// The header of a segment is written, which says that it is free.
    Emptied(SegmentId),
}

/// The tokens of one log.
#[derive(Clone, Copy, Debug)]
pub struct LogTokens {
    namespace: u64,
}

impl LogTokens {
    /// Tokens whose eight highest bits are `namespace`.
    pub fn new(namespace: u8) -> LogTokens {
        LogTokens { namespace: u64::from(namespace) << NAMESPACE_SHIFT }
    }

    /// Whether a token is one of these.
    pub fn owns(self, token: Token) -> bool {
        token.0 >> NAMESPACE_SHIFT << NAMESPACE_SHIFT == self.namespace
    }

    /// The token of an operation.
    pub fn token(self, purpose: LogPurpose) -> Token {
        let (code, value) = match purpose {
            LogPurpose::Group(number) => (0_u64, number),
            LogPurpose::Sync(device) => (1, device as u64),
            LogPurpose::Read(caller) => (2, caller),
            LogPurpose::Footer(segment) => (3, u64::from(segment.0)),
            LogPurpose::Emptied(segment) => (4, u64::from(segment.0)),
            LogPurpose::Records(segment) => (5, u64::from(segment.0)),
        };
        let value = value & ((1 << PURPOSE_SHIFT) - 1);
        Token(self.namespace | code << PURPOSE_SHIFT | value)
    }

    /// What a token is for.
    pub fn purpose(self, token: Token) -> Option<LogPurpose> {
        let value = token.0 & ((1 << PURPOSE_SHIFT) - 1);
        let segment = SegmentId(value as u32);
        match token.0 >> PURPOSE_SHIFT & 0xf {
            0 => Some(LogPurpose::Group(value)),
            1 => Some(LogPurpose::Sync(value as usize)),
            2 => Some(LogPurpose::Read(value)),
            3 => Some(LogPurpose::Footer(segment)),
            4 => Some(LogPurpose::Emptied(segment)),
            5 => Some(LogPurpose::Records(segment)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_it_is_for() {
        let tokens = LogTokens::new(9);
        let segment = SegmentId(77);
        for purpose in [
            LogPurpose::Group(1 << 40),
            LogPurpose::Sync(3),
            LogPurpose::Read(1 << 41),
            LogPurpose::Records(segment),
            LogPurpose::Footer(segment),
            LogPurpose::Emptied(segment),
        ] {
            let token = tokens.token(purpose);
            assert_eq!(tokens.purpose(token), Some(purpose));
            assert!(tokens.owns(token) && !LogTokens::new(8).owns(token));
        }
        assert_eq!(tokens.purpose(Token(9 << 56 | 6 << 52)), None);
    }
}
