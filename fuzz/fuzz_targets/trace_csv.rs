//! CSV by column map: the first line is the options as `key value` pairs separated by `&`, the rest
//! is the file.
#![no_main]

use cachewright_fuzz::{check, options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let first_line = String::from_utf8_lossy(&input[..end]);
    let pairs: Vec<(&str, &str)> =
        first_line.split('&').filter_map(|pair| pair.split_once(' ')).collect();
    check(&input[end..], &options(Some("csv"), &pairs, input.len() % 2 == 1));
});
