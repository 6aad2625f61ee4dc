//! Whatever the content is recognised as, compressed or not.
#![no_main]

use cachewright_fuzz::{check, options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: std::panic::set_hook(Box::new(|panic| {
        if !panic.location().is_some_and(|at| at.file().contains("parquet-")) {
            eprintln!("{panic}");
            std::process::abort();
        }
    })),
    |input: &[u8]| check(input, &options(None, &[], input.len() % 2 == 1))
);
