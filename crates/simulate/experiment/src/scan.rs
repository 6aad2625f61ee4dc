//! One pass over a trace file, or over one of its volumes.
//!
//! For: what looks at a trace without a stack. Must never know: what is looked for. Units:
//! nanoseconds; times are since the first chosen record.

use crate::ExperimentError;
use crate::progress::{OnProgress, Progress};
use cachewright_trace::merge::VolumeChoice;
use cachewright_trace::{Batch, OpenOptions, Record, Skipped, formats};
use std::path::Path;

/// Requests decoded at a time.
const BATCH: usize = 8192;

/// Which requests of a trace.
#[derive(Clone, Debug, Default)]
pub struct TraceChoice {
    /// How to open it.
    pub open: OpenOptions,
    /// Only this volume, or these with commas.
    pub volume: Option<String>,
}

/// What a pass found beside records.
pub struct Scanned {
    /// The names of all volumes.
    pub volumes: Vec<String>,
    /// Records that could not be read.
    pub skipped: Skipped,
    /// What was done to the trace beside reading it, in sentences.
    pub notes: Vec<String>,
    /// Whether records carry times.
    pub has_times: bool,
}

/// Hands every chosen record with its time to `hear`. Errors: a trace that cannot be read, no such
/// volume, what `hear` refuses, a cancelled pass.
pub fn scan(
    path: &Path,
    choice: &TraceChoice,
    progress: OnProgress<'_>,
    mut hear: impl FnMut(&Record, u64) -> Result<(), ExperimentError>,
) -> Result<Scanned, ExperimentError> {
    let mut reader = formats::open(path, &choice.open)?;
    let total = reader.requests_hint();
    let mut chosen = choice.volume.as_deref().map(VolumeChoice::new);
    let mut batch = Batch::default();
    let (mut done, mut first) = (0, None);
    loop {
        batch.clear();
        let count = reader.read(&mut batch, BATCH)?;
        if count == 0 {
            break;
        }
        let chosen = chosen.as_mut().map(|chosen| chosen.among(reader.volumes()));
        for record in batch.iter() {
            if chosen.is_none_or(|chosen| chosen[record.volume as usize]) {
                let first = *first.get_or_insert(record.time_ns);
                hear(&record, record.time_ns.saturating_sub(first))?;
            }
        }
        done += count as u64;
        if !progress(Progress { stage: "reading the trace", done, total }) {
            return Err(ExperimentError::Cancelled);
        }
    }
    if let Some(chosen) = &mut chosen {
        chosen.refuse_unknown(reader.volumes())?;
    }
    Ok(Scanned {
        volumes: reader.volumes().to_vec(),
        skipped: reader.skipped().clone(),
        notes: reader.notes(),
        has_times: reader.has_times(),
    })
}
