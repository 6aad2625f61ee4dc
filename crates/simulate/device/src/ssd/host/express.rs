//! A command whose way into the drive nothing crosses.
//!
//! For: speed. Between its doorbell and its arrival in the drive a command takes three messages,
//! five with data. Each is known in advance as long as nothing else uses link or queues. Such a
//! command is one event instead of three or five. Must never know: what a command is for. Units:
//! nanoseconds. Invariant: any other event at the interface first makes the messages under way real
//! ([`Express::give_way`]), so that no time and no order differs.

use super::message::{DOWN, HostArrival, Message, UP};
use super::port::Slot;
use super::protocol::Protocol;
use crate::ssd::link::{NEVER_NS, Wire};

/// The one command on its way, if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Express {
    slot: Slot,
    /// When its doorbell arrives.
    doorbell_ns: u64,
    /// When it is in the drive with its data; never when there is no such command.
    due_ns: u64,
}

impl Default for Express {
    fn default() -> Express {
        Express { slot: Slot(0), doorbell_ns: 0, due_ns: NEVER_NS }
    }
}

impl Express {
    /// When the command is in the drive with its data; never when there is none.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// The command.
    #[inline]
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// A command begins its way; its data, if the drive fetches some, takes `data_ns`.
    #[inline]
    pub fn begin(
        &mut self,
        now_ns: u64,
        slot: Slot,
        data_ns: Option<u64>,
        protocol: &Protocol,
        wires: &mut [Wire<Message>; 2],
    ) {
        let doorbell_ns = wires[DOWN].occupy(now_ns, protocol.doorbell_ns);
        let request_ns = protocol.request_ns;
        let mut due_ns = wires[UP].after(doorbell_ns, request_ns) + protocol.entry_ns;
        if let Some(data_ns) = data_ns {
            due_ns += request_ns + data_ns;
        }
        *self = Express { slot, doorbell_ns, due_ns };
    }

    /// The command is in the drive and nothing has crossed its way; when it arrived.
    pub fn arrive(
        &mut self,
        data_ns: Option<u64>,
        protocol: &Protocol,
        wires: &mut [Wire<Message>; 2],
    ) -> u64 {
        let Express { doorbell_ns, .. } = std::mem::take(self);
        let request_ns = protocol.request_ns;
        let requested_ns = wires[UP].occupy(doorbell_ns, request_ns);
        let entry_ns = wires[DOWN].occupy(requested_ns, protocol.entry_ns);
        let Some(data_ns) = data_ns else { return entry_ns };
        let requested_ns = wires[UP].occupy(entry_ns, request_ns);
        wires[DOWN].occupy(requested_ns, data_ns)
    }

    /// Something else is about to happen: the command is an ordinary one whose doorbell is on its
    /// way.
    pub fn give_way(&mut self, wires: &mut [Wire<Message>; 2]) {
        let Express { slot, doorbell_ns, .. } = std::mem::take(self);
        wires[DOWN].put_back(doorbell_ns, (HostArrival::Doorbell, slot));
    }
}

#[cfg(test)]
mod tests {
    use crate::ssd::host::{Host, Port};
    use crate::ssd::link::NEVER_NS;
    use crate::ssd::params::SsdParams;
    use crate::{Command, Completion, Spent, SpentPart};
    use cachewright_types::declare::Declared;
    use cachewright_types::{Bytes, Nanos, Op, Seed, TenantId, Value};

    /// What completes when, if the drive takes some time for each command; with every message
    /// followed, or not.
    fn run(seed: u64, pairs: &[(&str, i64)], followed: bool) -> (Vec<Completion>, [Nanos; 2]) {
        let mut params = SsdParams::default();
        for (key, value) in pairs {
            params.set(key, &Value::Int(*value)).unwrap();
        }
        let mut host = Host::new(&params, &[Port { queue_depth: 5, weight: 1 }; 3]);
        let mut rng = Seed(seed).rng();
        let mut submissions: Vec<(u64, Command)> = (0..400)
            .map(|tag| {
                let op = [Op::Read, Op::Write, Op::Trim, Op::Flush][rng.below(4) as usize];
                let length = Bytes(if op == Op::Flush { 0 } else { 512 << rng.below(5) });
                let tenant = TenantId(rng.below(3) as u16);
                (rng.below(40_000), Command { tag, op, offset: Bytes(0), length, tenant })
            })
            .collect();
        submissions.sort_by_key(|(at, command)| (std::cmp::Reverse(*at), command.tag));
        let (mut inside, mut done, mut arrived) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let submission_ns = submissions.last().map_or(NEVER_NS, |(at, _)| *at);
            let inside_ns = inside.iter().map(|(due, _, _)| *due).min().unwrap_or(NEVER_NS);
            let now = submission_ns.min(inside_ns).min(host.due_ns());
            if now == NEVER_NS {
                assert_eq!(host.audit(), Ok(()));
                return (done, host.link_busy());
            }
            host.arrivals(now, &mut arrived, &mut done);
            for slot in arrived.drain(..) {
                let taken = 10 + host.command(slot).tag * 7919 % 300;
                inside.push((now + taken, slot, taken));
            }
            inside.sort_unstable();
            while inside.first().is_some_and(|(due, _, _)| *due <= now) {
                let (_, slot, taken) = inside.remove(0);
                let mut spent = Spent::default();
                spent.add(SpentPart::Flash, taken);
                host.finish(Nanos(now), slot, &spent);
            }
            host.seen(now);
            while submissions.last().is_some_and(|(at, _)| *at <= now) {
                let Some((_, command)) = submissions.pop() else { break };
                host.submit(Nanos(now), command);
            }
            if followed {
                host.follow(now);
            }
        }
    }

    #[test]
    fn one_event_for_a_command_changes_nothing() {
        for seed in 0..30 {
            for pairs in [&[][..], &[("fetch_size", 2)], &[("command_slots", 3)]] {
                let (done, busy) = run(seed, pairs, false);
                assert_eq!(done.len(), 400);
                assert_eq!((done, busy), run(seed, pairs, true), "{seed} {pairs:?}");
            }
        }
    }

    /// The second command comes while messages of the first are hidden, and nothing was observed
    /// between.
    #[test]
    fn a_command_that_crosses_the_way_finds_no_message_in_the_past() {
        for pause_ns in [1, 10, 30, 100, 1_200] {
            let run = |look: bool| {
                let mut host = Host::new(&SsdParams::default(), &[]);
                let (mut arrived, mut at) = (Vec::new(), Vec::new());
                let command = |tag| {
                    let (offset, length) = (Bytes(0), Bytes(4096));
                    Command { tag, op: Op::Write, offset, length, tenant: TenantId(0) }
                };
                host.submit(Nanos(1_000), command(0));
                if look {
                    host.follow(1_000 + pause_ns);
                }
                host.submit(Nanos(1_000 + pause_ns), command(1));
                let mut now = 1_000 + pause_ns;
                while host.due_ns() != NEVER_NS {
                    assert!(host.due_ns() >= now, "{} is before {now}", host.due_ns());
                    now = host.due_ns();
                    host.arrivals(now, &mut arrived, &mut Vec::new());
                    at.extend(arrived.drain(..).map(|slot| (now, slot)));
                }
                assert_eq!(at.len(), 2);
                at
            };
            assert_eq!(run(false), run(true), "{pause_ns}");
        }
    }

    /// Data takes a while even so, the messages before it none.
    #[test]
    fn on_a_link_that_takes_no_time_nothing_is_lost() {
        for rate in [16, 100_000] {
            let pairs = [("lanes", 32), ("lane_rate", rate)];
            let (done, busy) = run(3, &pairs, false);
            assert_eq!(done.len(), 400);
            assert_eq!((done, busy), run(3, &pairs, true));
        }
    }
}
