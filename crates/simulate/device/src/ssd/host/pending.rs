//! Commands from their submission to their completion, each in a slot.
//!
//! For: what a command is, and where its time went so far. Must never know: queues, the link, what
//! a slot waits for. Units: nanoseconds. Invariants (audited): a slot is free or holds one command;
//! the parts of a command's time add up. A slot is used again, so nothing is allocated per command.

use super::port::Slot;
use crate::{Command, Completion, Spent, SpentPart};
use cachewright_types::Nanos;

/// A command from its submission to its completion.
#[derive(Clone, Copy, Debug)]
struct PendingCommand {
    command: Command,
    submitted_ns: u64,
    /// Up to when the time is accounted for.
    marked_ns: u64,
    /// Time in queues and on the link.
    queue_ns: u64,
    link_ns: u64,
    /// Time inside, known once the command is done there.
    inside: Spent,
}

/// All commands that are not completed.
#[derive(Clone, Debug, Default)]
pub struct PendingCommands {
    slots: Vec<PendingCommand>,
    /// Slots free for reuse.
    free: Vec<Slot>,
}

impl PendingCommands {
    /// Takes a slot for a command submitted now.
    #[inline]
    pub fn insert(&mut self, now_ns: u64, command: Command) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| self.grow(command));
        let pending = &mut self.slots[slot.0 as usize];
        pending.command = command;
        (pending.submitted_ns, pending.marked_ns) = (now_ns, now_ns);
        (pending.queue_ns, pending.link_ns) = (0, 0);
        slot
    }

    /// One more slot.
    #[cold]
    fn grow(&mut self, command: Command) -> Slot {
        let (submitted_ns, marked_ns, queue_ns, link_ns) = (0, 0, 0, 0);
        let inside = Spent::default();
        let pending =
            PendingCommand { command, submitted_ns, marked_ns, queue_ns, link_ns, inside };
        self.slots.push(pending);
        Slot(self.slots.len() as u32 - 1)
    }

    /// The command in a slot.
    #[inline]
    pub fn command(&self, slot: Slot) -> &Command {
        &self.slots[slot.0 as usize].command
    }

    /// It waited up to now.
    #[inline]
    pub fn queued_until(&mut self, slot: Slot, now_ns: u64) {
        let pending = &mut self.slots[slot.0 as usize];
        pending.queue_ns += now_ns - pending.marked_ns;
        pending.marked_ns = now_ns;
    }

    /// It was on the link up to now.
    #[inline]
    pub fn linked_until(&mut self, slot: Slot, now_ns: u64) {
        let pending = &mut self.slots[slot.0 as usize];
        pending.link_ns += now_ns - pending.marked_ns;
        pending.marked_ns = now_ns;
    }

    /// It was inside the drive up to now; `spent` is that time by part.
    #[inline]
    pub fn inside_until(&mut self, slot: Slot, now_ns: u64, spent: &Spent) {
        let pending = &mut self.slots[slot.0 as usize];
        let since_ns = pending.marked_ns;
        debug_assert_eq!(since_ns + spent.total_ns(), now_ns, "time inside the drive adds up");
        pending.inside = *spent;
        pending.marked_ns = now_ns;
    }

    /// Its completion has arrived over the link; the slot is free again.
    #[inline]
    pub fn complete(&mut self, slot: Slot, now_ns: u64) -> Completion {
        self.linked_until(slot, now_ns);
        let pending = &self.slots[slot.0 as usize];
        let mut spent = pending.inside;
        spent.add(SpentPart::Queue, pending.queue_ns);
        spent.add(SpentPart::Link, pending.link_ns);
        let (tag, submitted_ns) = (pending.command.tag, pending.submitted_ns);
        debug_assert_eq!(spent.total_ns(), now_ns - submitted_ns, "the parts add up");
        self.free.push(slot);
        Completion { tag, submitted: Nanos(submitted_ns), finished: Nanos(now_ns), spent }
    }

    /// Commands that are not completed.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Each slot is free or in use, and those in `queued` are used once. Errors: the first that is
    /// not.
    pub fn audit(&self, queued: impl Iterator<Item = Slot>) -> Result<(), String> {
        let mut seen = vec![false; self.slots.len()];
        for slot in self.free.iter().copied().chain(queued) {
            let seen = seen.get_mut(slot.0 as usize);
            match seen {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(format!("the command of slot {} is in two places", slot.0)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::{Bytes, Op, TenantId};

    #[test]
    fn time_is_counted_by_place_and_slots_return() {
        let command = |tag| Command {
            tag,
            op: Op::Read,
            offset: Bytes(0),
            length: Bytes(512),
            tenant: TenantId(0),
        };
        let mut pending = PendingCommands::default();
        let (first, second) = (pending.insert(10, command(1)), pending.insert(10, command(2)));
        pending.queued_until(first, 15);
        pending.linked_until(first, 18);
        let mut inside = Spent::default();
        inside.add(SpentPart::Flash, 40);
        pending.inside_until(first, 58, &inside);
        let done = pending.complete(first, 60);
        assert_eq!((done.tag, done.submitted, done.finished), (1, Nanos(10), Nanos(60)));
        let parts = [SpentPart::Queue, SpentPart::Link, SpentPart::Flash];
        assert_eq!(parts.map(|part| done.spent.part_ns(part)), [5, 3 + 2, 40]);
        assert_eq!((pending.len(), pending.insert(70, command(3))), (1, first));
        assert_eq!(pending.audit([second].into_iter()), Ok(()));
        let twice = pending.audit([second, second].into_iter());
        assert_eq!(twice, Err("the command of slot 1 is in two places".to_owned()));
    }
}
