//! Which records of a trace a tenant takes.
//!
//! For: a volume, a sample, one operation. Must never know: times, other tenants. Units: bytes.

use crate::{Batch, Record, TraceError};
use cachewright_types::seed::mix;
use cachewright_types::{Op, nearest};

/// Bytes of a volume that are in a sample together: neighbours stay neighbours.
const SAMPLED_CHUNK_BYTES: u64 = 1 << 20;

/// What a tenant takes of its trace.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    /// Only this volume, if one is named.
    volume: Option<String>,
    /// What every read and write becomes; then nothing else is taken.
    operation: Option<Op>,
    /// Share of the volume's chunks.
    sample: f64,
    /// A record of the volume was met.
    matched: bool,
}

impl Selection {
    /// See [`TenantInput`](super::TenantInput).
    pub fn new(volume: Option<String>, operation: Option<Op>, sample: f64) -> Selection {
        Selection { volume, operation, sample, matched: false }
    }

    /// Whether every record is taken.
    pub fn takes_all(&self) -> bool {
        self.volume.is_none() && self.operation.is_none() && self.sample >= 1.0
    }

    /// Keeps, of a batch from `start` on, what the tenant takes; `volumes` are those met so far.
    pub fn choose(&mut self, batch: &mut Batch, start: usize, volumes: &[String]) {
        self.choose_volume(batch, start, volumes);
        self.choose_sample(batch, start);
        self.turn(batch, start);
    }

    /// Keeps the records of the chosen volume.
    fn choose_volume(&mut self, batch: &mut Batch, start: usize, volumes: &[String]) {
        let Some(name) = &self.volume else {
            self.matched = true;
            return;
        };
        let Some(chosen) = volumes.iter().position(|volume| volume == name) else {
            truncate(batch, start);
            return;
        };
        let kept = keep(batch, start, |record| record.volume as usize == chosen);
        self.matched |= kept > start;
    }

    /// Keeps the requests that begin in chunks of the sample. A hash of a chunk's number decides,
    /// the same in every run. A flush has no place and stays.
    fn choose_sample(&self, batch: &mut Batch, start: usize) {
        if self.sample >= 1.0 {
            return;
        }
        let max_hash = (self.sample * u64::MAX as f64) as u64;
        let chosen = |record: &Record| {
            record.op == Op::Flush || mix(record.offset_bytes / SAMPLED_CHUNK_BYTES) < max_hash
        };
        keep(batch, start, chosen);
    }

    /// Turns reads and writes into the tenant's operation, if it has one, and drops the rest.
    fn turn(&self, batch: &mut Batch, start: usize) {
        let Some(operation) = self.operation else { return };
        keep(batch, start, |record| matches!(record.op, Op::Read | Op::Write));
        batch.op[start..].fill(operation);
    }

    /// The trace has ended. Errors: a volume that it has not, and the nearest that it has.
    pub fn refuse_unknown_volume(&self, volumes: &[String]) -> Result<(), TraceError> {
        let Some(name) = self.volume.as_ref().filter(|_| !self.matched) else { return Ok(()) };
        let expected = match nearest(name, volumes.iter().map(String::as_str)) {
            Some(near) => format!("a volume of the trace; nearest is `{near}`"),
            None => {
                let some: Vec<&str> = volumes.iter().map(String::as_str).take(20).collect();
                format!("a volume of the trace (it has {}: {})", volumes.len(), some.join(", "))
            }
        };
        Err(TraceError::Option { key: "volume".to_owned(), found: name.clone(), expected })
    }
}

/// Keeps the records from `start` on that are `wanted`; returns how many there are then.
fn keep(batch: &mut Batch, start: usize, wanted: impl Fn(&Record) -> bool) -> usize {
    let mut kept = start;
    for index in start..batch.len() {
        let record = batch.get(index);
        if wanted(&record) {
            batch.time_ns[kept] = record.time_ns;
            batch.offset_bytes[kept] = record.offset_bytes;
            batch.length_bytes[kept] = record.length_bytes;
            batch.op[kept] = record.op;
            batch.volume[kept] = record.volume;
            if let Some(call) = batch.calls.get(index).copied() {
                batch.calls[kept] = call;
            }
            kept += 1;
        }
    }
    truncate(batch, kept);
    kept
}

/// Drops the records of a batch beyond the first `len`.
pub(super) fn truncate(batch: &mut Batch, len: usize) {
    batch.time_ns.truncate(len);
    batch.offset_bytes.truncate(len);
    batch.length_bytes.truncate(len);
    batch.op.truncate(len);
    batch.volume.truncate(len);
    batch.calls.truncate(len);
}
