//! All text formats with fixed columns: the first byte chooses the format and what to do with bad
//! records, the rest is the file.
#![no_main]

use cachewright_fuzz::{check, options};
use libfuzzer_sys::fuzz_target;

const FORMATS: [&str; 22] = [
    "alibaba",
    "tencent",
    "msr",
    "systor17",
    "spc",
    "fiu",
    "blkparse",
    "fio-iolog",
    "mqsim",
    "syscall",
    "arc",
    "ids",
    "disksim",
    "biosnoop",
    "ftrace",
    "etw",
    "iotrace",
    "k5cloud",
    "biotracer",
    "tectonic",
    "thesios",
    "mooncake",
];

fuzz_target!(|input: &[u8]| {
    if let Some((choice, bytes)) = input.split_first() {
        let format = FORMATS[usize::from(choice >> 1) % FORMATS.len()];
        check(bytes, &options(Some(format), &[], choice & 1 == 1));
    }
});
