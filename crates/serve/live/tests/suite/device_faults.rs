//! How devices of the tests fail: operations that are done in part, pages that cannot be read.
//!
//! For: worlds whose devices fail at random. Must never know: what is served.

use cachewright_live::io::sim::{Fault, Share};
use cachewright_live::io::{IoError, IoOp};
use cachewright_types::{Rng, Seed};

/// Whether an operation changes a file, or makes changes durable.
pub fn changes(op: &IoOp) -> bool {
    match op {
        IoOp::Write { .. }
        | IoOp::Zero { .. }
        | IoOp::Provision { .. }
        | IoOp::Discard { .. }
        | IoOp::Sync { .. } => true,
        IoOp::Read { .. }
        | IoOp::Extents { .. }
        | IoOp::Accept { .. }
        | IoOp::Receive { .. }
        | IoOp::Send { .. }
        | IoOp::Close { .. }
        | IoOp::Await { .. }
        | IoOp::Timer { .. } => false,
    }
}

/// A failure of an operation that changes a file: nothing of it was done, all, or any part.
pub fn any_failure(rng: &mut Rng) -> Fault {
    let error = [IoError::IO, IoError::NO_SPACE][rng.below(2) as usize];
    match rng.below(3) {
        0 => Fault::Error(error),
        1 => Fault::Partly(error, Share::All),
        _ => Fault::Partly(error, Share::Some(Seed(rng.next_u64()))),
    }
}
