//! Which settings of a stack a live server honours.
//!
//! For: the refusal of every key that decides and that it would otherwise ignore. Must never know:
//! devices, files. Keys of traces, replays, simulated devices and machines only price or feed a
//! simulation: a live server leaves them alone. So it does with the sizes of a simulated drive in
//! `[flash]`: `capacity`, `over_provisioning`, `superblock`, `page`, `reserve`, `trim_evicted`.

use crate::layout::SERVED;
use cachewright_partition::Need as PartitionNeed;
use cachewright_policy::Need as PolicyNeed;
use cachewright_stack::tables::Blocks;
use cachewright_stack::{MachineTables, Reader, Rest, Stack};
use cachewright_types::{Bytes, Value};

/// The smallest block that a log can hold, in bytes.
const MIN_BLOCK: Bytes = Bytes(4096);

/// The tables of simulated devices, which a live server does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedDevices;

/// A stack as a live server reads it.
pub type LiveStack = Stack<SimulatedDevices>;

impl MachineTables for SimulatedDevices {
    const TABLES: &'static [&'static str] = &["device", "machine"];
    const MEASURES: bool = true;

    fn read(file: &Reader<'_>, _rest: &Rest<'_>) -> Result<Option<SimulatedDevices>, String> {
        let there = Self::TABLES.iter().any(|name| file.get(name).is_some());
        Ok(there.then_some(SimulatedDevices))
    }

    fn check(_machine: Option<&SimulatedDevices>, _rest: &Rest<'_>) -> Result<(), String> {
        Ok(())
    }

    fn resolved(&self) -> Result<Vec<(&'static str, Value)>, String> {
        Ok(Vec::new())
    }
}

/// A refusal: the key, what was found, what a live server expects.
fn refuse(key: &str, found: &str, expected: &str) -> Result<(), String> {
    Err(format!("`{key}`: found `{found}`, expected {expected} in a live server"))
}

/// Checks the keys that decide. Errors: the first that a live server cannot honour.
pub fn check(stack: &LiveStack) -> Result<(), String> {
    let cache = &stack.cache;
    check_policy(stack)?;
    check_partition(stack)?;
    if !SERVED.contains(&cache.layout.name.as_str()) {
        return refuse("cache.layout", &cache.layout.name, "`striped`, `dedicated` or `flashblox`");
    }
    if cache.block < MIN_BLOCK {
        return refuse("cache.block", &cache.block.to_string(), "at least 4KiB");
    }
    if !cache.drops_trimmed() {
        return refuse("cache.trim", "ignore", "`drop`");
    }
    if stack.replay.blocks == Blocks::Unit {
        return refuse("replay.blocks", "unit", "`split`");
    }
    check_clients(stack)
}

/// Names of clients need certificates, which authorities sign.
fn check_clients(stack: &LiveStack) -> Result<(), String> {
    let secure = stack.serve.as_ref().and_then(|serve| serve.secure.as_ref());
    let Some(index) = stack.tenants.iter().position(|tenant| !tenant.clients.is_empty()) else {
        return Ok(());
    };
    if secure.is_some_and(|secure| secure.authorities.is_some()) {
        return Ok(());
    }
    let found = stack.tenants[index].clients.join("`, `");
    Err(format!(
        "`tenant[{}].clients`: found `{found}`, expected `serve.tls_authorities` beside it, whose \
         certificates name clients",
        index + 1
    ))
}

fn check_policy(stack: &LiveStack) -> Result<(), String> {
    let name = &stack.cache.policy.name;
    let entry = cachewright_policy::entry(name);
    let entry = entry.map_err(|error| format!("`cache.policy`: {error}"))?;
    for need in entry.needs {
        let expected = match need {
            PolicyNeed::Requests | PolicyNeed::Model => continue,
            PolicyNeed::Future | PolicyNeed::Benefit => "a policy that does not need the future",
            PolicyNeed::Code => "a policy of the registry",
        };
        return refuse("cache.policy", name, expected);
    }
    Ok(())
}

fn check_partition(stack: &LiveStack) -> Result<(), String> {
    let name = &stack.cache.partition.name;
    let entry = cachewright_partition::entry(name);
    let entry = entry.map_err(|error| format!("`cache.partition`: {error}"))?;
    for need in entry.needs {
        let expected = match need {
            PartitionNeed::Interval
            | PartitionNeed::Curve
            | PartitionNeed::Goal
            | PartitionNeed::GoalResponses
            | PartitionNeed::Features
            | PartitionNeed::Reuse
            | PartitionNeed::Prices
            | PartitionNeed::Model
            | PartitionNeed::JointModel => continue,
            PartitionNeed::Future => "one that does not need the future, such as `hull`,",
            PartitionNeed::Channels => "one that needs no channels of a drive, such as `static`,",
        };
        return refuse("cache.partition", name, expected);
    }
    Ok(())
}
