//! Several devices as one: where bytes go, when commands are done, and that nothing is lost.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a failed test may panic

use crate::common;

use cachewright_device::{AnyDevice, Command, Completion, Device, SpentPart, Striped};
use cachewright_types::{Bytes, Nanos, Op};
use common::{command, device, saturate};
use proptest::prelude::*;

const KIB: u64 = 1024;
/// The time of a report, which counts of commands do not depend on.
const NOW: Nanos = Nanos(0);

/// `count` devices of a model in stripes of so many KiB.
fn array(count: usize, stripe_kib: u64, name: &str, pairs: &[(&str, &str)]) -> Striped {
    let devices = (0..count).map(|_| device(name, pairs)).collect();
    Striped::new(devices, Bytes(stripe_kib * KIB)).unwrap()
}

/// Reads and written bytes of each member.
fn bytes(array: &Striped, op: Op) -> Vec<u64> {
    array.report(NOW).members.iter().map(|member| member.used.bytes[op as usize]).collect()
}

/// 64 KiB on 4 members in stripes of 16 KiB, from the middle of the second on: members 1 to 3 and,
/// with a whole and a half stripe, 0 and 1 again.
#[test]
fn what_lies_on_one_member_is_one_command_to_it() {
    let mut array = array(4, 16, "fixed-latency", &[("read", "100us"), ("parallelism", "1")]);
    array.submit(Nanos(0), command(7, Op::Read, 24 * KIB, 64 * KIB));
    assert_eq!(bytes(&array, Op::Read), [16 * KIB, 16 * KIB, 16 * KIB, 16 * KIB]);
    let commands: Vec<u64> = array.report(NOW).members.iter().map(|m| m.used.commands[0]).collect();
    assert_eq!(commands, [1; 4], "8 KiB and 8 KiB of member 1 lie in a row");
    let mut done = Vec::new();
    array.advance(Nanos(100_000), &mut done);
    let [one] = done.as_slice() else { unreachable!("{done:?}") };
    assert_eq!((one.tag, one.submitted, one.finished), (7, Nanos(0), Nanos(100_000)));
    assert_eq!((array.outstanding(), array.next_due()), (0, None));
}

/// Member 1 still works on an earlier command: the new one is done, and accounted for, with it.
#[test]
fn a_command_ends_with_its_last_part() {
    let mut array = array(2, 4, "fixed-latency", &[("read", "100us"), ("parallelism", "1")]);
    array.submit(Nanos(0), command(1, Op::Read, 4 * KIB, 4 * KIB));
    array.submit(Nanos(30_000), command(2, Op::Read, 0, 8 * KIB));
    let mut done = Vec::new();
    assert_eq!(array.next_due(), Some(Nanos(100_000)));
    array.advance(Nanos(1 << 40), &mut done);
    let ends: Vec<(u64, u64)> = done.iter().map(|one| (one.tag, one.finished.0)).collect();
    assert_eq!(ends, [(1, 100_000), (2, 200_000)]);
    assert_eq!(
        (done[1].spent.part_ns(SpentPart::Queue), done[1].spent.total_ns()),
        (70_000, 170_000)
    );
    let members = array.report(NOW).members;
    let busy: Vec<u64> = members.iter().map(|m| m.used.population.busy_ns()).collect();
    assert_eq!(busy, [100_000, 200_000], "each has a line of its own");
}

#[test]
fn a_flush_goes_to_all_and_a_trim_where_its_bytes_are() {
    let mut array = array(3, 4, "null", &[]);
    array.submit(Nanos(0), command(0, Op::Flush, 0, 0));
    array.submit(Nanos(0), command(1, Op::Trim, 4 * KIB, 8 * KIB));
    let commands: Vec<[u64; 4]> =
        array.report(NOW).members.iter().map(|m| m.used.commands).collect();
    let (flushes, trims) = (Op::Flush as usize, Op::Trim as usize);
    assert_eq!(commands.iter().map(|kinds| kinds[flushes]).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(commands.iter().map(|kinds| kinds[trims]).collect::<Vec<_>>(), [0, 1, 1]);
    let mut done = Vec::new();
    array.advance(Nanos(0), &mut done);
    assert_eq!(done.len(), 2);
}

#[test]
fn stripes_must_fit() {
    let refusal = |stripe: u64| {
        let devices = vec![device("null", &[("capacity", "1MiB")]), device("null", &[])];
        Striped::new(devices, Bytes(stripe)).map(|array| array.capacity())
    };
    assert_eq!(refusal(100 << 10), Ok(Bytes(2000 << 10)), "10 stripes of the smaller one");
    let words = |stripe| refusal(stripe).unwrap_err().to_string();
    assert_eq!(words(1000), "`stripe`: found 1000B, expected whole sectors of 512B");
    assert!(words(0).contains("`stripe`: found 0B"));
    let expected = "`stripe`: found 2MiB, expected at most 1MiB, the capacity of one device";
    assert_eq!(words(2 << 20), expected);
    assert!(Striped::new(Vec::new(), Bytes(512)).is_err());
}

/// Random reads that saturate: twice the devices do the same work in close to half the time.
#[test]
fn throughput_grows_with_the_count() {
    let ends: Vec<f64> = [1, 2, 4, 8]
        .map(|count| {
            let mut array = array(count, 64, "fixed-latency", &[("parallelism", "4")]);
            let mut rng = cachewright_types::Seed(5).rng();
            let reads =
                (0..20_000).map(|tag| command(tag, Op::Read, rng.below(1 << 20) * 4096, 4096));
            let done = saturate(&mut array, 256, reads);
            done.iter().map(|one| one.finished.0).max().unwrap() as f64
        })
        .to_vec();
    for pair in ends.windows(2) {
        assert!((1.9..=2.0).contains(&(pair[0] / pair[1])), "{ends:?}");
    }
}

/// Random commands of all kinds within a capacity, with pauses between them.
fn workload() -> impl Strategy<Value = Vec<(u64, Command)>> {
    let one =
        (0_u8..8, 0_u64..4096, 1_u64..64, 0_u64..400_000).prop_map(|(op, at, length, gap)| {
            let (op, length) = match op {
                0..4 => (Op::Read, length),
                4..6 => (Op::Write, length),
                6 => (Op::Trim, length),
                _ => (Op::Flush, 0),
            };
            (gap, command(0, op, at * 512, length * 512))
        });
    let number = |(at, (gap, command)): (usize, (u64, Command))| {
        (gap, Command { tag: at as u64, ..command })
    };
    prop::collection::vec(one, 1..120)
        .prop_map(move |all| all.into_iter().enumerate().map(number).collect())
}

fn drive(device: &mut dyn Device, commands: &[(u64, Command)]) -> Vec<Completion> {
    let (mut now, mut done) = (0, Vec::new());
    for (gap, command) in commands {
        now += gap;
        device.advance(Nanos(now), &mut done);
        device.submit(Nanos(now), *command);
        assert_eq!(device.audit(), Ok(()));
    }
    while let Some(due) = device.next_due() {
        device.advance(due, &mut done);
        assert_eq!(device.audit(), Ok(()));
    }
    assert_eq!(device.outstanding(), 0);
    done
}

const MODELS: [(&str, &[(&str, &str)]); 3] =
    [("fixed-latency", &[("parallelism", "2")]), ("hdd-10045-9gb", &[]), ("icache-modern", &SMALL)];

/// A drive of two planes and 8 MiB.
const SMALL: [(&str, &str); 7] = [
    ("channels", "2"),
    ("chips", "1"),
    ("dies", "1"),
    ("planes", "1"),
    ("blocks", "32"),
    ("block", "128KiB"),
    ("capacity", "4MiB"),
];

/// The second command comes at the nanosecond at which a message of the first arrives, which is not
/// to be seen from outside.
#[test]
fn a_member_with_nothing_due_is_advanced_before_a_command() {
    let read = |tag| command(tag, Op::Read, 0, 512);
    for pause in 1..40 {
        let commands = [(0, read(0)), (pause, read(1))];
        let (name, pairs) = MODELS[2];
        let mut array = Striped::new(vec![device(name, pairs)], Bytes(512)).unwrap();
        let mut alone = device(name, pairs);
        assert_eq!(drive(&mut array, &commands), drive(alone.as_mut(), &commands), "{pause} ns");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn each_command_completes_once_and_bytes_are_conserved(
        commands in workload(), count in 1_usize..6, sectors in 1_u64..40, model in 0_usize..3,
    ) {
        let (name, pairs) = MODELS[model];
        let devices: Vec<AnyDevice> = (0..count).map(|_| device(name, pairs)).collect();
        let mut array = Striped::new(devices, Bytes(sectors * 512)).unwrap();
        let done = drive(&mut array, &commands);
        let mut tags: Vec<u64> = done.iter().map(|one| one.tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..commands.len() as u64).collect::<Vec<_>>());
        prop_assert!(done.is_sorted_by_key(|one| one.finished));
        for one in &done {
            prop_assert_eq!(one.spent.total_ns(), one.finished.0 - one.submitted.0);
        }
        for op in [Op::Read, Op::Write, Op::Trim] {
            let of = commands.iter().filter(|(_, command)| command.op == op);
            let asked: u64 = of.map(|(_, command)| command.length.0).sum();
            prop_assert_eq!(bytes(&array, op).iter().sum::<u64>(), asked);
        }
    }

    #[test]
    fn one_device_striped_is_the_device(
        commands in workload(), sectors in 1_u64..40, model in 0_usize..3,
    ) {
        let (name, pairs) = MODELS[model];
        let mut alone = device(name, pairs);
        let mut array = Striped::new(vec![device(name, pairs)], Bytes(sectors * 512)).unwrap();
        prop_assert_eq!(drive(&mut array, &commands), drive(alone.as_mut(), &commands));
    }
}
