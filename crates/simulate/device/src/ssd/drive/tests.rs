use super::*;
use crate::ssd::host::Port;
use crate::ssd::params::SsdParams;
use cachewright_types::declare::Declared;
use cachewright_types::{TenantId, Value};

/// An inside that takes the same time for every command, all at once.
struct Flat {
    time_ns: u64,
    open: Vec<(u64, Slot)>,
    most: usize,
}

impl Inside for Flat {
    fn capacity(&self) -> Bytes {
        Bytes(1 << 30)
    }

    fn arrive(&mut self, now: Nanos, slot: Slot, _: &Command, _: &mut Vec<FinishedCommand>) {
        self.open.push((now.0 + self.time_ns, slot));
        self.most = self.most.max(self.open.len());
    }

    fn next_due(&self) -> Option<Nanos> {
        self.open.first().map(|(due, _)| Nanos(*due))
    }

    fn advance(&mut self, until: Nanos, finished: &mut Vec<FinishedCommand>) -> Nanos {
        let now = self.next_due().map_or(until, |due| due.min(until));
        while self.open.first().is_some_and(|(due, _)| *due <= now.0) {
            let (_, slot) = self.open.remove(0);
            let mut spent = Spent::default();
            spent.add(SpentPart::Flash, self.time_ns);
            finished.push(FinishedCommand { slot, spent });
        }
        now
    }

    fn outstanding(&self) -> usize {
        self.open.len()
    }

    fn exposed(&self) -> Vec<Exposed> {
        Vec::new()
    }

    fn flash(&self, _: Nanos) -> Option<FlashStats> {
        None
    }

    fn spend(&self, _: &mut Energy) {}

    fn audit(&self) -> Result<(), String> {
        Ok(())
    }
}

fn drive(pairs: &[(&str, &str)], ports: &[Port], time_ns: u64) -> Drive<Flat> {
    let mut params = SsdParams::default();
    for (key, text) in pairs {
        let number = text.parse().map(Value::Int);
        params.set(key, &number.unwrap_or(Value::Text((*text).to_owned()))).unwrap();
    }
    let inside = Flat { time_ns, open: Vec::new(), most: 0 };
    Drive::assemble(Host::new(&params, ports), inside, params.power())
}

fn command(tag: u64, op: Op, length: u64, tenant: u16) -> Command {
    Command { tag, op, offset: Bytes(0), length: Bytes(length), tenant: TenantId(tenant) }
}

/// Runs until nothing is due, with an audit after every step.
fn run(drive: &mut Drive<Flat>) -> Vec<Completion> {
    let mut done = Vec::new();
    while let Some(due) = drive.next_due() {
        drive.advance(due, &mut done);
        assert_eq!(drive.audit(), Ok(()));
    }
    assert_eq!(drive.outstanding(), 0);
    done
}

/// The parts of the closed forms that the link makes: x2 + r + x72 + (data) + x16, and another
/// x2 in a closed loop, for the head of the completion queue.
#[test]
fn one_command_at_a_time_costs_the_messages_of_nvme() {
    let mut drive = drive(&[], &[], 1_000);
    let mut at = Nanos(0);
    let link = |op| match op {
        Op::Write => 8 + 8 + 25 + 8 + 1_248 + 11,
        Op::Trim => 8 + 8 + 25 + 8 + 11 + 11,
        Op::Read => 8 + 8 + 25 + 1_248 + 11,
        Op::Flush => 8 + 8 + 25 + 11,
    };
    for (tag, op) in [Op::Read, Op::Write, Op::Trim, Op::Flush, Op::Read].into_iter().enumerate() {
        let length = if op == Op::Flush { 0 } else { 4096 };
        drive.submit(at, command(tag as u64, op, length, 0));
        let [done] = run(&mut drive).try_into().unwrap();
        let head = if tag == 0 { 0 } else { 8 };
        assert_eq!(done.finished.0 - done.submitted.0, 1_000 + link(op) + head, "{op:?}");
        assert_eq!(done.spent.part_ns(SpentPart::Link), link(op) + head);
        assert_eq!(done.spent.part_ns(SpentPart::Flash), 1_000);
        at = done.finished;
    }
}

/// A command inside from 0 to 2,399 ns, two at once from 10 us on, and idle power to 1 ms.
#[test]
fn power_is_drawn_while_commands_are_inside() {
    let watts = [("idle_power", "2"), ("active_power", "3")];
    let mut drive = drive(&watts, &[], 1_000);
    drive.submit(Nanos(0), command(0, Op::Read, 4096, 0));
    let first = run(&mut drive)[0].finished.0;
    assert_eq!(first, 1_000 + 8 + 8 + 25 + 1_248 + 11);
    drive.submit(Nanos(10_000), command(1, Op::Read, 4096, 0));
    drive.advance(Nanos(10_500), &mut Vec::new());
    drive.submit(Nanos(10_500), command(2, Op::Read, 4096, 0));
    let last = run(&mut drive)[1].finished.0;
    let active = first + last - 10_000;
    assert_eq!(drive.active(Nanos(1_000_000)), Nanos(active));
    let energy = drive.report(Nanos(1_000_000)).energy;
    assert_eq!(energy.parts(), [("idle", 0.002), ("active", 3.0 * (active as f64 / 1e9))]);
}

/// A register frame down and one up, setup and data, set device bits: at 0.6 B/ns with 32 B of
/// overhead 86 + (86) + 100 + 6880 + 1000 + 66 for a write. A read waits for the frame that
/// frees the link only if the drive is faster than it.
#[test]
fn sata_moves_one_thing_at_a_time() {
    let frames = |time_ns, op| {
        let mut drive = drive(&[("interface", "sata")], &[], time_ns);
        drive.submit(Nanos(0), command(0, op, 4096, 0));
        run(&mut drive)[0].finished.0
    };
    assert_eq!(frames(1_000, Op::Write), 86 + 86 + 100 + 6_880 + 1_000 + 66);
    assert_eq!(frames(1_000, Op::Read), 86 + 1_000 + 100 + 6_880 + 66);
    assert_eq!(frames(10, Op::Read), 86 + 86 + 100 + 6_880 + 66);
}

#[test]
fn limits_bound_what_is_inside() {
    let most = |pairs: &[(&str, &str)], ports: &[Port]| {
        let mut drive = drive(pairs, ports, 100_000);
        let tenants = ports.len().max(1) as u64;
        for tag in 0..200 {
            drive.submit(Nanos(tag), command(tag, Op::Read, 512, (tag % tenants) as u16));
        }
        let done = run(&mut drive);
        let mut tags: Vec<u64> = done.iter().map(|done| done.tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, (0..200).collect::<Vec<u64>>(), "each completes exactly once");
        drive.inside.most
    };
    let two = [Port { queue_depth: 64, weight: 1 }; 2];
    assert_eq!(most(&[], &[]), 200);
    assert_eq!(most(&[("fetch_size", "16")], &[]), 16);
    assert_eq!(most(&[("fetch_size", "16")], &two), 32);
    assert_eq!(most(&[("command_slots", "20")], &two), 20);
    assert_eq!(most(&[("queue_depth", "5")], &two), 10);
    assert_eq!(most(&[("interface", "sata")], &two), 32);
}

/// Two tenants ask for more than the drive takes up at once, one of them twice as often.
#[test]
fn arbitration_shares_the_slots() {
    let shares = |kind: &str| {
        let ports = [1, 3].map(|weight| Port { queue_depth: 4096, weight });
        let slots = [("command_slots", "4"), ("arbitration", kind)];
        let mut drive = drive(&slots, &ports, 10_000);
        for tag in 0..600 {
            let tenant = u16::from(tag % 3 == 0);
            drive.submit(Nanos(0), command(u64::from(tenant), Op::Read, 512, tenant));
        }
        let done = run(&mut drive);
        done[20..180].iter().filter(|done| done.tag == 1).count()
    };
    assert_eq!(shares("arrival"), 53);
    assert_eq!(shares("round-robin"), 80);
    assert_eq!(shares("weighted"), 120);
}

/// Three doorbells pass before the first entry, then the commands are worked on in a row.
#[test]
fn the_controller_works_on_one_command_at_a_time() {
    let mut drive = drive(&[("command_time", "5us")], &[], 0);
    for tag in 0..3 {
        drive.submit(Nanos(0), command(tag, Op::Flush, 0, 0));
    }
    let done = run(&mut drive);
    let last = done[2];
    assert_eq!(last.finished.0, 3 * 8 + 25 + 3 * 5_000 + 11);
    assert_eq!(
        last.spent.part_ns(SpentPart::Queue),
        last.finished.0 - last.spent.part_ns(SpentPart::Link)
    );
}
