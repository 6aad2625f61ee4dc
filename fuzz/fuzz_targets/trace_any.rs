//! Whatever the content is recognised as, compressed or not; Parquet has a target of its own.
#![no_main]

use cachewright_fuzz::{check, options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if !input.starts_with(b"PAR1") {
        check(input, &options(None, &[], input.len() % 2 == 1));
    }
});
