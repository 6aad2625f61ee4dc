//! Which way to admit each category, so that all together cost least in the cache that there is.
//!
//! For: `cachesack`. Must never know: how outcomes were measured. Source: Yang et al., CacheSack
//! (ATC 2022), section 4: for each retention time a fractional knapsack over the lower hulls of
//! (space, cost), one per category; the time whose knapsack costs least is taken.

use super::retention::{Retention, TIMES};
use super::tally::{CategoryTally, WAYS, Way, WayOutcome};

/// What becomes of a category: a share of its misses goes one way, the rest another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AdmissionChoice {
    /// The way of most steps of the hull that are taken whole; none admits nothing.
    pub base: Option<Way>,
    /// The way of the step that is taken in part.
    pub next: Option<Way>,
    /// The share of misses that go the way of `next`.
    pub share: f64,
}

/// Choices for all categories, and the retention time that they are made for.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionPlan {
    /// By category.
    pub choices: Vec<AdmissionChoice>,
    /// An index of [`Retention`].
    pub time: usize,
}

/// A step up a category's hull.
#[derive(Clone, Copy, Debug)]
struct HullStep {
    category: usize,
    way: Way,
    space: f64,
    saving: f64,
}

/// The plan for a cache with so much space, in blocks times accesses. At a price of 0 all that is
/// written into the cache is free.
pub fn plan(
    tallies: &[CategoryTally],
    retention: &Retention,
    space: f64,
    price: f64,
) -> AdmissionPlan {
    let outcomes: Vec<_> = tallies.iter().map(|tally| tally.outcomes(retention, price)).collect();
    let mut best: Option<(f64, AdmissionPlan)> = None;
    for time in 0..TIMES {
        let hull = |(category, outcomes): (usize, &[[WayOutcome; WAYS.len()]; TIMES])| {
            steps(category, tallies[category].without(), &outcomes[time])
        };
        let steps: Vec<HullStep> = outcomes.iter().enumerate().flat_map(hull).collect();
        let (saving, choices) = filled(steps, space, tallies.len());
        if best.as_ref().is_none_or(|(highest, _)| saving > *highest) {
            best = Some((saving, AdmissionPlan { choices, time }));
        }
    }
    best.map_or_else(|| AdmissionPlan { choices: Vec::new(), time: 0 }, |(_, plan)| plan)
}

/// The lower hull of a category's ways, from nothing admitted on, as long as it falls.
fn steps(category: usize, without: WayOutcome, ways: &[WayOutcome; WAYS.len()]) -> Vec<HullStep> {
    let mut found = Vec::new();
    let mut current = without;
    loop {
        // The steepest step; of steps as steep the longest.
        let mut steepest: Option<(f64, HullStep, WayOutcome)> = None;
        for (way, outcome) in WAYS.into_iter().zip(ways) {
            let (space, saving) = (outcome.space - current.space, current.cost - outcome.cost);
            if saving <= 0.0 || space < 0.0 {
                continue;
            }
            let slope = if space > 0.0 { saving / space } else { f64::INFINITY };
            let better = steepest.as_ref().is_none_or(|(highest, step, _)| {
                slope > *highest || slope == *highest && saving > step.saving
            });
            if better {
                steepest = Some((slope, HullStep { category, way, space, saving }, *outcome));
            }
        }
        let Some((_, step, outcome)) = steepest else { return found };
        found.push(step);
        current = outcome;
    }
}

/// The steps that fit, the steepest first; what they save, and the choices.
fn filled(mut steps: Vec<HullStep>, space: f64, categories: usize) -> (f64, Vec<AdmissionChoice>) {
    // Steps of one category are in falling order of slope: a stable order keeps them so.
    let slope =
        |step: &HullStep| if step.space > 0.0 { step.saving / step.space } else { f64::INFINITY };
    steps.sort_by(|first, second| slope(second).total_cmp(&slope(first)));
    let mut choices = vec![AdmissionChoice::default(); categories];
    let (mut left, mut saving) = (space, 0.0);
    for step in steps {
        let choice = &mut choices[step.category];
        if step.space <= left {
            left -= step.space;
            saving += step.saving;
            choice.base = Some(step.way);
            continue;
        }
        let share = left / step.space;
        saving += share * step.saving;
        (choice.next, choice.share) = (Some(step.way), share);
        break;
    }
    (saving, choices)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(space: f64, cost: f64) -> WayOutcome {
        WayOutcome { space, cost }
    }

    #[test]
    fn steps_are_the_lower_hull() {
        let without = outcome(0.0, 10.0);
        let hull = |ways| -> Vec<(Way, f64, f64)> {
            let steps = steps(0, without, &ways);
            steps.into_iter().map(|step| (step.way, step.space, step.saving)).collect()
        };
        // On second misses half of the space saves most of it.
        let ways = [outcome(10.0, 2.0), outcome(5.0, 4.0), outcome(1.0, 9.9)];
        assert_eq!(hull(ways), [(Way::SecondMiss, 5.0, 6.0), (Way::Miss, 5.0, 2.0)]);
        // What costs more than nothing admitted is never taken.
        let ways = [outcome(10.0, 12.0), outcome(5.0, 10.0), outcome(0.0, 9.0)];
        assert_eq!(hull(ways), [(Way::Write, 0.0, 1.0)]);
    }

    #[test]
    fn the_last_step_is_taken_in_part() {
        let step = |category, way, space, saving| HullStep { category, way, space, saving };
        let steps = vec![
            step(0, Way::Miss, 10.0, 10.0),
            step(1, Way::SecondMiss, 4.0, 8.0),
            step(1, Way::Miss, 8.0, 4.0),
        ];
        let (saving, choices) = filled(steps, 16.0, 3);
        assert_eq!(saving, 10.0 + 8.0 + 1.0);
        assert_eq!(choices[0], AdmissionChoice { base: Some(Way::Miss), next: None, share: 0.0 });
        let partly =
            AdmissionChoice { base: Some(Way::SecondMiss), next: Some(Way::Miss), share: 0.25 };
        assert_eq!(choices[1], partly);
        assert_eq!(choices[2], AdmissionChoice::default());
    }
}
