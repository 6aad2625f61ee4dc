//! Descriptions of synthetic tenants.
#![no_main]

use cachewright_fuzz::{check, options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| check(input, &options(Some("synth"), &[], false)));
