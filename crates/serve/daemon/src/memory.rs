//! Whether a machine has the memory for a cache.
//!
//! For: a refusal at a start, instead of an end by the kernel when the cache fills. Must never
//! know: devices, policies. Units: bytes, blocks.

use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_live::blocks::BLOCK_MEMORY;
use cachewright_types::Bytes;

/// What a policy needs for a block at least: 14 bytes in the index, and a place in its order.
const DECISION_MEMORY: u64 = 18;

/// Errors: the memory that is available is less than the cache needs when it is full.
pub fn check(plan: &LivePlan) -> Result<(), LiveError> {
    let needed = u64::from(plan.capacity_blocks) * (BLOCK_MEMORY + DECISION_MEMORY);
    let Some(available) = available().filter(|available| *available < needed) else {
        return Ok(());
    };
    let (needed, available) = (Bytes(needed), Bytes(available));
    let capacity = Bytes(plan.capacity_bytes());
    Err(plan.refuse(format!(
        "`cache.capacity`: found `{capacity}`, which needs at least {needed} of memory, expected \
         one that needs at most {available}, which are available; a larger `cache.block` needs less"
    )))
}

/// Bytes that the machine can give without swapping, and the control group of the process beside
/// what it has taken. Nothing where the system does not say.
fn available() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let group = |name: &str| std::fs::read_to_string(format!("/sys/fs/cgroup/memory.{name}")).ok();
    let limit = group("max").and_then(|text| text.trim().parse::<u64>().ok());
    let taken = group("current").and_then(|text| text.trim().parse::<u64>().ok());
    let group = limit.map(|limit| limit.saturating_sub(taken.unwrap_or_default()));
    machine.into_iter().chain(group).min()
}

/// What a text of `/proc/meminfo` says is available.
fn of_machine(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_read_from_the_systems_text() {
        let text = "MemTotal:       24600000 kB\nMemAvailable:   23000000 kB\nBuffers: 1 kB\n";
        assert_eq!(of_machine(text), Some(23_000_000 * 1024));
        assert_eq!(of_machine("MemTotal: 1 kB\nMemAvailable: many kB\n"), None);
    }
}
