//! The tests of the system crate, one module per subject, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod places;

mod benefits_look_ahead;
mod constant_times;
mod long_recordings_lie_in_files;
mod processes_send_for_themselves;
mod profiles_are_of_the_head_alone;
mod recording_is_what_was_asked;
mod service_times;
mod ssd_cache_properties;
mod ssd_data_cache;
mod ssd_elastic;
mod tenants_come_and_go;
mod timed_decisions;
mod timed_machine;
mod timed_places;
mod warmup_is_left_out;
mod watchers_see_the_cache;
