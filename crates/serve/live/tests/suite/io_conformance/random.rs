//! Random operations give the content that a plain model gives.

use super::rigs::{HostRig, Rig, run, with_threads, with_uring};
use cachewright_live::io::{Buffer, FileId, IoError, IoOp, Output};
use proptest::prelude::*;
use std::sync::Arc;

/// Bytes of a block, and blocks of the file.
const BLOCK: usize = 4096;
const BLOCKS: usize = 64;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Write(u8),
    Read,
    Zero,
    Discard,
    Sync,
}

/// An operation on a range of blocks.
#[derive(Clone, Copy, Debug)]
struct Step {
    kind: Kind,
    first: usize,
    blocks: usize,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        4 => any::<u8>().prop_map(Kind::Write),
        3 => Just(Kind::Read),
        1 => Just(Kind::Zero),
        1 => Just(Kind::Discard),
        1 => Just(Kind::Sync),
    ];
    (kind, 0..BLOCKS, 1..12_usize).prop_map(|(kind, first, blocks)| Step {
        kind,
        first,
        blocks: blocks.min(BLOCKS - first),
    })
}

impl Step {
    fn range(self) -> std::ops::Range<usize> {
        self.first..self.first + self.blocks
    }

    fn op(self, file: FileId) -> IoOp {
        let (offset, length) = ((self.first * BLOCK) as u64, (self.blocks * BLOCK) as u64);
        let mut buffer = Buffer::zeroed(self.blocks * BLOCK);
        match self.kind {
            Kind::Write(value) => {
                buffer.fill(value);
                IoOp::Write { file, offset, buffer: Arc::new(buffer) }
            }
            Kind::Read => IoOp::Read { file, offset, buffer },
            Kind::Zero => IoOp::Zero { file, offset, length },
            Kind::Discard => IoOp::Discard { file, offset, length },
            Kind::Sync => IoOp::Sync { file },
        }
    }
}

/// What a file may hold: the byte of each block; of discarded ones anything.
type Model = [Option<u8>; BLOCKS];

/// Cuts steps into groups whose ranges do not overlap, so that their order does not matter.
fn groups(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut groups: Vec<Vec<Step>> = vec![Vec::new()];
    let mut taken = [false; BLOCKS];
    for step in steps {
        if step.range().any(|block| taken[block]) {
            taken = [false; BLOCKS];
            groups.push(Vec::new());
        }
        if !matches!(step.kind, Kind::Sync) {
            taken[step.range()].fill(true);
        }
        groups.last_mut().unwrap().push(*step);
    }
    groups
}

fn check(expected: &Model, first: usize, found: &[u8]) {
    for (place, block) in found.chunks(BLOCK).enumerate() {
        if let Some(value) = expected[first + place] {
            assert!(block.iter().all(|byte| *byte == value), "block {}", first + place);
        }
    }
}

fn runs_as_the_model(rig: &mut HostRig, steps: &[Step]) {
    let file = rig.file((BLOCKS * BLOCK) as u64);
    let mut model: Model = [Some(0); BLOCKS];
    for group in groups(steps) {
        let ops = group.iter().map(|step| step.op(file)).collect();
        for (step, done) in group.iter().zip(run(rig, ops)) {
            let new = match (step.kind, done.output) {
                (Kind::Read, Output::Buffer(buffer, count)) => {
                    assert_eq!(count, buffer.len());
                    check(&model, step.first, &buffer);
                    continue;
                }
                (Kind::Write(value), Output::Nothing) => Some(value),
                (Kind::Zero, Output::Nothing) => Some(0),
                (Kind::Discard, Output::Nothing) if done.error.is_none() => None,
                (Kind::Discard, Output::Nothing) => {
                    assert_eq!(done.error, Some(IoError::NOT_SUPPORTED));
                    continue;
                }
                (Kind::Sync, Output::Nothing) => continue,
                (kind, output) => panic!("found {output:?} of {kind:?}"),
            };
            assert_eq!(done.error, None);
            model[step.range()].fill(new);
        }
    }
    check(&model, 0, &rig.content(file));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn uring_gives_the_content_of_a_plain_model(steps in prop::collection::vec(step(), 1..80)) {
        with_uring(|rig| runs_as_the_model(rig, &steps));
    }

    #[test]
    fn threads_give_the_content_of_a_plain_model(steps in prop::collection::vec(step(), 1..80)) {
        with_threads(|rig| runs_as_the_model(rig, &steps));
    }
}
