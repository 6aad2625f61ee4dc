//! The tests of the experiment crate, one module per subject, in one binary.
//!
//! For: one link for all of them. Must never know: what any of them tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

#[macro_use]
mod common;

mod auto_schemes;
mod byte_hits;
mod causes;
mod choices;
mod closed_loops;
mod costpi;
mod determinism;
mod device_profiles;
mod elastic;
mod flash;
mod given_models;
mod golden_run;
mod hare;
mod histories;
mod hostile_stacks;
mod kinds_of_workload;
mod layouts;
mod miss_ratio_curves;
mod no_look_ahead;
mod noisy;
mod opt;
mod oracle_labels;
mod planner;
mod recorded_divisions;
mod response_goals;
mod segments;
mod sequential_cutoff;
mod shrinks;
mod specs;
mod start_and_stop;
mod stops;
mod sweeps;
mod talus;
mod teaching;
mod timed;
mod timed_devices;
mod timed_measures;
mod timed_oracle;
mod timed_ssd;
mod timed_store;
mod trace_times;
mod wa;
mod warmup;
