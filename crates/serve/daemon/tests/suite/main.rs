//! Live servers and offline tools on real files and sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod any_length;
mod calibrated;
mod characterized;
mod device_failures;
mod guests;
mod histories;
mod identity;
mod killed_recordings;
mod layouts;
mod lost_groups;
mod many_clients;
mod models;
mod monitor_answers;
mod monitor_metric_names;
mod monitor_sample;
mod monitored;
mod packaging;
mod refusals;
mod rehearsed;
mod reloaded_divisions;
mod reloading;
mod rolling;
mod serving;
mod setup;
mod signals;
mod taken_over;
mod thin;
mod tools;
mod written_back;
