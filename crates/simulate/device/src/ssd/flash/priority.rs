//! Classes of tenants, and which class a die serves next.
//!
//! For: the choice among waiting commands of one kind where tenants have classes. Must never know:
//! queues, time. Source: MQSim's `TSU_Priority_OutOfOrder`: urgent commands first; the others take
//! turns in rounds, of which `high` has four, `medium` two and `low` one. Difference: MQSim gives
//! up after four rounds and may return nothing while a command of class `low` waits.

/// Weights by class; `urgent` is outside the rounds.
const WEIGHTS: [u32; 4] = [u32::MAX, 4, 2, 1];
/// Turns after which they begin anew: the largest weight.
const TURNS: u32 = 4;

/// The class of a tenant, the first served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Before all others.
    Urgent,
    /// Four turns of seven.
    #[default]
    High,
    /// Two turns of seven.
    Medium,
    /// One turn of seven.
    Low,
}

impl Priority {
    /// All, in the order of their numbers.
    pub const ALL: [Priority; 4] =
        [Priority::Urgent, Priority::High, Priority::Medium, Priority::Low];

    /// The word of stack files.
    pub fn word(self) -> &'static str {
        match self {
            Priority::Urgent => "urgent",
            Priority::High => "high",
            Priority::Medium => "medium",
            Priority::Low => "low",
        }
    }
}

/// Where the rounds of one kind of command at one unit stand.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    class: usize,
    /// Classes of at least this weight take part.
    weight: u32,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { class: 0, weight: TURNS }
    }
}

impl Turns {
    /// The class to serve, of those for which a command waits; nothing when none does.
    pub fn next(&mut self, waits: [bool; 4]) -> Option<Priority> {
        if waits[0] {
            return Some(Priority::Urgent);
        }
        if !waits.contains(&true) {
            return None;
        }
        // A class of weight 1 takes part once in each sequence of rounds.
        for _ in 0..3 * (TURNS + 1) {
            self.class = if self.class >= 3 { 1 } else { self.class + 1 };
            if self.class == 1 {
                self.weight = if self.weight <= 1 { TURNS } else { self.weight - 1 };
            }
            if waits[self.class] && WEIGHTS[self.class] >= self.weight {
                return Some(Priority::ALL[self.class]);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(waits: [bool; 4], times: usize) -> String {
        let mut rounds = Turns::default();
        let pick = |_| rounds.next(waits).map_or("-", |class| &class.word()[..1]);
        (0..times).map(pick).collect()
    }

    #[test]
    fn urgent_goes_first_and_the_others_share_by_weight() {
        assert_eq!(picked([true; 4], 5), "uuuuu");
        assert_eq!(picked([false, true, true, true], 14), "hhmhmlhhhmhmlh");
        assert_eq!(picked([false, true, false, true], 10), "hhhlhhhhlh");
        assert_eq!(picked([false, false, false, true], 3), "lll");
        assert_eq!(picked([false; 4], 2), "--");
    }
}
