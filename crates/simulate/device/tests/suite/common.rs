//! What the tests of devices share: driving a device and checking what must always hold.

use cachewright_device::{AnyDevice, Command, Completion, Device, model};
use cachewright_types::Value;
use cachewright_types::{Bytes, Nanos, Op, TenantId};

/// A device by name with some parameters set as text.
pub fn device(name: &str, pairs: &[(&str, &str)]) -> AnyDevice {
    let pairs: Vec<_> =
        pairs.iter().map(|(key, text)| ((*key).to_owned(), Value::read(text))).collect();
    model(name).unwrap().build(&pairs).unwrap()
}

/// A command of the only tenant.
pub fn command(tag: u64, op: Op, offset: u64, length: u64) -> Command {
    let (offset, length) = (Bytes(offset), Bytes(length));
    Command { tag, op, offset, length, tenant: TenantId(0) }
}

/// Advances to the next completion. Panics: nothing is outstanding, a completion's parts do not add
/// up, or time goes back.
pub fn next(device: &mut dyn Device, done: &mut Vec<Completion>) -> Nanos {
    let due = device.next_due().expect("something is outstanding");
    let before = done.len();
    device.advance(due, done);
    for one in &done[before..] {
        assert_eq!(one.spent.total_ns(), one.finished.0 - one.submitted.0, "{one:?}");
        assert!(one.finished <= due);
    }
    due
}

/// Keeps `depth` commands under way until `commands` are through; returns the completions.
pub fn saturate(
    device: &mut dyn Device,
    depth: usize,
    commands: impl IntoIterator<Item = Command>,
) -> Vec<Completion> {
    let mut commands = commands.into_iter();
    let mut done = Vec::new();
    for first in commands.by_ref().take(depth) {
        device.submit(Nanos(0), first);
    }
    while device.outstanding() > 0 {
        let before = done.len();
        let now = next(device, &mut done);
        for _ in before..done.len() {
            if let Some(more) = commands.next() {
                device.submit(now, more);
            }
        }
    }
    done
}
