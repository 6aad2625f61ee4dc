//! `partition = "auto"` and `policy = "auto"`: the schemes that fit what a stack has.
//!
//! For: one rule for a run, a plan and a live server. Must never know: traces, sizes, how a scheme
//! decides. The scheme takes the place of `auto` as the file is read, so that the resolved stack
//! names it. Constants of `hull` are those of `icache-x`, set before any of the tables of
//! docs/which-scheme.md was measured. For responses the policy is that of least worst regret in
//! the table of policies there; else it is `duel-x`, which follows the best of three. Both need
//! nothing, so that each stack can run them.

use cachewright_types::Value;
use cachewright_types::declare::Scheme;

/// The word in stack files.
pub const AUTO: &str = "auto";

/// What the rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFacts {
    /// Tenants.
    pub tenants: usize,
    /// A tenant has a goal.
    pub goals: bool,
    /// Requests have response times: devices are simulated, or a live server measures.
    pub responses: bool,
}

/// The partitioner that `named` stands for: itself, unless it is `auto`. Errors: settings of
/// `auto`.
pub fn partition(named: &Scheme, facts: StackFacts) -> Result<Scheme, String> {
    Ok(match facts {
        _ if !is_auto("cache.partition", named)? => named.clone(),
        StackFacts { tenants: 0 | 1, .. } => Scheme::named("shared"),
        StackFacts { goals: true, .. } => Scheme::named("soft-qos-x"),
        StackFacts { responses: true, .. } => Scheme::named("icache-x"),
        _ => steady_hull(),
    })
}

/// The policy that `named` stands for: itself, unless it is `auto`. Errors: settings of `auto`.
pub fn policy(named: &Scheme, facts: StackFacts) -> Result<Scheme, String> {
    Ok(match facts {
        _ if !is_auto("cache.policy", named)? => named.clone(),
        StackFacts { responses: true, .. } => Scheme::named("access-frequency"),
        _ => Scheme::named("duel-x"),
    })
}

/// Whether a scheme is to be chosen. Errors: it has settings.
fn is_auto(key: &str, named: &Scheme) -> Result<bool, String> {
    let setting = named.pairs.first().filter(|_| named.name == AUTO);
    match setting {
        None => Ok(named.name == AUTO),
        Some((setting, _)) => Err(format!(
            "`{key}`: found the setting `{setting}` of `{AUTO}`, expected none; settings belong \
             to the scheme that is chosen"
        )),
    }
}

/// `hull` that changes for a gain, by parts, and leaves every tenant a tenth of an equal share.
fn steady_hull() -> Scheme {
    let pair = |key: &str, value| (key.to_owned(), Value::Float(value));
    let pairs = vec![pair("min_gain", 0.02), pair("max_moved", 0.25), pair("floor_share", 0.1)];
    Scheme { name: "hull".to_owned(), pairs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_come_before_response_times_and_these_before_curves() {
        let facts = |tenants, goals, responses| StackFacts { tenants, goals, responses };
        let name = |facts| partition(&Scheme::named(AUTO), facts).unwrap().name;
        assert_eq!(name(facts(1, true, true)), "shared");
        assert_eq!(name(facts(2, true, true)), "soft-qos-x");
        assert_eq!(name(facts(2, false, true)), "icache-x");
        assert_eq!(name(facts(2, false, false)), "hull");
    }

    #[test]
    fn every_choice_is_a_partitioner_that_takes_its_settings() {
        for (goals, responses) in [(true, true), (false, true), (false, false)] {
            let facts = StackFacts { tenants: 2, goals, responses };
            let chosen = partition(&Scheme::named(AUTO), facts).unwrap();
            let made = cachewright_partition::registry::resolved(&chosen.name, &chosen.pairs);
            assert!(made.is_ok(), "{chosen:?}");
        }
        assert!(cachewright_partition::entry(AUTO).is_err(), "no scheme has the name");
    }

    #[test]
    fn other_schemes_stay_and_settings_are_refused() {
        let facts = StackFacts { tenants: 2, goals: false, responses: false };
        let equal = Scheme::named("equal");
        assert_eq!(partition(&equal, facts), Ok(equal));
        let arc = Scheme::named("arc");
        assert_eq!(policy(&arc, facts), Ok(arc));
        let pairs = vec![("granules".to_owned(), Value::Int(3))];
        let set = Scheme { name: AUTO.to_owned(), pairs };
        for (resolve, key) in [
            (partition as fn(&Scheme, StackFacts) -> Result<Scheme, String>, "cache.partition"),
            (policy, "cache.policy"),
        ] {
            let error = resolve(&set, facts).unwrap_err();
            let found = format!("`{key}`: found the setting `granules` of `auto`, expected none");
            assert!(error.starts_with(&found), "{error}");
        }
    }

    #[test]
    fn a_policy_is_chosen_for_misses_or_for_response_times_and_needs_nothing() {
        for (responses, expected) in [(false, "duel-x"), (true, "access-frequency")] {
            for (tenants, goals) in [(1, false), (3, true)] {
                let facts = StackFacts { tenants, goals, responses };
                let chosen = policy(&Scheme::named(AUTO), facts).unwrap();
                assert_eq!(chosen, Scheme::named(expected));
                let entry = cachewright_policy::entry(&chosen.name).unwrap();
                assert!(entry.needs.is_empty(), "{expected}");
            }
        }
        assert!(cachewright_policy::entry(AUTO).is_err(), "no policy has the name");
    }
}
