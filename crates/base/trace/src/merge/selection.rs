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
    /// Only these volumes, if any are named.
    volume: Option<VolumeChoice>,
    /// What every read and write becomes; then nothing else is taken.
    operation: Option<Op>,
    /// Share of the volume's chunks.
    sample: f64,
}

/// The volumes that a text names: one, or several with commas. Names of volumes may have commas
/// themselves (`8,0` is a device of blktrace): what stands between any two commas is a name.
#[derive(Clone, Debug)]
pub struct VolumeChoice {
    text: String,
    parts: Vec<String>,
    /// Whether a volume of the trace has each part in its name.
    met: Vec<bool>,
    /// Whether each volume of the trace is chosen, by number.
    chosen: Vec<bool>,
}

impl VolumeChoice {
    /// What `text` names.
    pub fn new(text: &str) -> VolumeChoice {
        let parts: Vec<String> = text.split(',').map(|part| part.trim().to_owned()).collect();
        let met = vec![false; parts.len()];
        VolumeChoice { text: text.to_owned(), parts, met, chosen: Vec::new() }
    }

    /// Which volumes are chosen, by number, of those met so far.
    pub fn among(&mut self, volumes: &[String]) -> &[bool] {
        for name in &volumes[self.chosen.len()..] {
            let own: Vec<&str> = name.split(',').map(str::trim).collect();
            let mut chosen = *name == self.text;
            self.met.iter_mut().for_each(|met| *met |= chosen);
            for start in 0..=self.parts.len().saturating_sub(own.len()) {
                let end = (start + own.len()).min(self.parts.len());
                if self.parts[start..end].iter().map(String::as_str).eq(own.iter().copied()) {
                    chosen = true;
                    self.met[start..end].fill(true);
                }
            }
            self.chosen.push(chosen);
        }
        &self.chosen
    }

    /// The trace has ended. Errors: a volume that it has not, and the nearest that it has.
    pub fn refuse_unknown(&mut self, volumes: &[String]) -> Result<(), TraceError> {
        self.among(volumes);
        let Some(part) = self.met.iter().position(|met| !met) else { return Ok(()) };
        let is_any_met = self.met.contains(&true);
        let name = if is_any_met { &self.parts[part] } else { &self.text };
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

impl Selection {
    /// See [`TenantInput`](super::TenantInput).
    pub fn new(volume: Option<String>, operation: Option<Op>, sample: f64) -> Selection {
        let volume = volume.map(|text| VolumeChoice::new(&text));
        Selection { volume, operation, sample }
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

    /// Keeps the records of the chosen volumes.
    fn choose_volume(&mut self, batch: &mut Batch, start: usize, volumes: &[String]) {
        let Some(choice) = &mut self.volume else { return };
        let chosen = choice.among(volumes);
        keep(batch, start, |record| chosen[record.volume as usize]);
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
    pub fn refuse_unknown_volume(&mut self, volumes: &[String]) -> Result<(), TraceError> {
        self.volume.as_mut().map_or(Ok(()), |choice| choice.refuse_unknown(volumes))
    }
}

/// Keeps the records from `start` on that are `wanted`.
fn keep(batch: &mut Batch, start: usize, wanted: impl Fn(&Record) -> bool) {
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
