//! Tests of the control loop, in one binary.

mod deciders_carry_out_divisions;
mod deciders_continue_from_snapshots;
mod divisions_keep_the_rules;
mod meters_count_what_requests_touch;
mod meters_name_blocks;
mod tenants_come_and_go;
