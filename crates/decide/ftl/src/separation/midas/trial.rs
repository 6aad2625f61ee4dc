//! MiDAS: whether a configuration does what was predicted of it.
//!
//! For: measured shares of valid pages per group against the model's, and what follows from a
//! misprediction. Must never know: superblocks, pages. Units: superblocks, host page writes.
//! Source: MiDAS (FAST'24), section 4.6, and its simulator. Once every group was collected from,
//! the victims of 0.3 windows are measured. Groups merge at the first group whose share exceeds its
//! prediction by 0.1 or more. Here the time of a trial does not grow with the window.

use super::chain::MAX_GROUPS;
use super::search::Configuration;

/// What a trial has found so far.
#[derive(Clone, Debug, Default)]
pub struct GroupTrial {
    predicted: [f64; MAX_GROUPS],
    /// Groups of the configuration on trial, merged ones included; 0 before the first.
    groups: u8,
    /// Groups collected from since, a bit each.
    collected: u64,
    /// The highest group known to be collected from in order, until all are.
    reached: Option<u8>,
    measuring: bool,
    writes: u64,
    valid: [f64; MAX_GROUPS],
    victims: [u32; MAX_GROUPS],
    /// Mispredictions in the lower half of the groups.
    errors: u32,
    /// Windows in a row that had such.
    bad_windows: u32,
}

impl GroupTrial {
    /// A configuration was taken on. Returns whether the window must be doubled, since the last two
    /// had mispredictions.
    pub fn begin(&mut self, taken: &Configuration) -> bool {
        self.bad_windows = if self.errors > 0 { self.bad_windows + 1 } else { 0 };
        self.errors = 0;
        self.forget();
        self.groups = taken.sizes.len() as u8;
        self.collected = 0;
        self.reached = Some(0);
        self.predicted = [0.0; MAX_GROUPS];
        for (slot, valid) in self.predicted.iter_mut().zip(&taken.valid) {
            *slot = *valid;
        }
        self.bad_windows >= 2
    }

    /// A configuration was found and refused.
    pub fn refuse(&mut self) {
        self.bad_windows += u32::from(self.errors > 0);
        self.errors = 0;
        self.forget();
    }

    fn forget(&mut self) {
        self.measuring = false;
        self.writes = 0;
        self.clear();
    }

    fn clear(&mut self) {
        self.valid = [0.0; MAX_GROUPS];
        self.victims = [0; MAX_GROUPS];
    }

    /// The host wrote a page.
    #[inline(always)]
    pub fn written(&mut self) {
        self.writes += u64::from(self.measuring);
    }

    /// A victim was taken from `group` by the rule of that group.
    pub fn chosen(&mut self, group: u8) {
        self.collected |= 1 << (group & 63);
    }

    /// A victim with this share of valid pages was emptied.
    pub fn emptied(&mut self, group: u8, valid: f64) {
        let group = usize::from(group);
        if self.measuring && self.reached.is_none() && group < MAX_GROUPS {
            self.valid[group] += valid;
            self.victims[group] += 1;
        }
    }

    /// Enough superblocks were freed, while `last` is the last group.
    pub fn reclaimed(&mut self, last: u8) {
        if self.reached.is_none() {
            return;
        }
        if self.collected != 0 {
            self.reached = Some(last.saturating_sub(1));
        }
        if self.collected == (1 << (last + 1)) - 1 {
            self.reached = None;
            self.measuring = true;
        }
    }

    /// After `sample` measured host writes: the group from which on groups must merge, if one is
    /// mispredicted. The last group is judged unless it is a pool.
    pub fn verdict(&mut self, sample: f64, last: u8, pooled: bool) -> Option<u8> {
        if self.writes as f64 <= sample {
            return None;
        }
        self.writes = 0;
        let checked = if pooled { 1..last } else { 1..last + 1 };
        let wrong = checked.into_iter().find(|group| {
            let group = usize::from(*group);
            let measured = self.valid[group] / f64::from(self.victims[group]);
            measured - self.predicted[group] >= 0.1
        });
        self.clear();
        if let Some(group) = wrong {
            self.errors += u32::from(group <= self.groups / 2);
            self.stop_if_one(group);
        }
        wrong
    }

    fn stop_if_one(&mut self, last: u8) {
        if last <= 1 {
            self.measuring = false;
            self.groups = 0;
        }
    }

    /// Reclaim ran 25 times without success; pages of the last victim went to `target`. Returns the
    /// group that is to be the last, or nothing if all groups are one pool.
    pub fn stuck(&mut self, target: u8, last: u8) -> Option<u8> {
        if self.groups > 0 && target <= self.groups / 2 {
            self.errors += 1;
        }
        if last == 1 {
            self.groups = 0;
            return None;
        }
        let from = self.reached.unwrap_or(target).min(last);
        let new_last = from.saturating_sub(1).max(1);
        if self.reached.is_some_and(|reached| reached >= new_last) {
            self.measuring = true;
            self.reached = None;
        }
        self.stop_if_one(new_last);
        Some(new_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_trial() -> GroupTrial {
        let mut trial = GroupTrial::default();
        let valid = vec![0.0, 0.5, 0.6, 0.7];
        let taken = Configuration { sizes: vec![1; 4], valid, write_amplification: 2.0 };
        assert!(!trial.begin(&taken));
        trial
    }

    #[test]
    fn the_first_mispredicted_group_is_named_once_all_were_collected() {
        let mut trial = on_trial();
        for group in [0, 1, 3] {
            trial.chosen(group);
            trial.reclaimed(3);
            trial.emptied(group, 1.0);
            trial.written();
        }
        assert_eq!((trial.verdict(0.0, 3, false), trial.writes), (None, 0));
        trial.chosen(2);
        trial.reclaimed(3);
        for (group, valid) in [(1, 0.5), (1, 0.68), (2, 0.75), (3, 0.9)] {
            trial.emptied(group, valid);
            trial.written();
        }
        assert_eq!(trial.verdict(4.0, 3, false), None, "too early");
        trial.written();
        assert_eq!(trial.verdict(4.0, 3, false), Some(2), "0.59 for 0.5, 0.75 for 0.6");
        assert_eq!((trial.errors, trial.victims[1]), (1, 0));
    }

    #[test]
    fn two_bad_windows_double_the_next() {
        let mut trial = on_trial();
        let taken = Configuration { sizes: vec![1; 4], valid: vec![], write_amplification: 2.0 };
        trial.errors = 1;
        assert!(!trial.begin(&taken));
        trial.errors = 2;
        assert!(trial.begin(&taken));
        assert!(!trial.begin(&taken));
    }

    #[test]
    fn endless_reclaim_merges_down_to_below_its_target() {
        let mut trial = on_trial();
        assert_eq!(trial.stuck(3, 3), Some(1), "nothing was collected yet");
        let mut trial = on_trial();
        (0..4).for_each(|group| trial.chosen(group));
        trial.reclaimed(3);
        assert_eq!(trial.stuck(3, 3), Some(2));
        assert_eq!(trial.stuck(2, 1), None);
    }
}
