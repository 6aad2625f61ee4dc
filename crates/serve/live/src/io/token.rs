//! Whose operation a token names. Only this file divides the bits of a token among the parts of a
//! server, which all wait on one [`super::Io`]: the eight highest bits name the part, the next
//! eight say what the operation is for, and the others are a number.

use super::Token;

/// A part of a server that submits operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Submitter {
    /// The log of the cache.
    Log = 1,
    /// The server of blocks.
    Blocks,
    /// What drives all others: its timer, its looks at devices, its last syncs.
    Driver,
    /// The front end for the network block device protocol.
    Nbd,
    /// The front end for guests with virtio disks.
    VhostUser,
    /// Rare changes that are waited for beside what is under way.
    Aside,
    /// Delays of files that are to answer later than they do.
    Delay,
    /// The clients of a rehearsal, which send recorded requests.
    Rehearsal,
}

const SUBMITTER_SHIFT: u32 = 56;
const PURPOSE_SHIFT: u32 = 48;

impl Submitter {
    const ALL: [Submitter; 8] = [
        Submitter::Log,
        Submitter::Blocks,
        Submitter::Driver,
        Submitter::Nbd,
        Submitter::VhostUser,
        Submitter::Aside,
        Submitter::Delay,
        Submitter::Rehearsal,
    ];

    /// The name of an operation for this purpose, of the connection, queue or device with this
    /// number.
    pub const fn token(self, purpose: u8, number: usize) -> Token {
        let (submitter, purpose) = (self as u64, purpose as u64);
        Token(submitter << SUBMITTER_SHIFT | purpose << PURPOSE_SHIFT | number as u64)
    }

    /// Whose operation it is.
    pub fn of(token: Token) -> Option<Submitter> {
        let found = token.0 >> SUBMITTER_SHIFT;
        Submitter::ALL.into_iter().find(|submitter| *submitter as u64 == found)
    }
}

/// What an operation is for, and its number.
pub fn purpose(token: Token) -> (u8, usize) {
    let number = token.0 & ((1 << PURPOSE_SHIFT) - 1);
    ((token.0 >> PURPOSE_SHIFT) as u8, number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_whose_it_is_and_what_for() {
        for submitter in Submitter::ALL {
            for code in [0, 3, 255] {
                let token = submitter.token(code, 40);
                assert_eq!((Submitter::of(token), purpose(token)), (Some(submitter), (code, 40)));
            }
        }
        assert_eq!([0, 9, 254, 255].map(|top| Submitter::of(Token(top << 56))), [None; 4]);
    }
}
