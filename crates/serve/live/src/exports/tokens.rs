//! Tokens of operations of a node.
//!
//! For: the connection or listener that gets an operation which is done. Must never know: what is
//! done then.

use crate::io::Token;

/// What a token of a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodePurpose {
    /// A listener accepts, or pauses after an accept that failed.
    Accept,
    /// A connection receives.
    Receive,
    /// A connection sends.
    Send,
    /// A connection is closed.
    Close,
    /// Postponed connections go on.
    Wake,
    /// Connections are looked at that may be too slow.
    Watch,
    /// Connections that wait because of caps are looked at.
    Turn,
    /// A backing device has said what is allocated.
    Status,
}

const NAMESPACE_SHIFT: u32 = 56;
const PURPOSE_SHIFT: u32 = 48;

impl NodePurpose {
    /// In the order of their codes.
    const ALL: [NodePurpose; 8] = [
        NodePurpose::Accept,
        NodePurpose::Receive,
        NodePurpose::Send,
        NodePurpose::Close,
        NodePurpose::Wake,
        NodePurpose::Watch,
        NodePurpose::Turn,
        NodePurpose::Status,
    ];

    /// The token, of a listener or a connection of this number.
    pub fn token(self, namespace: u8, index: usize) -> Token {
        let namespace = u64::from(namespace) << NAMESPACE_SHIFT;
        Token(namespace | (self as u64) << PURPOSE_SHIFT | index as u64)
    }

    /// What a token of a namespace is for, and its number; nothing for one of another.
    pub fn decode(namespace: u8, token: Token) -> Option<(NodePurpose, usize)> {
        if token.0 >> NAMESPACE_SHIFT != u64::from(namespace) {
            return None;
        }
        let index = (token.0 & ((1 << PURPOSE_SHIFT) - 1)) as usize;
        let code = token.0 >> PURPOSE_SHIFT & 0xff;
        let purpose = *NodePurpose::ALL.get(code as usize)?;
        Some((purpose, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_it_is_for() {
        for (code, purpose) in NodePurpose::ALL.into_iter().enumerate() {
            let token = purpose.token(3, 40 + code);
            assert_eq!(NodePurpose::decode(3, token), Some((purpose, 40 + code)));
            assert_eq!(NodePurpose::decode(2, token), None);
        }
        assert_eq!(NodePurpose::decode(3, Token(3 << 56 | 8 << 48)), None);
    }
}
