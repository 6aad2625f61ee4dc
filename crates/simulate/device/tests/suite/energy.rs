//! Energies worked by hand: each device by what its given powers and energies add up to.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a failed test may panic

use crate::common;

use cachewright_device::{Completion, Device, MODELS, SpentPart, model};
use cachewright_types::{Nanos, Op};
use common::{command, device, next};

/// Carries out commands one after the other; their completions.
fn one_by_one(device: &mut dyn Device, commands: &[(Op, u64, u64)]) -> Vec<Completion> {
    let (mut done, mut now) = (Vec::new(), Nanos(0));
    for (tag, (op, offset, length)) in commands.iter().enumerate() {
        device.submit(now, command(tag as u64, *op, *offset, *length));
        now = next(device, &mut done);
        while let Some(due) = device.next_due() {
            device.advance(due, &mut done);
            now = now.max(due);
        }
    }
    done
}

#[track_caller]
fn assert_parts(device: &dyn Device, at: Nanos, expected: &[(&str, f64)]) {
    let energy = device.report(at).energy;
    assert_eq!(energy.parts().len(), expected.len(), "{energy:?}");
    for ((part, joules), (name, wanted)) in energy.parts().iter().zip(expected) {
        assert_eq!(part, name);
        assert!((joules - wanted).abs() <= 1e-12 + 1e-9 * wanted, "{part}: {joules}, {wanted}");
    }
    let sum: f64 = expected.iter().map(|(_, joules)| joules).sum();
    assert!((energy.joules().unwrap() - sum).abs() <= 1e-9 * sum);
}

/// Ten seconds at 7 W; the arm and the data on top for as long as the commands say.
#[test]
fn a_disk_draws_its_idle_power_and_more_while_it_moves() {
    let mut disk = device("hdd-7200-2tb", &[("segments", "0")]);
    let far = disk.capacity().0 / 2;
    let read = |at: u64| (Op::Read, at, 1 << 20);
    let done = one_by_one(disk.as_mut(), &[read(0), read(far), (Op::Write, 0, 4096), read(far)]);
    let time = |part| done.iter().map(|one| one.spent.part_ns(part)).sum::<u64>() as f64 / 1e9;
    let (seek, transfer) = (time(SpentPart::Seek), time(SpentPart::Transfer));
    assert!(seek > 0.025 && transfer > 0.02, "{seek} s, {transfer} s");
    let expected = [("idle", 70.0), ("seek", 5.7 * seek), ("transfer", 1.7 * transfer)];
    assert_parts(disk.as_ref(), Nanos(10_000_000_000), &expected);
}

/// Random reads without a pause draw what the manual measured for them: 10.8 W.
#[test]
fn a_disk_under_random_reads_draws_the_published_power() {
    let mut disk = device("hdd-7200-2tb", &[("queue_depth", "1")]);
    let blocks = disk.capacity().0 / 4096;
    let mut rng = cachewright_types::Seed(5).rng();
    let reads: Vec<_> = (0..4000).map(|_| (Op::Read, rng.below(blocks) * 4096, 4096)).collect();
    let done = one_by_one(disk.as_mut(), &reads);
    let end = done.last().unwrap().finished;
    let watts = disk.report(end).energy.joules().unwrap() / (end.0 as f64 / 1e9);
    assert!((watts - 10.8).abs() < 0.1, "{watts} W");
}

#[test]
fn memory_and_fixed_latency_spend_per_byte_and_per_command() {
    let commands = [(Op::Read, 0, 4096), (Op::Write, 4096, 8192), (Op::Read, 0, 512)];
    let mut ram = device("ram", &[("idle_power", "3"), ("transfer_energy", "20")]);
    one_by_one(ram.as_mut(), &commands);
    let bits = f64::from(8 * (4096 + 8192 + 512));
    let expected = [("idle", 6.0), ("transfer", bits * 20e-12)];
    assert_parts(ram.as_ref(), Nanos(2_000_000_000), &expected);
    let set = [("read_energy", "150"), ("write_energy", "400")];
    let mut fixed = device("fixed-latency", &set);
    one_by_one(fixed.as_mut(), &commands);
    one_by_one(fixed.as_mut(), &[(Op::Flush, 0, 0), (Op::Trim, 0, 4096)]);
    assert_parts(fixed.as_ref(), Nanos(1), &[("reads", 300e-6), ("writes", 400e-6)]);
}

/// Two pages are written, a quarter of one again (12 sectors are read first), both read: 16 and 4
/// sectors. The map is in memory, nothing is cleaned.
#[test]
fn a_drive_spends_per_page_and_per_bit_on_a_channel() {
    let set = [
        ("fill", "empty"),
        ("mapping", "ideal"),
        ("blocks", "256"),
        ("idle_power", "1"),
        ("read_energy", "50"),
        ("program_energy", "300"),
        ("erase_energy", "2000"),
        ("channel_energy", "10"),
    ];
    let mut drive = device("icache-table1", &set);
    let commands = [
        (Op::Write, 0, 8192),
        (Op::Write, 8192, 8192),
        (Op::Write, 2048, 2048),
        (Op::Read, 0, 8192),
        (Op::Read, 8192, 2048),
    ];
    one_by_one(drive.as_mut(), &commands);
    // Written: 8 KiB three times; read: 6 KiB to be kept, 8 KiB, 2 KiB.
    let bits = f64::from(8 * 1024 * (3 * 8 + 6 + 8 + 2));
    let expected = [
        ("idle", 0.5),
        ("flash reads", 3.0 * 50e-6),
        ("flash programs", 3.0 * 300e-6),
        ("flash erases", 0.0),
        ("channels", bits * 10e-12),
    ];
    assert_parts(drive.as_ref(), Nanos(500_000_000), &expected);
    let report = drive.report(Nanos(500_000_000));
    assert_eq!(report.flash().unwrap().counters.channel_bytes * 8, bits as u64);
}

#[test]
fn only_models_with_a_source_for_their_power_have_an_energy() {
    let given = |name: &&str| {
        model(name).unwrap().build(&[]).unwrap().report(Nanos(1)).energy != Default::default()
    };
    let names = MODELS.iter().map(|model| model.name);
    let known: Vec<&str> = names.filter(given).collect();
    assert_eq!(known, ["hdd-7200-2tb", "sata-850pro"]);
}
