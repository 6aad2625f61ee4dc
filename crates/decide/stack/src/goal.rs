//! A tenant's goal: a hit ratio, a latency that stands for one, or a measured response time.
//!
//! For: reading `goal_hit_ratio`, `goal_latency`, `goal_response` and `goal_p99`, and turning the
//! second into the first. Must never know: partitioners that keep goals. Units: hit ratios from 0
//! to 1, nanoseconds. Source: Patrick et al., section III-A: the mean access time is that of the
//! cache by the hit ratio and that of the backing by the rest. Measured response times are ours.

use crate::reader::Reader;
use crate::tables::TenantTable;
use cachewright_partition::ResponseGoal;
use cachewright_types::Nanos;

/// What a tenant was promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// At least this share of its block accesses hits, over the whole run.
    HitRatio(f64),
    /// Its mean block access takes no longer, by two constants.
    Latency(Nanos),
    /// Its requests take no longer, as measured.
    Response(ResponseGoal),
}

impl Goal {
    /// The goal of a `[[tenant]]`, if it has one. Errors: two kinds.
    pub fn new(table: &TenantTable, reader: &Reader<'_>) -> Result<Option<Goal>, String> {
        let given = [
            table.goal_hit_ratio.map(Goal::HitRatio),
            table.goal_latency.map(Goal::Latency),
            table.goal_response.map(|limit| Goal::Response(ResponseGoal::Mean(limit))),
            table.goal_p99.map(|limit| Goal::Response(ResponseGoal::P99(limit))),
        ];
        let mut given = given.into_iter().flatten();
        match (given.next(), given.next()) {
            (goal, None) => Ok(goal),
            (first, Some(second)) => Err(format!(
                "found both `{}` and `{}`, expected one of them",
                reader.key(first.map_or("", Goal::key)),
                reader.key(second.key())
            )),
        }
    }

    /// The key of a `[[tenant]]` that gives it.
    pub fn key(self) -> &'static str {
        match self {
            Goal::HitRatio(_) => "goal_hit_ratio",
            Goal::Latency(_) => "goal_latency",
            Goal::Response(ResponseGoal::Mean(_)) => "goal_response",
            Goal::Response(ResponseGoal::P99(_)) => "goal_p99",
        }
    }

    /// The response time promised, as measured.
    pub fn response(self) -> Option<ResponseGoal> {
        match self {
            Goal::Response(goal) => Some(goal),
            Goal::HitRatio(_) | Goal::Latency(_) => None,
        }
    }

    /// The hit ratio that meets the goal when a hit takes `hit` and a miss `miss`; nothing for a
    /// measured response time. Errors: a latency that no hit ratio gives, or that any gives.
    pub fn hit_ratio(self, hit: Nanos, miss: Nanos) -> Result<Option<f64>, String> {
        match self {
            Goal::Response(_) => Ok(None),
            Goal::HitRatio(ratio) => Ok(Some(ratio)),
            Goal::Latency(time) if hit <= time && time < miss => {
                Ok(Some((miss.0 - time.0) as f64 / (miss.0 - hit.0) as f64))
            }
            Goal::Latency(time) => Err(format!(
                "found `{time}`, expected at least {hit} (`replay.hit_time`) and less than {miss} \
                 (`replay.miss_time`)"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_stands_for_a_hit_ratio() {
        let (hit, miss) = (Nanos(200_000), Nanos(10_000_000));
        let ratio = |time| Goal::Latency(Nanos(time)).hit_ratio(hit, miss);
        assert_eq!(ratio(200_000), Ok(Some(1.0)));
        assert_eq!(ratio(5_100_000), Ok(Some(0.5)));
        let words = "found `100us`, expected at least 200us (`replay.hit_time`) and less than 10ms \
                     (`replay.miss_time`)";
        assert_eq!(ratio(100_000), Err(words.to_owned()));
        assert!(ratio(10_000_000).is_err());
    }

    #[test]
    fn a_measured_response_is_no_hit_ratio_and_one_goal_is_enough() {
        let reader = Reader::new("tenant[1]", None);
        let table = TenantTable { goal_p99: Some(Nanos(5_000_000)), ..TenantTable::default() };
        let goal = Goal::new(&table, &reader).unwrap().unwrap();
        assert_eq!(goal.response(), Some(ResponseGoal::P99(Nanos(5_000_000))));
        assert_eq!(goal.hit_ratio(Nanos(1), Nanos(2)), Ok(None));
        let table = TenantTable { goal_hit_ratio: Some(0.5), ..table };
        let error = Goal::new(&table, &reader).unwrap_err();
        let expected = "found both `tenant[1].goal_hit_ratio` and `tenant[1].goal_p99`, expected \
                        one of them";
        assert_eq!(error, expected);
    }
}
