//! Turns on backing devices: the order of operations on the same blocks of a volume.
//!
//! A change (a write, a write-back, a trim, zeroes) waits for the changes of its blocks that were
//! decided before; a read waits for them as well, and fails if one of them does. Reads hold up
//! nothing: content that is fetched and overwritten meanwhile is content of a block that has left
//! the cache. A turn is taken when a request is decided, and ends when its operation does. Of each
//! block only the last change is known: it waits for the one before it.

use crate::io::executor::Event;
use cachewright_types::TenantId;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

/// The last change of a block that is under way.
struct Change {
    done: Event,
    /// It writes an evicted block back: a write to a part of the block needs the rest of it.
    writes_back: bool,
}

#[derive(Default)]
struct VolumeTurns {
    /// Changes of single blocks.
    writes: HashMap<u64, Change, FixedState>,
    /// Trims and zeroes, in the order in which they were decided.
    clears: Vec<(Range<u64>, Event)>,
}

/// What an operation waits for.
#[derive(Clone, Default)]
pub struct Turn {
    after: Vec<Event>,
    /// It fails if one of these does.
    needs: Vec<Event>,
}

impl Turn {
    /// It waits for this as well.
    pub fn wait_for(&mut self, event: Option<Event>) {
        self.after.extend(event);
    }

    /// Waits until it comes; false if something that the operation needs has failed.
    pub async fn come(&self) -> bool {
        for event in &self.after {
            event.wait().await;
        }
        let mut is_well = true;
        for event in &self.needs {
            is_well &= event.wait().await;
        }
        is_well
    }
}

/// The turns of all volumes, by tenant.
#[derive(Default)]
pub struct Turns {
    volumes: Vec<VolumeTurns>,
}

impl Turns {
    fn volume(&mut self, tenant: TenantId) -> &mut VolumeTurns {
        if self.volumes.len() <= tenant.index() {
            self.volumes.resize_with(tenant.index() + 1, VolumeTurns::default);
        }
        &mut self.volumes[tenant.index()]
    }

    /// The changes under way in a range of blocks. Costs the smaller of the range's blocks and the
    /// blocks that are written.
    fn changes(&mut self, tenant: TenantId, blocks: &Range<u64>) -> Vec<Event> {
        let volume = self.volume(tenant);
        let mut found: Vec<Event> = Vec::new();
        let mut add = |event: &Event| {
            if !found.last().is_some_and(|last| last.is(event)) {
                found.push(event.clone());
            }
        };
        if blocks.end.saturating_sub(blocks.start) <= volume.writes.len() as u64 {
            let writes = blocks.clone().filter_map(|number| volume.writes.get(&number));
            writes.for_each(|change| add(&change.done));
        } else {
            let writes = volume.writes.iter().filter(|(number, _)| blocks.contains(*number));
            writes.for_each(|(_, change)| add(&change.done));
        }
        let meets = |other: &Range<u64>| other.start < blocks.end && blocks.start < other.end;
        volume.clears.iter().filter(|(other, _)| meets(other)).for_each(|(_, event)| add(event));
        found
    }

    /// The turn of a read.
    pub fn read(&mut self, tenant: TenantId, blocks: &Range<u64>) -> Turn {
        Turn { after: Vec::new(), needs: self.changes(tenant, blocks) }
    }

    /// The turn of a write, which `done` ends. It overwrites the first and the last block only in
    /// part where `parts` says so: it needs the rest of what is being written back of them.
    pub fn write(
        &mut self,
        tenant: TenantId,
        blocks: &Range<u64>,
        parts: [bool; 2],
        done: &Event,
    ) -> Turn {
        let after = self.changes(tenant, blocks);
        let mut needs = Vec::new();
        for (number, is_part) in [blocks.start, blocks.end - 1].into_iter().zip(parts) {
            let volume = self.volume(tenant);
            if is_part && volume.writes.get(&number).is_some_and(|change| change.writes_back) {
                needs.extend(self.changes(tenant, &(number..number + 1)));
            }
        }
        self.begin_write(tenant, blocks, done, false);
        Turn { after, needs }
    }

    /// The turn of a write-back, of a block that is `evicted` or stays, which `done` ends.
    pub fn write_back(
        &mut self,
        tenant: TenantId,
        blocks: &Range<u64>,
        evicted: bool,
        done: &Event,
    ) -> Turn {
        let after = self.changes(tenant, blocks);
        self.begin_write(tenant, blocks, done, evicted);
        Turn { after, needs: Vec::new() }
    }

    fn begin_write(&mut self, tenant: TenantId, blocks: &Range<u64>, done: &Event, evicted: bool) {
        let volume = self.volume(tenant);
        for number in blocks.clone() {
            let change = Change { done: done.clone(), writes_back: evicted };
            volume.writes.insert(number, change);
        }
    }

    /// The turn of a trim or of zeroes, which `done` ends.
    pub fn clear(&mut self, tenant: TenantId, blocks: &Range<u64>, done: &Event) -> Turn {
        let after = self.changes(tenant, blocks);
        self.volume(tenant).clears.push((blocks.clone(), done.clone()));
        Turn { after, needs: Vec::new() }
    }

    /// A write or write-back has ended, well or not.
    pub fn end_write(
        &mut self,
        tenant: TenantId,
        blocks: &Range<u64>,
        done: &Event,
        is_well: bool,
    ) {
        let volume = self.volume(tenant);
        for number in blocks.clone() {
            if volume.writes.get(&number).is_some_and(|change| change.done.is(done)) {
                volume.writes.remove(&number);
            }
        }
        done.set(is_well);
    }

    /// A trim or zeroes have ended, well or not.
    pub fn end_clear(&mut self, tenant: TenantId, done: &Event, is_well: bool) {
        self.volume(tenant).clears.retain(|(_, event)| !event.is(done));
        done.set(is_well);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::executor::Executor;
    use cachewright_types::Seed;
    use std::cell::RefCell;
    use std::rc::Rc;

    const TENANT: TenantId = TenantId(2);

    /// An operation on some blocks, and what it waits for.
    enum Operation {
        Read(Turn),
        Write(Turn, Event),
        Clear(Turn, Event),
    }

    /// Random operations that end in any order: each begins when the changes of its blocks that
    /// were taken before have ended, and no later; a read fails if one of them did.
    #[test]
    fn operations_begin_when_all_earlier_changes_of_their_blocks_have_ended() {
        for seed in 0..200 {
            let mut rng = Seed(seed).rng();
            let (mut turns, tasks) = (Turns::default(), Executor::default());
            let begun: Rc<RefCell<Vec<Option<bool>>>> = Rc::default();
            let mut taken: Vec<(Range<u64>, bool, Option<Event>)> = Vec::new();
            let mut ended: Vec<Option<bool>> = Vec::new();
            for number in 0..30 {
                let start = rng.below(12);
                let blocks = start..start + 1 + rng.below(4);
                let done = tasks.event();
                let operation = match rng.below(3) {
                    0 => Operation::Read(turns.read(TENANT, &blocks)),
                    1 => {
                        let turn = turns.write(TENANT, &blocks, [false; 2], &done);
                        Operation::Write(turn, done)
                    }
                    _ => Operation::Clear(turns.clear(TENANT, &blocks, &done), done),
                };
                begun.borrow_mut().push(None);
                ended.push(None);
                let (turn, clears, done) = match operation {
                    Operation::Read(turn) => (turn, false, None),
                    Operation::Write(turn, done) => (turn, false, Some(done)),
                    Operation::Clear(turn, done) => (turn, true, Some(done)),
                };
                taken.push((blocks, clears, done));
                let list = begun.clone();
                tasks.spawn(async move {
                    let is_well = turn.come().await;
                    list.borrow_mut()[number] = Some(is_well);
                });
                // Some of what has begun ends.
                for other in 0..=number {
                    tasks.run();
                    let (blocks, clears, done) = &taken[other];
                    let can_end = begun.borrow()[other].is_some() && ended[other].is_none();
                    if can_end && rng.below(4) == 0 {
                        let is_well = rng.below(5) > 0;
                        ended[other] = Some(is_well);
                        match done {
                            Some(done) if *clears => turns.end_clear(TENANT, done, is_well),
                            Some(done) => turns.end_write(TENANT, blocks, done, is_well),
                            None => {}
                        }
                    }
                }
                tasks.run();
                for (other, (blocks, _, done)) in taken.iter().enumerate() {
                    let earlier = (0..other).filter(|before| {
                        let (range, _, change) = &taken[*before];
                        let meets = range.start < blocks.end && blocks.start < range.end;
                        change.is_some() && meets
                    });
                    let earlier: Vec<Option<bool>> = earlier.map(|before| ended[before]).collect();
                    let has_begun = begun.borrow()[other];
                    let is_free = earlier.iter().all(Option::is_some);
                    assert!(is_free || has_begun.is_none(), "seed {seed}: {other} began too early");
                    assert!(!is_free || has_begun.is_some(), "seed {seed}: {other} waits in vain");
                    assert!(done.is_none() || has_begun != Some(false), "a change needs nothing");
                }
            }
        }
    }

    #[test]
    fn a_read_fails_with_the_change_that_it_waits_for_and_a_write_only_in_part_of_a_write_back() {
        let (mut turns, tasks) = (Turns::default(), Executor::default());
        let [back, whole, part] = [0; 3].map(|_| tasks.event());
        let written_back = turns.write_back(TENANT, &(3..5), true, &back);
        let mut came: Vec<Rc<RefCell<Option<bool>>>> = Vec::new();
        let mut waits = |turn: Turn| {
            let found: Rc<RefCell<Option<bool>>> = Rc::default();
            came.push(found.clone());
            tasks.spawn(async move {
                let is_well = turn.come().await;
                *found.borrow_mut() = Some(is_well);
            });
        };
        waits(written_back);
        waits(turns.read(TENANT, &(4..6)));
        waits(turns.read(TENANT, &(5..6)));
        waits(turns.write(TENANT, &(3..4), [false; 2], &whole));
        waits(turns.write(TENANT, &(4..5), [true, false], &part));
        tasks.run();
        turns.end_write(TENANT, &(3..5), &back, false);
        tasks.run();
        let found: Vec<Option<bool>> = came.iter().map(|found| *found.borrow()).collect();
        let expected = [Some(true), Some(false), Some(true), Some(true), Some(false)];
        assert_eq!(found, expected, "the last needs the rest of its block");
    }
}
