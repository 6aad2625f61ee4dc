use super::*;
use crate::registry::boxed;
use crate::{Access, Policy};
use std::collections::BTreeMap;

const IDS: u32 = 96;

fn cache(capacity: u32, rule: Rule) -> SwitchingCache {
    let mut cache = SwitchingCache::new(capacity, rule, true, Seed(4));
    cache.reserve_ids(IDS as usize);
    cache
}

fn level(cache: &SwitchingCache, bank: usize, level: u8) -> Vec<u32> {
    cache.links.iter(list_at(bank, level)).map(|block| block.0).collect()
}

/// Twelve blocks under `lru`, then `arc`; newest first, worked by hand.
#[test]
fn the_hand_worked_case() {
    let mut cache = cache(12, Rule::Lru);
    (0..12).for_each(|id| {
        cache.access(BlockId(id));
    });
    cache.follow(Rule::Arc, 0.0);
    assert!(cache.is_handing_over());
    // 12 is new: 0, the oldest of `lru`, leaves. Then 8 blocks pass from the newest on, 11 first,
    // and stand behind 12 in T1.
    assert_eq!(cache.access(BlockId(12)), Verdict::Admit { evicted: Some(BlockId(0)) });
    assert_eq!(level(&cache, 1, 0), [12, 11, 10, 9, 8, 7, 6, 5, 4]);
    assert_eq!(level(&cache, 0, 0), [3, 2, 1]);
    // 1 is hit where it lies, its second use: it goes to T2. Then 3 and 2 pass: all is handed over.
    assert_eq!(cache.access(BlockId(1)), Verdict::Hit);
    assert_eq!(level(&cache, 1, 0), [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
    assert_eq!(level(&cache, 1, 1), [1]);
    assert!(!cache.is_handing_over());
    // 0 is a ghost of newcomers: T1 should have one block more; it has 11, so that 2 leaves.
    assert_eq!(cache.access(BlockId(0)), Verdict::Admit { evicted: Some(BlockId(2)) });
    assert_eq!((level(&cache, 1, 1), cache.target), (vec![0, 1], 1.0));
    // Back to `lru`: T2 passes before T1, as `arc` would evict it later.
    cache.follow(Rule::Lru, 0.0);
    assert_eq!(cache.access(BlockId(3)), Verdict::Hit);
    assert_eq!(level(&cache, 0, 0), [3, 0, 1, 12, 11, 10, 9, 8, 7]);
    assert_eq!(level(&cache, 1, 0), [6, 5, 4]);
    assert_eq!((cache.len(), cache.audit()), (12, Ok(())));
}

#[test]
fn lru_and_arc_decide_as_the_policies_of_these_names() {
    for (rule, name) in [(Rule::Lru, "lru"), (Rule::Arc, "arc")] {
        let (mut cache, mut policy) = (cache(20, rule), boxed(name, &[], 20, Seed(4)).unwrap());
        policy.reserve_ids(IDS as usize);
        let mut rng = Seed(8).rng();
        for _ in 0..20_000 {
            let block = BlockId((rng.below(10) * rng.below(10)) as u32);
            let verdict = policy.access(Access::read(block));
            assert_eq!(cache.access(block), verdict, "{name}");
        }
    }
}

/// The slow model: a bank is a list of levels, each a list of blocks, newest first.
struct Slow {
    capacity: usize,
    rule: Rule,
    now: Vec<Vec<u32>>,
    old: Vec<Vec<u32>>,
    ghosts: [Vec<u32>; 2],
    counts: BTreeMap<u32, u8>,
    uses: BTreeMap<u32, u8>,
    target: f64,
    accesses: usize,
    rng: Rng,
}

impl Slow {
    fn new(capacity: usize, rule: Rule) -> Slow {
        let bank = vec![Vec::new(); usize::from(LEVELS)];
        Slow {
            capacity,
            rule,
            now: bank.clone(),
            old: bank,
            ghosts: [Vec::new(), Vec::new()],
            counts: BTreeMap::new(),
            uses: BTreeMap::new(),
            target: 0.0,
            accesses: 0,
            rng: Seed(4).derive("bimodal").rng(),
        }
    }

    fn held(&self) -> Vec<u32> {
        let mut held: Vec<u32> = self.now.iter().chain(&self.old).flatten().copied().collect();
        held.sort_unstable();
        held
    }

    fn hands_over(&self) -> bool {
        self.old.iter().any(|level| !level.is_empty())
    }

    fn follow(&mut self, rule: Rule) {
        std::mem::swap(&mut self.now, &mut self.old);
        (self.rule, self.target) = (rule, 0.0);
    }

    fn access(&mut self, block: u32) -> Verdict {
        let verdict = self.decide(block);
        for _ in 0..HANDED_PER_ACCESS {
            let Some(top) = self.old.iter_mut().rev().find(|level| !level.is_empty()) else {
                break;
            };
            let block = top.remove(0);
            let count = self.counts[&block];
            let level = match self.rule {
                Rule::Lru | Rule::Bimodal => 0,
                Rule::Arc | Rule::Queues => u8::from(count >= 2),
                Rule::Frequency => count,
            };
            self.now[usize::from(level)].push(block);
            self.uses.insert(block, 0);
        }
        self.accesses += 1;
        verdict
    }

    fn halve(&mut self) {
        self.counts.values_mut().for_each(|count| *count /= 2);
        if self.rule == Rule::Frequency {
            let levels = std::mem::replace(&mut self.now, vec![Vec::new(); usize::from(LEVELS)]);
            for (level, blocks) in levels.into_iter().enumerate() {
                let joined = &mut self.now[level / 2];
                joined.splice(0..0, blocks);
            }
        }
    }

    fn decide(&mut self, block: u32) -> Verdict {
        if (self.accesses + 1).is_multiple_of(16 * self.capacity) {
            self.halve();
        }
        let was_old = self.old.iter().flatten().any(|held| *held == block);
        let hit = was_old || self.now.iter().flatten().any(|held| *held == block);
        let count = (self.counts.get(&block).copied().unwrap_or(0) + 1).min(LEVELS - 1);
        let full = self.held().len() == self.capacity;
        let ghost = self.ghosts.iter().position(|ghosts| ghosts.contains(&block));
        if hit {
            self.counts.insert(block, count);
            let uses = if was_old { 1 } else { (self.uses[&block] + 1).min(MAX_USES) };
            self.uses.insert(block, uses);
            if self.rule == Rule::Queues && !was_old {
                return Verdict::Hit;
            }
            for level in self.now.iter_mut().chain(&mut self.old) {
                level.retain(|other| *other != block);
            }
            let level = match self.rule {
                Rule::Lru | Rule::Bimodal => 0,
                Rule::Arc | Rule::Queues => 1,
                Rule::Frequency => count,
            };
            self.now[usize::from(level)].insert(0, block);
            return Verdict::Hit;
        }
        let stays_out = match self.rule {
            Rule::Bimodal => self.rng.below(32) != 0,
            Rule::Frequency => {
                let next = if self.hands_over() { &self.old } else { &self.now };
                let last = next.iter().find_map(|level| level.last());
                let lowest = last.map_or(0, |last| self.counts[last]);
                lowest > 0 && count <= lowest + 1
            }
            _ => false,
        };
        let sizes = [self.ghosts[0].len(), self.ghosts[1].len()].map(|size| size as f64);
        self.ghosts.iter_mut().for_each(|ghosts| ghosts.retain(|other| *other != block));
        self.counts.insert(block, count);
        self.uses.insert(block, 0);
        if full && stays_out {
            self.remember(block, 0);
            return Verdict::Bypass;
        }
        if self.rule == Rule::Arc {
            let most = self.capacity as f64;
            match ghost {
                Some(0) => {
                    self.target = (self.target + (sizes[1] / sizes[0]).max(1.0)).min(most);
                }
                Some(_) => self.target = (self.target - (sizes[0] / sizes[1]).max(1.0)).max(0.0),
                None => {
                    for _ in 0..2 {
                        let recent = self.ghosts[0].len();
                        if recent > 0 && self.now[0].len() + recent >= self.capacity {
                            self.ghosts[0].pop().inspect(|gone| {
                                self.counts.remove(gone);
                            });
                        }
                    }
                }
            }
        }
        let evicted = full.then(|| BlockId(self.evict(ghost == Some(1))));
        let small = (self.capacity / 10).max(1);
        let level = match self.rule {
            Rule::Lru | Rule::Bimodal => 0,
            Rule::Arc => usize::from(ghost.is_some()),
            Rule::Queues => usize::from(ghost == Some(0) || (!full && self.now[0].len() >= small)),
            Rule::Frequency => usize::from(count),
        };
        self.now[level].insert(0, block);
        Verdict::Admit { evicted }
    }

    fn evict(&mut self, for_frequent: bool) -> u32 {
        let small = (self.capacity / 10).max(1);
        let lowest = |levels: &mut Vec<Vec<u32>>| levels.iter_mut().find_map(Vec::pop).unwrap();
        let (block, ghosts) = if self.hands_over() {
            (lowest(&mut self.old), 0)
        } else if self.rule == Rule::Arc {
            let first = self.now[0].len() as f64;
            let over = first > self.target || (for_frequent && first == self.target);
            let level = usize::from(first == 0.0 || (!over && !self.now[1].is_empty()));
            (self.now[level].pop().unwrap(), level)
        } else if self.rule == Rule::Queues {
            let is_short = self.now[1].len() <= self.capacity.saturating_sub(small);
            loop {
                let first = !self.now[0].is_empty() && (is_short || self.now[1].is_empty());
                let level = usize::from(!first);
                let block = self.now[level].pop().unwrap();
                let uses = self.uses[&block];
                if uses < if first { 2 } else { 1 } {
                    break (block, level);
                }
                self.uses.insert(block, if first { 0 } else { uses - 1 });
                self.now[1].insert(0, block);
            }
        } else {
            (lowest(&mut self.now), 0)
        };
        self.remember(block, ghosts);
        block
    }

    fn remember(&mut self, block: u32, ghosts: usize) {
        self.ghosts[ghosts].insert(0, block);
        if self.ghosts[0].len() + self.ghosts[1].len() > self.capacity {
            let from = usize::from(!self.ghosts[1].is_empty());
            let gone = self.ghosts[from].pop().unwrap();
            self.counts.remove(&gone);
        }
    }
}

fn next(rng: &mut Rng, index: u32) -> u32 {
    match index / 300 % 3 {
        0 => index % 40,
        1 => (rng.below(9) * rng.below(9)) as u32,
        _ => rng.below(u64::from(IDS)) as u32,
    }
}

#[test]
fn every_rule_after_every_other_decides_as_the_slow_model() {
    for capacity in [1, 2, 7, 24] {
        for first in RULES {
            let (mut cache, mut slow) =
                (cache(capacity, first), Slow::new(capacity as usize, first));
            let mut rng = Seed(u64::from(capacity)).rng();
            for index in 0..6_000 {
                if index % 177 == 176 && !cache.is_handing_over() {
                    let rule = RULES[rng.below(RULES.len() as u64) as usize];
                    cache.follow(rule, 0.0);
                    slow.follow(rule);
                }
                let block = next(&mut rng, index);
                let place = format!("{first:?} of {capacity}, access {index}, {:?}", cache.rule());
                assert_eq!(cache.access(BlockId(block)), slow.access(block), "{place}");
                assert_eq!(cache.audit(), Ok(()), "{place}");
                let held: Vec<u32> = (0..IDS).filter(|id| cache.contains(BlockId(*id))).collect();
                assert_eq!(held, slow.held(), "{place}");
                assert_eq!(cache.is_handing_over(), slow.hands_over(), "{place}");
            }
        }
    }
}

/// A count that is brought up to date too late would come back after 256 halvings.
#[test]
fn a_block_not_used_for_hundreds_of_halvings_has_no_count() {
    let mut cache = cache(2, Rule::Frequency);
    (0..8).for_each(|_| {
        cache.access(BlockId(1));
    });
    for _ in 0..32 * 300 {
        cache.access(BlockId(0));
        assert!(cache.contains(BlockId(1)));
    }
    assert_eq!((cache.count(cache.links.tag(BlockId(1))), cache.audit()), (0, Ok(())));
}
