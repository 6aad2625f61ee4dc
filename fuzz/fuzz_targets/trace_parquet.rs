//! Parquet. Panics inside its library are turned into errors by the reader, so that only one that
//! leaves the reader may end the run: it cannot unwind out of the target, which aborts.
#![no_main]

use cachewright_fuzz::{check, options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: std::panic::set_hook(Box::new(|panic| {
        if !panic.location().is_some_and(|at| at.file().contains("parquet-")) {
            eprintln!("{panic}");
        }
    })),
    |input: &[u8]| {
        check(input, &options(Some("parquet"), &[], false));
        check(input, &options(Some("parquet"), &[], true));
    }
);
