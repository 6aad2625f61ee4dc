//! Random graphs against a slow, obvious model.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_steps::{Outcome, StepGraph, StepRef};
use proptest::prelude::*;
use std::collections::HashMap;

/// A step: earlier steps it waits for, and whether it needs each; whether it fails by itself.
type Drawn = (Vec<(usize, bool)>, bool);

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let waits = prop::collection::vec((0_usize..400, any::<bool>()), 0..5);
    prop::collection::vec((waits, prop::bool::weighted(0.1)), 1..120)
}

proptest! {
    /// Each step begins once, after all it waits for; it fails if it, or one that it needed when it
    /// was made, failed; steps become ready in the order of the model's rounds.
    #[test]
    fn order_and_failures_are_those_of_the_model(
        steps in drawn(),
        pace in prop::collection::vec(0_usize..3, 120),
    ) {
        let mut graph: StepGraph<usize, ()> = StepGraph::default();
        let mut refs: Vec<StepRef> = Vec::new();
        // Of each step: what it still waits for, and whether it has to fail.
        let mut open: HashMap<usize, Vec<(usize, bool)>> = HashMap::new();
        let mut fails = vec![false; steps.len()];
        let mut done = vec![false; steps.len()];
        let mut begun = 0;
        let end_one = |graph: &mut StepGraph<usize, ()>,
                           open: &mut HashMap<usize, Vec<(usize, bool)>>,
                           fails: &mut Vec<bool>,
                           done: &mut Vec<bool>| {
            let Some(id) = graph.next_ready() else { return Ok(false) };
            let number = *graph.action(id).unwrap();
            prop_assert_eq!(open.remove(&number).map(|waits| waits.len()), Some(0));
            prop_assert_eq!(graph.has_failed(id), fails[number]);
            let outcome = if steps[number].1 { Outcome::Failed } else { Outcome::Done };
            let finished = graph.finish(id, outcome).unwrap();
            let failed = fails[number] || steps[number].1;
            prop_assert_eq!((finished.action, finished.failed), (number, failed));
            done[number] = true;
            for (waiting, waits) in open.iter_mut() {
                fails[*waiting] |= failed && waits.contains(&(number, true));
                waits.retain(|(before, _)| *before != number);
            }
            Ok(true)
        };
        for (number, (waits, _)) in steps.iter().enumerate() {
            let step = graph.add(number, None);
            let waits: Vec<(usize, bool)> =
                waits.iter().filter(|(before, _)| *before < number).copied().collect();
            for (before, needs) in &waits {
                if *needs {
                    graph.need(step, refs[*before]);
                } else {
                    graph.wait(step, refs[*before]);
                }
            }
            let waits = waits.into_iter().filter(|(before, _)| !done[*before]).collect();
            open.insert(number, waits);
            refs.push(step);
            graph.release(step);
            for _ in 0..pace[number] {
                begun += usize::from(end_one(&mut graph, &mut open, &mut fails, &mut done)?);
            }
            prop_assert_eq!(graph.audit(), Ok(()));
        }
        while end_one(&mut graph, &mut open, &mut fails, &mut done)? {
            begun += 1;
        }
        prop_assert_eq!((begun, graph.open(), open.len()), (steps.len(), 0, 0));
    }
}
