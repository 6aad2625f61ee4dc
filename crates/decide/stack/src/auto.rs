//! `partition = "auto"`: the partitioner that fits what a stack has.
//!
//! For: one rule for a run, a plan and a live server. Must never know: traces, sizes, how a
//! partitioner divides. The scheme takes the place of `auto` as the file is read, so that the
//! resolved stack names it. Constants of `hull` are those of `icache-x`, set before any of the
//! table of docs/which-scheme.md was measured.

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

/// The scheme that `named` stands for: itself, unless it is `auto`. Errors: settings of `auto`.
pub fn resolve(named: &Scheme, facts: StackFacts) -> Result<Scheme, String> {
    if named.name != AUTO {
        return Ok(named.clone());
    }
    if let Some((key, _)) = named.pairs.first() {
        return Err(format!(
            "`cache.partition`: found the setting `{key}` of `{AUTO}`, expected none; settings \
             belong to the scheme that is chosen"
        ));
    }
    Ok(match facts {
        StackFacts { tenants: 0 | 1, .. } => Scheme::named("shared"),
        StackFacts { goals: true, .. } => Scheme::named("soft-qos-x"),
        StackFacts { responses: true, .. } => Scheme::named("icache-x"),
        _ => steady_hull(),
    })
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
        let name = |facts| resolve(&Scheme::named(AUTO), facts).unwrap().name;
        assert_eq!(name(facts(1, true, true)), "shared");
        assert_eq!(name(facts(2, true, true)), "soft-qos-x");
        assert_eq!(name(facts(2, false, true)), "icache-x");
        assert_eq!(name(facts(2, false, false)), "hull");
    }

    #[test]
    fn every_choice_is_a_partitioner_that_takes_its_settings() {
        for (goals, responses) in [(true, true), (false, true), (false, false)] {
            let facts = StackFacts { tenants: 2, goals, responses };
            let chosen = resolve(&Scheme::named(AUTO), facts).unwrap();
            let made = cachewright_partition::registry::resolved(&chosen.name, &chosen.pairs);
            assert!(made.is_ok(), "{chosen:?}");
        }
        assert!(cachewright_partition::entry(AUTO).is_err(), "no scheme has the name");
    }

    #[test]
    fn other_schemes_stay_and_settings_are_refused() {
        let facts = StackFacts { tenants: 2, goals: false, responses: false };
        let equal = Scheme::named("equal");
        assert_eq!(resolve(&equal, facts), Ok(equal));
        let pairs = vec![("granules".to_owned(), Value::Int(3))];
        let error = resolve(&Scheme { name: AUTO.to_owned(), pairs }, facts).unwrap_err();
        assert!(error.contains("`granules` of `auto`, expected none"), "{error}");
    }
}
