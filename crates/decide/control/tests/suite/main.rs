//! Tests of the control loop, in one binary.

mod divisions_keep_the_rules;
mod meters_count_what_requests_touch;
