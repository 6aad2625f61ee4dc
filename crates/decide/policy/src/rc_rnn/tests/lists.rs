//! The queues beside the same in lists, access by access.

use super::*;

/// When a block is looked at: an access, and its turn among those of one access.
type Due = (usize, usize);

/// The same in lists: everyone is looked at at every access.
#[derive(Default)]
struct NaiveQueues {
    requeues: bool,
    capacity: usize,
    now: usize,
    turns: usize,
    /// Newest first, each with when it is due: soon, mean, late.
    queues: [Vec<(u32, Due)>; 3],
}

impl NaiveQueues {
    fn stay(&mut self) -> Due {
        self.turns += 1;
        (self.now + 5 * self.capacity, self.turns)
    }

    fn drop_due(&mut self) {
        let mut found: Vec<(Due, u32)> = Vec::new();
        for queue in &self.queues[1..] {
            let due = queue.iter().filter(|(_, due)| due.0 < self.now);
            found.extend(due.map(|(id, due)| (*due, *id)));
        }
        found.sort_unstable();
        for (_, id) in found {
            let stay = self.stay();
            for queue in [1, 2] {
                let held = &mut self.queues[queue];
                let Some(at) = held.iter().position(|(other, _)| *other == id) else { continue };
                if at < held.len() / 5 {
                    held[at].1 = stay;
                } else {
                    held.remove(at);
                    self.queues[queue - 1].insert(0, (id, stay));
                }
                break;
            }
        }
    }

    fn access(&mut self, id: u32, label: CachingLabel) -> Verdict {
        self.now += 1;
        self.drop_due();
        for queue in &mut self.queues {
            if let Some(at) = queue.iter().position(|(other, _)| *other == id) {
                let entry = queue.remove(at);
                if self.requeues {
                    let entry = (id, self.stay());
                    let place = if label.cached { label.duration as usize } else { 0 };
                    self.queues[place].insert(0, entry);
                } else {
                    queue.insert(0, entry);
                }
                return Verdict::Hit;
            }
        }
        if !label.cached {
            return Verdict::Bypass;
        }
        let held: usize = self.queues.iter().map(Vec::len).sum();
        let full = held >= self.capacity;
        let victim = self.queues.iter_mut().filter(|_| full).find_map(Vec::pop);
        let entry = (id, self.stay());
        self.queues[label.duration as usize].insert(0, entry);
        Verdict::Admit { evicted: victim.map(|(id, _)| BlockId(id)) }
    }
}

#[test]
fn lists_agree_access_by_access() {
    for (capacity, distinct) in [(1, 4), (2, 9), (5, 20), (11, 40), (64, 200)] {
        lists_agree(literal(capacity), false, distinct);
        lists_agree(policy(capacity), true, distinct);
    }
}

fn lists_agree(mut fast: RcRnn, requeues: bool, distinct: u32) {
    let capacity = fast.capacity();
    let mut rng = Seed(u64::from(capacity)).rng();
    let mut slow = NaiveQueues { requeues, capacity: capacity as usize, ..Default::default() };
    for position in 0..20_000 {
        let id = (rng.unit() * rng.unit() * f64::from(distinct)) as u32;
        let duration = StayClass::ALL[rng.below(3) as usize];
        let label = CachingLabel { cached: rng.below(3) > 0, duration };
        let expected = slow.access(id, label);
        assert_eq!(access(&mut fast, id, label), expected, "{capacity}: {position}");
        let lists: [Vec<u32>; 3] =
            slow.queues.each_ref().map(|queue| queue.iter().map(|x| x.0).collect());
        assert_eq!(fast.queues.blocks(), lists, "{capacity}: {position}");
    }
    assert_eq!(fast.audit(), Ok(()));
}
