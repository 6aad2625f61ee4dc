//! Tests of steps, in one binary.

mod failures_reach_what_needs_them;
mod joins_and_waits;
mod notes;
mod plans_by_hand;
mod random_failures;
mod random_graphs;
mod random_plans;
mod random_residents;
mod support;
