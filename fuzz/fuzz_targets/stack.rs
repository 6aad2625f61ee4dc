//! Stack files: read, checked, resolved with every default.
#![no_main]

use cachewright_experiment::check;
use cachewright_fuzz::checked;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // Relative traces begin beside this file: `Cargo.toml` is one that is there.
    let origin = Path::new(env!("CARGO_MANIFEST_DIR")).join("stack.toml");
    match check(text, &origin, &[]) {
        Err(error) => drop(checked(error.to_string())),
        Ok(resolved) => {
            // What is resolved is a stack again, and resolves to itself.
            assert!(resolved.is_object(), "{resolved}");
        }
    }
});
