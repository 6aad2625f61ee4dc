//! Files: content, ranges, and what comes back.

use super::conformance;
use super::rigs::{Rig, run, run_one};
use cachewright_live::io::{Buffer, Done, FileExtent, FileId, IoError, IoOp, Output, Token};
use std::sync::Arc;

/// Bytes of a block.
const BLOCK: u64 = 4096;

fn filled(blocks: u64, value: u8) -> Buffer {
    let mut buffer = Buffer::zeroed((blocks * BLOCK) as usize);
    buffer.fill(value);
    buffer
}

fn write(file: FileId, block: u64, blocks: u64, value: u8) -> IoOp {
    IoOp::Write { file, offset: block * BLOCK, buffer: Arc::new(filled(blocks, value)) }
}

fn read(file: FileId, block: u64, blocks: u64) -> IoOp {
    let buffer = Buffer::zeroed((blocks * BLOCK) as usize);
    IoOp::Read { file, offset: block * BLOCK, buffer }
}

/// The first byte of each block of what was read wholly and without an error.
fn values(done: Done) -> Vec<u8> {
    assert_eq!(done.error, None);
    match done.output {
        Output::Buffer(buffer, count) => {
            assert_eq!(count, buffer.len());
            let uniform = |block: &[u8]| block.iter().all(|byte| *byte == block[0]);
            assert!(buffer.chunks(BLOCK as usize).all(uniform), "a block is of one write");
            buffer.iter().step_by(BLOCK as usize).copied().collect()
        }
        output => panic!("a read gives its buffer back, not {output:?}"),
    }
}

fn what_is_written_is_read(rig: &mut (impl Rig + ?Sized)) {
    let file = rig.file(16 * BLOCK);
    assert_eq!(rig.io().file_bytes(file), 16 * BLOCK);
    let written = run_one(rig, write(file, 3, 2, 7));
    assert!(matches!((written.output, written.error), (Output::Nothing, None)));
    assert_eq!(values(run_one(rig, read(file, 2, 4))), [0, 7, 7, 0]);
    assert_eq!(run_one(rig, write(file, 4, 1, 8)).error, None);
    let synced = run_one(rig, IoOp::Sync { file });
    assert!(matches!((synced.output, synced.error), (Output::Nothing, None)));
    assert_eq!(values(run_one(rig, read(file, 0, 16)))[2..6], [0, 7, 8, 0]);
    let content = rig.content(file);
    assert_eq!((content.len(), content[3 * 4096], content[4 * 4096]), (16 * 4096, 7, 8));
}

fn many_operations_are_done_in_any_order(rig: &mut (impl Rig + ?Sized)) {
    let files = [rig.file(1024 * BLOCK), rig.file(1024 * BLOCK)];
    let places = || (0..64_u64).flat_map(|place| files.map(|file| (file, place)));
    let size = |place: u64| 1 + place % 15;
    let value = |file: FileId, place: u64| (1 + place + 100 * u64::from(file.0)) as u8;
    let writes =
        places().map(|(file, place)| write(file, 16 * place, size(place), value(file, place)));
    assert!(run(rig, writes.collect()).iter().all(|done| done.error.is_none()));
    let reads = places().map(|(file, place)| read(file, 16 * place, 16)).collect();
    for ((file, place), done) in places().zip(run(rig, reads)) {
        let mut expected = vec![0; 16];
        expected[..size(place) as usize].fill(value(file, place));
        assert_eq!(values(done), expected);
    }
}

fn ranges_that_begin_unaligned_or_end_outside_are_refused(rig: &mut (impl Rig + ?Sized)) {
    let file = rig.file(4 * BLOCK);
    let odd = [(512, 4096), (4 * BLOCK, 512), (1, 4096), (4 * BLOCK, 4096), (3 * BLOCK, 8192)];
    let wide = [(u64::MAX - 4095, 8192), (u64::MAX - 4095, 4096)];
    for (offset, length) in odd.into_iter().chain(wide) {
        let mut buffer = Buffer::zeroed(length);
        buffer.fill(9);
        let shared = Arc::new(buffer);
        let buffer = shared.clone();
        let done = run_one(rig, IoOp::Write { file, offset, buffer });
        assert_eq!(done.error, Some(IoError::INVALID), "{offset}, {length}");
        assert!(matches!(done.output, Output::Nothing));
        let buffer = Arc::into_inner(shared).expect("nothing holds it any more");
        assert_eq!(buffer[..], vec![9; length][..]);
        let done = run_one(rig, IoOp::Read { file, offset, buffer });
        assert_eq!(done.error, Some(IoError::INVALID), "{offset}, {length}");
        assert!(matches!(done.output, Output::Buffer(buffer, 0) if buffer.len() == length));
        for op in [
            IoOp::Zero { file, offset, length: length as u64 },
            IoOp::Provision { file, offset, length: length as u64 },
            IoOp::Discard { file, offset, length: length as u64 },
            IoOp::Extents { file, offset, length: length as u64, max_extents: 4 },
        ] {
            assert_eq!(run_one(rig, op).error, Some(IoError::INVALID), "{offset}, {length}");
        }
    }
    assert_eq!(values(run_one(rig, read(file, 0, 4))), [0; 4], "nothing was written");
}

/// Bytes of the last page of a file.
const ENDS: [u64; 3] = [100, 512, 4095];

fn the_end_of_a_file_is_read_and_written_to_the_byte(rig: &mut (impl Rig + ?Sized)) {
    for end in ENDS {
        let bytes = 4 * BLOCK + end;
        let file = rig.file(bytes);
        let length = (2 * BLOCK + end) as usize;
        let mut buffer = Buffer::zeroed(length);
        buffer.iter_mut().zip(0_u32..).for_each(|(byte, at)| *byte = (at % 251) as u8 + 1);
        let written = buffer.clone();
        let buffer = Arc::new(buffer);
        let done = run_one(rig, IoOp::Write { file, offset: 2 * BLOCK, buffer });
        assert_eq!(done.error, None, "{end}");
        let buffer = Buffer::zeroed(length);
        let done = run_one(rig, IoOp::Read { file, offset: 2 * BLOCK, buffer });
        let is_whole = |buffer: &Buffer, count: usize| count == length && buffer[..] == written[..];
        assert!(matches!(&done.output, Output::Buffer(buffer, count) if is_whole(buffer, *count)));
        // Less than all of the last page, and all of it.
        for length in [1, end as usize] {
            let buffer = Arc::new(Buffer::copy_of(&vec![9; length]));
            let done = run_one(rig, IoOp::Write { file, offset: 4 * BLOCK, buffer });
            assert_eq!(done.error, None, "{end}");
            assert_eq!(run_one(rig, IoOp::Sync { file }).error, None);
            let content = rig.content(file);
            let (pages, tail) = content.split_at(4 * BLOCK as usize);
            let (before, tail_before) = written.split_at(2 * BLOCK as usize);
            assert_eq!(pages[2 * BLOCK as usize..], *before);
            assert!(tail[..length].iter().all(|byte| *byte == 9));
            assert_eq!(tail[length..], tail_before[length..]);
        }
        let past = Arc::new(Buffer::zeroed(end as usize + 1));
        let done = run_one(rig, IoOp::Write { file, offset: 4 * BLOCK, buffer: past });
        assert_eq!(done.error, Some(IoError::INVALID));
        assert_eq!((rig.content(file).len() as u64, rig.io().file_bytes(file)), (bytes, bytes));
    }
}

fn the_end_of_a_file_is_zeroed_and_discarded(rig: &mut (impl Rig + ?Sized)) {
    for end in ENDS {
        let bytes = 4 * BLOCK + end;
        let file = rig.file(bytes);
        for (offset, place) in [(4 * BLOCK, 0), (2 * BLOCK, 1), (4 * BLOCK, 2)] {
            let buffer = Arc::new(Buffer::copy_of(&vec![7; bytes as usize]));
            assert_eq!(run_one(rig, IoOp::Write { file, offset: 0, buffer }).error, None);
            let length = bytes - offset;
            let op = match place {
                0 => IoOp::Zero { file, offset, length },
                1 => IoOp::Provision { file, offset, length },
                _ => IoOp::Discard { file, offset, length },
            };
            let error = run_one(rig, op).error;
            assert!(error.is_none() || error == Some(IoError::NOT_SUPPORTED));
            let content = rig.content(file);
            assert_eq!(content.len() as u64, bytes, "the size stays");
            let (kept, changed) = content.split_at(offset as usize);
            assert!(kept.iter().all(|byte| *byte == 7), "{end}");
            let is_zero = changed.iter().all(|byte| *byte == 0);
            assert!(is_zero || place == 2 || error.is_some(), "{end}");
        }
    }
}

fn extents(rig: &mut (impl Rig + ?Sized), op: IoOp) -> Vec<FileExtent> {
    let done = run_one(rig, op);
    assert_eq!(done.error, None);
    match done.output {
        Output::Extents(extents) => extents,
        output => panic!("found {output:?}"),
    }
}

fn holes_are_told_from_data(rig: &mut (impl Rig + ?Sized)) {
    let file = rig.file(1024 * BLOCK + 100);
    run_one(rig, write(file, 256, 64, 7));
    run_one(rig, write(file, 512, 64, 7));
    let of = |blocks: u64, is_hole: bool| FileExtent { bytes: blocks * BLOCK, is_hole };
    let all = IoOp::Extents { file, offset: 0, length: 1024 * BLOCK + 100, max_extents: 8 };
    let mut expected = [of(256, true), of(64, false), of(192, true), of(64, false), of(448, true)];
    expected[4].bytes += 100;
    assert_eq!(extents(rig, all), expected);
    let length = 300 * BLOCK;
    let some = IoOp::Extents { file, offset: 270 * BLOCK, length, max_extents: 2 };
    assert_eq!(extents(rig, some), [of(50, false), of(192, true)]);
    let within = IoOp::Extents { file, offset: 0, length: 4 * BLOCK, max_extents: 2 };
    assert_eq!(extents(rig, within), [of(4, true)]);
    // Zeroes make holes.
    let zero = IoOp::Zero { file, offset: 256 * BLOCK, length: 64 * BLOCK };
    assert_eq!(run_one(rig, zero).error, None);
    let first = IoOp::Extents { file, offset: 0, length: 512 * BLOCK, max_extents: 8 };
    assert_eq!(extents(rig, first), [of(512, true)]);
}

fn many_looks_at_extents_end_beside_other_operations(rig: &mut (impl Rig + ?Sized)) {
    let file = rig.file(64 * BLOCK);
    run_one(rig, write(file, 0, 64, 4));
    let op = |number: u64| match number % 2 {
        0 => IoOp::Extents { file, offset: 0, length: 64 * BLOCK, max_extents: 1 },
        _ => read(file, number % 64, 1),
    };
    for _ in 0..3 {
        for (number, done) in run(rig, (0..200).map(op).collect()).into_iter().enumerate() {
            if let Output::Extents(found) = &done.output {
                assert_eq!(found[..], [FileExtent { bytes: 64 * BLOCK, is_hole: false }]);
                continue;
            }
            assert_eq!((values(done), number % 2), (vec![4], 1));
        }
    }
}

fn zeroed_and_discarded_ranges_end_at_their_ends(rig: &mut (impl Rig + ?Sized)) {
    let file = rig.file(32 * BLOCK);
    run_one(rig, write(file, 0, 32, 5));
    let zero = IoOp::Zero { file, offset: 4 * BLOCK, length: 8 * BLOCK };
    let done = run_one(rig, zero);
    assert_eq!(done.error, None);
    assert!(matches!(done.output, Output::Nothing));
    let mut expected = [5; 32];
    expected[4..12].fill(0);
    assert_eq!(values(run_one(rig, read(file, 0, 32))), expected);
    run_one(rig, write(file, 6, 1, 6));
    expected[6] = 6;
    assert_eq!(values(run_one(rig, read(file, 0, 32))), expected);
    let discard = IoOp::Discard { file, offset: 20 * BLOCK, length: 4 * BLOCK };
    let error = run_one(rig, discard).error;
    assert!(error.is_none() || error == Some(IoError::NOT_SUPPORTED));
    let read_back = values(run_one(rig, read(file, 0, 32)));
    assert_eq!((&read_back[..20], &read_back[24..]), (&expected[..20], &expected[24..]));
    assert_eq!(run_one(rig, IoOp::Sync { file }).error, None);
    assert_eq!(rig.io().file_bytes(file), 32 * BLOCK);
    assert_eq!(rig.content(file).len() as u64, 32 * BLOCK, "the size stays");
}

fn operations_on_no_bytes_are_done(rig: &mut (impl Rig + ?Sized)) {
    let file = rig.file(4 * BLOCK);
    run_one(rig, write(file, 0, 4, 3));
    let (offset, length) = (BLOCK, 0);
    let ops = vec![
        IoOp::Read { file, offset, buffer: Buffer::default() },
        IoOp::Write { file, offset, buffer: Arc::default() },
        IoOp::Zero { file, offset, length },
        IoOp::Discard { file, offset, length },
        IoOp::Read { file, offset: 4 * BLOCK, buffer: Buffer::default() },
    ];
    assert!(run(rig, ops).iter().all(|done| done.error.is_none()));
    assert_eq!(values(run_one(rig, read(file, 0, 4))), [3; 4]);
}

fn ten_thousand_operations_at_depth_64_each_end_once(rig: &mut (impl Rig + ?Sized)) {
    const OPERATIONS: u64 = 10_000;
    const DEPTH: u64 = 64;
    let file = rig.file(DEPTH * BLOCK);
    let mut ends = vec![0_u64; OPERATIONS as usize];
    let (mut begun, mut ended) = (0, 0);
    // Operation `n` writes, and `n + DEPTH` reads, the same block, and so on by turns.
    let op = |number: u64, buffer: Buffer| {
        let offset = number % DEPTH * BLOCK;
        match number / DEPTH % 2 {
            0 => IoOp::Write { file, offset, buffer: Arc::new(buffer) },
            _ => IoOp::Read { file, offset, buffer },
        }
    };
    let value = |number: u64| (number % 251) as u8;
    while begun < DEPTH {
        rig.io().submit(Token(begun), op(begun, filled(1, value(begun))));
        begun += 1;
    }
    let mut done = Vec::new();
    while ended < OPERATIONS {
        rig.io().wait(&mut done);
        assert!(!done.is_empty());
        for Done { token: Token(number), output, error } in done.drain(..) {
            ends[number as usize] += 1;
            ended += 1;
            assert_eq!(error, None);
            let buffer = match output {
                Output::Buffer(buffer, 4096) => {
                    let written = value(number - DEPTH);
                    assert!(buffer.iter().all(|byte| *byte == written), "operation {number}");
                    filled(1, value(number + DEPTH))
                }
                Output::Nothing => filled(1, 0),
                output => panic!("found {output:?}"),
            };
            if number + DEPTH < OPERATIONS {
                rig.io().submit(Token(number + DEPTH), op(number + DEPTH, buffer));
            }
        }
    }
    assert!(ends.iter().all(|count| *count == 1));
    rig.io().wait(&mut done);
    assert!(done.is_empty(), "nothing is under way");
}

fn more_can_be_under_way_than_a_ring_holds(rig: &mut (impl Rig + ?Sized)) {
    let file = rig.file(64 * BLOCK);
    run_one(rig, write(file, 0, 64, 4));
    let reads = (0..5_000).map(|number| read(file, number % 64, 1)).collect();
    assert!(run(rig, reads).into_iter().all(|done| values(done) == [4]));
}

conformance!(
    what_is_written_is_read,
    many_operations_are_done_in_any_order,
    ranges_that_begin_unaligned_or_end_outside_are_refused,
    the_end_of_a_file_is_read_and_written_to_the_byte,
    the_end_of_a_file_is_zeroed_and_discarded,
    holes_are_told_from_data,
    many_looks_at_extents_end_beside_other_operations,
    zeroed_and_discarded_ranges_end_at_their_ends,
    operations_on_no_bytes_are_done,
    ten_thousand_operations_at_depth_64_each_end_once,
    more_can_be_under_way_than_a_ring_holds,
);
