//! Workloads that stand in a test: one text per tenant, Alibaba-style or of system calls, in blocks
//! of 4 KiB.

use cachewright_system::{BlockKind, Recorder, Recording};
use cachewright_trace::merge::{MergedRequests, TenantInput};
use cachewright_trace::{OpenOptions, formats};
use cachewright_types::Nanos;

/// log2 of the block size.
pub const SHIFT: u32 = 12;

/// Tenants `t0`, `t1` and so on, each beginning at its start; at 0 where none is given.
pub fn workload<T: AsRef<str>>(texts: &[T], starts_ns: &[u64]) -> MergedRequests {
    let tenants = texts.iter().enumerate().map(|(index, text)| {
        // The second column of a system call is its process, that of a block request its kind.
        let second = text.as_ref().split(',').nth(1);
        let calls = second.is_some_and(|word| word.parse::<u64>().is_ok());
        let format = if calls { "syscall" } else { "alibaba" };
        let options = OpenOptions { format: Some(format.into()), ..OpenOptions::default() };
        let reader = formats::open_bytes("inline", text.as_ref().as_bytes(), &options).unwrap();
        let start = Nanos(starts_ns.get(index).copied().unwrap_or(0));
        TenantInput { start, ..TenantInput::reader(&format!("t{index}"), reader) }
    });
    MergedRequests::open(tenants.collect()).unwrap()
}

/// Takes down what so many tenants ask for.
pub fn recorder(tenants: usize) -> Recorder {
    Recorder::new(tenants, BlockKind::Split { shift: SHIFT }, true, 1 << 20)
}

/// All that the tenants ask for.
#[allow(dead_code, reason = "not every test binary records by itself")]
pub fn recorded<T: AsRef<str>>(texts: &[T]) -> Recording {
    recorder(texts.len()).record(&mut workload(texts, &[]), |_| true).unwrap()
}
