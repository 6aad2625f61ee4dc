//! The text for Prometheus, and the names that the dashboard uses.

use crate::monitor_sample::{Watched, status};
use cachewright_daemon::monitor::metrics::{PREFIX, text};
use std::collections::BTreeSet;
use std::sync::Arc;

const DASHBOARD: &str = include_str!("../../../../../docs/grafana-dashboard.json");

/// The names of all samples.
fn names(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(['{', ' ']).next().unwrap().to_owned()).collect()
}

#[test]
fn the_text_is_in_the_form_of_open_metrics() {
    let watched = Watched::start();
    let (head, body) = watched.get("/metrics", "localhost:1");
    assert!(head.contains("application/openmetrics-text"), "{head}");
    assert_eq!(body, text(Arc::new(status(1.0))).unwrap());
    assert!(body.ends_with("# EOF\n"));
    watched.stop();
}

#[test]
fn numbers_stand_under_their_names_and_labels() {
    let text = text(Arc::new(status(1.0))).unwrap();
    let own = "tenant=\"tenant \\\"1\\\"\\n\"";
    let tried = "policy=\"sieve\",partition=\"hull\",tenant=\"a\"";
    let timed = "tenant=\"tenant \\\"2\\\"\\n\"";
    for line in [
        format!("cachewright_read_blocks_total{{{own}}} 101"),
        format!("cachewright_bypassed_blocks_total{{{own}}} 21"),
        format!("cachewright_lost_blocks_total{{{own},reason=\"trim\"}} 6"),
        format!("cachewright_lost_dirty_blocks_total{{{own},reason=\"trim\"}} 5"),
        format!("cachewright_missed_blocks_total{{{own},cause=\"quota\"}} 9"),
        format!("cachewright_pushed_out_blocks_total{{{own},by=\"other\"}} 3"),
        format!("cachewright_behind_seconds_total{{{own}}} 1.5"),
        format!("cachewright_request_errors_total{{{own},kind=\"read\"}} 1"),
        format!("cachewright_request_seconds_count{{{own},kind=\"read\"}} 4"),
        format!("cachewright_request_seconds_bucket{{le=\"+Inf\",{own},kind=\"read\"}} 4"),
        format!("cachewright_goal_hit_ratio{{{own}}} 0.75"),
        format!("cachewright_goal_met{{{own}}} 1.0"),
        format!("cachewright_goal_met{{{timed}}} 0.0"),
        format!("cachewright_goal_seconds{{{timed},goal=\"goal_p99\"}} 0.02"),
        format!("cachewright_goal_measured_seconds{{{timed},goal=\"goal_p99\"}} 0.023"),
        format!("cachewright_quota_bytes{{{own}}} 536870912.0"),
        "cachewright_log_moved_bytes_total 4096.0".to_owned(),
        format!("cachewright_trial_hits_total{{{tried}}} 420"),
        format!("cachewright_trial_quota_bytes{{{tried}}} 268435456.0"),
        "cachewright_log_up 1.0".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.contains("cachewright_quota_bytes{tenant=\"tenant \\\"0"), "no quota, no metric");
}

#[test]
fn the_dashboard_uses_metrics_that_exist() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 8, "{}", panels.len());
    let there = names(&text(Arc::new(status(1.0))).unwrap());
    let mut used = BTreeSet::new();
    for panel in panels {
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{}", panel["title"]);
        for target in targets {
            let words = target["expr"].as_str().unwrap();
            let words = words.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
            used.extend(words.filter(|word| word.starts_with(PREFIX)).map(str::to_owned));
        }
    }
    let missing: Vec<_> = used.difference(&there).collect();
    assert!(missing.is_empty() && used.len() > 10, "{missing:?}");
}
