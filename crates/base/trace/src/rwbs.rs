//! The letters with which Linux says what a block request asks: `R`, `WS`, `FWFSM`, `ZR`.
//!
//! Source: `blk_fill_rwbs` of Linux 3.10 to 6.16, `fill_rwbs` of blkparse. A leading `F` asks for a
//! flush before anything else. Then come `R` read, `W` write, `WZ` zeroes, `D` discard (`DE`
//! secure), `F` flush, `N` neither, `ZA` zone append (a write), or another `Z` with which a zone is
//! managed. The letters behind say how (`S` sync, `M` meta, `A` ahead, `F` FUA, `U` atomic, more in
//! later kernels), which is not looked at.

use cachewright_types::Op;

/// What is expected where letters are refused.
pub(crate) const RWBS: &str =
    "letters that begin with R, W, D, N, F or Z, as the kernel writes them (`WS`, `FWFSM`)";

/// What the letters say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Nothing for what moves and drops no data.
    pub(crate) data: Option<Op>,
    /// A flush first.
    pub(crate) flush: bool,
    /// A zone is opened, closed, finished or reset.
    pub(crate) is_of_zone: bool,
}

/// What `letters` ask; nothing for what no kernel writes.
#[inline]
pub(crate) fn request(letters: &[u8]) -> Option<Request> {
    if !letters.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    let (flush, rest) = match letters {
        [b'F', rest @ ..] => (true, rest),
        _ => (false, letters),
    };
    let data = match rest {
        [b'R', ..] => Some(Op::Read),
        [b'W', b'Z', ..] | [b'D', ..] => Some(Op::Trim),
        [b'W', ..] | [b'Z', b'A', ..] => Some(Op::Write),
        [b'Z' | b'N', ..] => None,
        _ if flush => None,
        _ => return None,
    };
    Some(Request { data, flush, is_of_zone: data.is_none() && rest.first() == Some(&b'Z') })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_all_kernels() {
        let data =
            |letters: &str| request(letters.as_bytes()).map(|asked| (asked.data, asked.flush));
        for (letters, op) in [
            ("R", Op::Read),
            ("RA", Op::Read),
            ("RSM", Op::Read),
            ("W", Op::Write),
            ("WFSU", Op::Write),
            ("WSX", Op::Write),
            ("WZ", Op::Trim),
            ("WZS", Op::Trim),
            ("D", Op::Trim),
            ("DE", Op::Trim),
            ("ZA", Op::Write),
            ("ZAS", Op::Write),
        ] {
            assert_eq!(data(letters), Some((Some(op), false)), "{letters}");
        }
        assert_eq!(data("FWFSM"), Some((Some(Op::Write), true)));
        for flush in ["F", "FF", "FS", "FN", "FFS"] {
            assert_eq!(data(flush), Some((None, true)), "{flush}");
        }
        for nothing in ["N", "ZR", "ZRS", "ZF", "ZO", "ZC", "ZX"] {
            assert_eq!(data(nothing), Some((None, false)), "{nothing}");
        }
        assert!(request(b"ZR").is_some_and(|asked| asked.is_of_zone));
        for bad in ["", "X", "r", "W S", "SW", "8"] {
            assert_eq!(data(bad), None, "`{bad}`");
        }
    }
}
