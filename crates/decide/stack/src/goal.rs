//! A tenant's goal: a hit ratio, or a latency that stands for one.
//!
//! For: reading `goal_hit_ratio` and `goal_latency`, and turning the second into the first. Must
//! never know: partitioners. Units: hit ratios from 0 to 1, nanoseconds. Source: Patrick et al.,
//! section III-A: mean access time = cache time x hit ratio + backing time x (1 - hit ratio).

use crate::reader::Reader;
use crate::tables::TenantTable;
use cachewright_types::Nanos;

/// What a tenant was promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// At least this share of its block accesses hits, over the whole run.
    HitRatio(f64),
    /// Its mean block access takes no longer.
    Latency(Nanos),
}

impl Goal {
    /// The goal of a `[[tenant]]`, if it has one. Errors: both kinds.
    pub fn new(table: &TenantTable, reader: &Reader<'_>) -> Result<Option<Goal>, String> {
        match (table.goal_hit_ratio, table.goal_latency) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(format!(
                "found both `{}` and `{}`, expected one of them",
                reader.key("goal_hit_ratio"),
                reader.key("goal_latency")
            )),
            (None, Some(time)) => Ok(Some(Goal::Latency(time))),
            (Some(ratio), None) => Ok(Some(Goal::HitRatio(ratio))),
        }
    }

    /// The hit ratio that meets the goal when a hit takes `hit` and a miss `miss`. Errors: a
    /// latency that no hit ratio gives, or that any gives.
    pub fn hit_ratio(self, hit: Nanos, miss: Nanos) -> Result<f64, String> {
        match self {
            Goal::HitRatio(ratio) => Ok(ratio),
            Goal::Latency(time) if hit <= time && time < miss => {
                Ok((miss.0 - time.0) as f64 / (miss.0 - hit.0) as f64)
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
        assert_eq!(ratio(200_000), Ok(1.0));
        assert_eq!(ratio(5_100_000), Ok(0.5));
        let words = "found `100us`, expected at least 200us (`replay.hit_time`) and less than 10ms \
                     (`replay.miss_time`)";
        assert_eq!(ratio(100_000), Err(words.to_owned()));
        assert!(ratio(10_000_000).is_err());
    }
}
