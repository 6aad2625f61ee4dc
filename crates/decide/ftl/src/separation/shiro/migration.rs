//! Where a moved page goes: by level, or by Q-learning.
//!
//! For: five levels of superblocks for moved pages; the fixed hierarchy and the agent that starts
//! from it. Must never know: the model, the mapping. Units: levels 0..=4; shares in `[0, 1]`.
//! Source: Shiro, section III-C and table I. Settled here: a decision of round k is credited once,
//! with the mean invalid share of the victims k+1..=k+200. The reward looks ahead already, so that
//! there is no bootstrap. All decisions of a round in one state with one action are credited
//! together, as so many updates in a row. The previous action needs no memory: it is the level of
//! the victim.

use cachewright_types::Seed;
use cachewright_types::seed::Rng;
use std::collections::VecDeque;

/// Levels of superblocks for moved pages.
pub const LEVELS: usize = 5;
/// Types of superblocks for user writes: short, long, unseen.
pub const USER_TYPES: usize = 3;
const LIFETIME_BINS: usize = 25;
const SHARE_BINS: usize = 25;
const TYPES: usize = USER_TYPES + LEVELS;
const CLASSES: usize = 3;
/// Levels, and never moved.
const PREVIOUS: usize = LEVELS + 1;
/// States of the table (the paper's 439 KB are one byte for each of them and each action).
pub const STATES: usize = LIFETIME_BINS * SHARE_BINS * TYPES * CLASSES * PREVIOUS;
/// Victims whose mean is the reward of a round.
pub const REWARD_ROUNDS: usize = 200;

/// What the agent knows of a page to be moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Situation {
    /// Host page writes since its last user write.
    pub age: u32,
    /// Valid share of the victim.
    pub valid_share: f64,
    /// Stream of the victim: 0 short, 1 long, 2 unseen, 3.. levels.
    pub victim_type: u8,
    /// Index of the class given at its last user write.
    pub class: u8,
}

impl Situation {
    /// The index of its state.
    pub fn state(&self) -> usize {
        let lifetime = (self.age.max(1).ilog2() as usize).min(LIFETIME_BINS - 1);
        let share =
            ((self.valid_share.clamp(0.0, 1.0) * SHARE_BINS as f64) as usize).min(SHARE_BINS - 1);
        let victim = usize::from(self.victim_type).min(TYPES - 1);
        let class = usize::from(self.class).min(CLASSES - 1);
        let previous = victim.checked_sub(USER_TYPES).unwrap_or(LEVELS);
        let state = (lifetime * SHARE_BINS + share) * TYPES + victim;
        (state * CLASSES + class) * PREVIOUS + previous
    }
}

/// The fixed rule: from user superblocks to level 0, from a level to the one above, at most 4.
pub fn hierarchical(victim_type: u8) -> usize {
    match usize::from(victim_type).checked_sub(USER_TYPES) {
        Some(level) => (level + 1).min(LEVELS - 1),
        None => 0,
    }
}

/// The agent's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningRates {
    /// Share of the difference to a reward that one update takes.
    pub rate: f64,
    /// Share of decisions made at random.
    pub explore: f64,
}

/// Updates due to one round: state and action in one number, and how many decisions.
type DueUpdates = Vec<(u32, u32)>;

/// A table of expected rewards, one per state and level.
#[derive(Clone, Debug)]
pub struct Agent {
    table: Vec<f32>,
    learning: LearningRates,
    rng: Rng,
    /// Decisions of the round at hand.
    current: Vec<u32>,
    /// Rounds whose reward is not known yet, oldest first.
    pending: VecDeque<DueUpdates>,
    /// Invalid shares of the last victims, oldest first.
    shares: VecDeque<f64>,
}

impl Agent {
    /// The table of the hierarchy: 1 for its action, 0 for others.
    pub fn new(learning: LearningRates, seed: Seed) -> Agent {
        let mut table = vec![0.0; STATES * LEVELS];
        for (state, actions) in table.chunks_exact_mut(LEVELS).enumerate() {
            let victim = state / (CLASSES * PREVIOUS) % TYPES;
            actions[hierarchical(victim as u8)] = 1.0;
        }
        Agent {
            table,
            learning,
            rng: seed.rng(),
            current: Vec::new(),
            pending: VecDeque::new(),
            shares: VecDeque::new(),
        }
    }

    /// A victim with this invalid share is about to be emptied.
    pub fn on_victim(&mut self, invalid_share: f64) {
        if !self.shares.is_empty() {
            let decisions = self.end_round();
            self.pending.push_back(decisions);
        }
        self.shares.push_back(invalid_share);
        if self.shares.len() > REWARD_ROUNDS {
            self.shares.pop_front();
        }
        if self.pending.len() == REWARD_ROUNDS
            && let Some(decisions) = self.pending.pop_front()
        {
            let reward = self.shares.iter().sum::<f64>() / REWARD_ROUNDS as f64;
            self.credit(&decisions, reward as f32);
        }
    }

    /// The decisions of the round at hand, counted.
    fn end_round(&mut self) -> DueUpdates {
        let mut current = std::mem::take(&mut self.current);
        current.sort_unstable();
        let mut decisions = DueUpdates::new();
        for entry in &current {
            match decisions.last_mut() {
                Some((last, count)) if last == entry => *count += 1,
                _ => decisions.push((*entry, 1)),
            }
        }
        current.clear();
        self.current = current;
        decisions
    }

    fn credit(&mut self, decisions: &DueUpdates, reward: f32) {
        for (entry, count) in decisions {
            let kept = (1.0 - self.learning.rate).powi((*count).min(i32::MAX as u32) as i32);
            let value = &mut self.table[*entry as usize];
            *value = reward + (*value - reward) * kept as f32;
        }
    }

    /// The level for a page; the lowest among those that promise most.
    pub fn level(&mut self, situation: &Situation) -> usize {
        let state = situation.state();
        let action = if self.rng.unit() < self.learning.explore {
            self.rng.below(LEVELS as u64) as usize
        } else {
            cachewright_model::argmax(self.actions(state))
        };
        self.current.push((state * LEVELS + action) as u32);
        action
    }

    /// Expected rewards of a state, by level.
    pub fn actions(&self, state: usize) -> &[f32] {
        self.table.get(state * LEVELS..(state + 1) * LEVELS).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn situation(victim_type: u8) -> Situation {
        Situation { age: 5, valid_share: 0.5, victim_type, class: 0 }
    }

    #[test]
    fn the_table_starts_as_the_hierarchy() {
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(hierarchical), [0, 0, 0, 1, 2, 3, 4, 4]);
        assert_eq!(STATES * LEVELS, 450_000, "439 KB at one byte each");
        let mut agent = Agent::new(LearningRates { rate: 0.1, explore: 0.0 }, Seed(1));
        for victim in 0..8 {
            assert_eq!(agent.level(&situation(victim)), hierarchical(victim), "{victim}");
        }
    }

    #[test]
    fn states_follow_table_1() {
        let state = |age, valid_share, victim_type, class| {
            Situation { age, valid_share, victim_type, class }.state()
        };
        let apart = [
            state(1, 0.0, 0, 0),
            state(2, 0.0, 0, 0),
            state(1, 0.041, 0, 0),
            state(1, 0.0, 3, 0),
            state(1, 0.0, 0, 1),
        ];
        for (i, a) in apart.iter().enumerate() {
            assert!(apart[..i].iter().all(|b| a != b), "{i}");
        }
        assert_eq!(state(4, 0.08, 1, 2), state(7, 0.119, 1, 2));
        assert_eq!(state(1 << 24, 0.97, 1, 2), state(1 << 29, 1.0, 1, 2));
        assert!(state(u32::MAX, 2.0, 99, 99) < STATES);
    }

    #[test]
    fn a_round_is_credited_with_the_200_victims_after_it() {
        let mut agent = Agent::new(LearningRates { rate: 0.5, explore: 0.0 }, Seed(1));
        let page = situation(0);
        agent.on_victim(0.9);
        agent.level(&page);
        agent.level(&page);
        for victim in 1..=200 {
            assert_eq!(agent.actions(page.state())[0], 1.0, "victim {victim}");
            agent.on_victim(if victim <= 100 { 0.2 } else { 0.6 });
        }
        // The mean of 1..=200 is 0.4 without the round's own 0.9; two decisions at rate 1/2 keep a
        // quarter of the difference: 0.4 + 0.6 / 4.
        assert!((agent.actions(page.state())[0] - 0.55).abs() < 1e-6);
        agent.on_victim(0.0);
        assert!((agent.actions(page.state())[0] - 0.55).abs() < 1e-6, "credited once");
    }

    #[test]
    fn about_one_decision_in_a_hundred_explores() {
        let mut agent = Agent::new(LearningRates { rate: 0.001, explore: 0.01 }, Seed(7));
        agent.on_victim(0.5);
        let odd = (0..20_000).filter(|_| agent.level(&situation(0)) != 0).count();
        assert!((100..220).contains(&odd), "4/5 of 1 %: {odd}");
    }
}
