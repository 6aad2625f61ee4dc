//! How a tenant sends its requests, beside their times: its noise, its laps, their kind.
//!
//! For: the keys `noise`, `repeat`, `operation`, `sample` and `request` of `[[tenant]]`. Must never
//! know: how a replay carries them out. Units: nanoseconds. Requests of one kind and noise are
//! those of the tests of Wang et al. (oc-cache), V.

use super::flash::percent;
use super::section::Section;
use super::{ReplaySpec, StackSpec, Stop, TenantSpec};
use cachewright_trace::reader::MAX_REQUEST_RANGE;
use cachewright_types::{Bytes, Nanos, Op};
use serde_json::{Value, json};

/// Shortest mean of a period.
const SHORTEST: Nanos = Nanos(1000);

/// Periods in which a tenant sends, and in which it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseSpec {
    /// Mean length of the first.
    pub on: Nanos,
    /// Mean length of the others.
    pub off: Nanos,
    /// Requests kept under way in those; 0 for silence.
    pub off_depth: u32,
    /// Lengths are exponential; else each is the mean.
    pub exponential: bool,
}

impl NoiseSpec {
    /// The `noise` of a `[[tenant]]` of so many requests under way, if it has one.
    pub fn from_section(
        section: &Section<'_>,
        queue_depth: u32,
    ) -> Result<Option<NoiseSpec>, String> {
        if section.get("noise").is_none() {
            return Ok(None);
        }
        let own = section.table("noise", &["on", "off", "lengths", "off_depth"])?;
        let period = |key: &str| {
            let found = own.get(key).ok_or_else(|| {
                format!("found no `{}`, expected the mean of a period", own.key(key))
            })?;
            let period = own.duration(key, Nanos(0))?;
            let expected = format!("at least {SHORTEST}");
            if period < SHORTEST { Err(own.refuse(key, found, &expected)) } else { Ok(period) }
        };
        let exponential = own.choice("lengths", &["exponential", "fixed"], 0)? == 0;
        let off_depth = own.whole("off_depth", 0, 0..=u64::from(queue_depth))? as u32;
        Ok(Some(NoiseSpec { on: period("on")?, off: period("off")?, off_depth, exponential }))
    }

    /// As in the file.
    pub fn json(self) -> Value {
        let lengths = if self.exponential { "exponential" } else { "fixed" };
        let (on, off) = (self.on.exact(), self.off.exact());
        json!({"on": on, "off": off, "lengths": lengths, "off_depth": self.off_depth})
    }
}

/// The `operation` of a `[[tenant]]`: what all its reads and writes become.
pub fn operation(section: &Section<'_>) -> Result<Option<Op>, String> {
    let found = section.choice("operation", &["as-is", "read", "write"], 0)?;
    Ok([None, Some(Op::Read), Some(Op::Write)].get(found).copied().flatten())
}

/// The `sample` of a `[[tenant]]`: a percentage of its volumes.
pub fn sample(section: &Section<'_>) -> Result<f64, String> {
    let Some(found) = section.get("sample") else { return Ok(1.0) };
    let share = found.as_str().map(|text| percent(&section.key("sample"), text));
    let share = share.and_then(Result::ok).filter(|share| *share <= 1.0);
    share.ok_or_else(|| section.refuse("sample", found, "a share above 0%, to 100%"))
}

/// The `request` of a `[[tenant]]`: its longest read or write, if longer ones are cut.
pub fn request(section: &Section<'_>) -> Result<Option<Bytes>, String> {
    let Some(found) = section.get("request") else { return Ok(None) };
    let bytes = section.bytes("request", Bytes(0))?;
    if MAX_REQUEST_RANGE.contains(&bytes.0) {
        return Ok(Some(bytes));
    }
    Err(section.refuse("request", found, "a size from 512B to 1TiB"))
}

/// An operation as the stack file has it.
pub fn operation_text(operation: Option<Op>) -> &'static str {
    match operation {
        Some(Op::Read) => "read",
        Some(Op::Write) => "write",
        _ => "as-is",
    }
}

/// Checks that the replay of the file can carry it out: a closed loop on devices.
pub fn check(
    replay: &ReplaySpec,
    stack: Option<&StackSpec>,
    tenants: &[TenantSpec],
) -> Result<(), String> {
    let closed = replay.closed && stack.is_some();
    let expected = "expected `replay.loop = \"closed\"` and `[device]` tables";
    for (at, tenant) in tenants.iter().enumerate() {
        let number = at + 1;
        if !closed && tenant.noise.is_some() {
            return Err(format!("`tenant[{number}].noise`: found without them, {expected}"));
        }
        if !closed && tenant.recorded_pauses {
            return Err(format!("`tenant[{number}].pauses`: found `recorded`, {expected}"));
        }
        if !closed && tenant.repeat {
            return Err(format!("`tenant[{number}].repeat`: found without them, {expected}"));
        }
        if tenant.repeat && tenant.recorded_pauses {
            let expected = "expected `think-time` where a trace is repeated";
            return Err(format!("`tenant[{number}].pauses`: found `recorded`, {expected}"));
        }
        if tenant.repeat && tenant.until.is_none() {
            let expected = "expected a time in `stop` or `replay.stop` at which that ends";
            return Err(format!("`tenant[{number}].repeat`: found without an end, {expected}"));
        }
    }
    let share = |tenant: &TenantSpec| matches!(tenant.stop, Some(Stop::Share(_)));
    if let (Some(at), Some(_), false) = (tenants.iter().position(share), replay.stop, replay.closed)
    {
        let (number, expected) = (at + 1, "expected a time, or `replay.loop = \"closed\"`");
        return Err(format!(
            "`tenant[{number}].stop`: found a share and `replay.stop`, {expected}"
        ));
    }
    if stack.is_none() && replay.throughput_window.0 > 0 {
        let expected = "expected `[device]` tables, which give every answer a time";
        return Err(format!("`replay.throughput_window`: found without them, {expected}"));
    }
    Ok(())
}
