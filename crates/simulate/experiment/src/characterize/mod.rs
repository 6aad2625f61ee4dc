//! What runs on a trace's volumes, over time.
//!
//! For: `characterize`, and rows for those who train characterizers. Must never know: how it is
//! drawn, how anyone trains. Units are in the names of the JSON keys; times are since the trace's
//! first request. Source: RC-RNN (Ebrahimi et al.), section 4.2: the last 1,000 requests are judged
//! once a minute. Each volume has classes and a characterizer of its own.

mod every;
mod period;
mod rows;

pub use crate::scan::TraceChoice;
pub use rows::{VolumeRows, rows};

use crate::ExperimentError;
use crate::json::document;
use crate::progress::OnProgress;
use crate::scan::scan;
use cachewright_model::StoredModel;
use cachewright_policy::characterize::{Characterizer, RequestClassifier, boxed};
use cachewright_result::characterize::{CharacterizeAnswer, JudgedPeriod, KindJudgement};
use cachewright_result::written::Written;
use cachewright_trace::Record;
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId};
use every::Every;
use period::{Classified, Period};
use serde_json::Value;
use std::path::Path;

/// How to characterize a trace.
#[derive(Clone, Debug)]
pub struct CharacterizeOptions {
    /// Which requests.
    pub choice: TraceChoice,
    /// How long a period is: a duration with unit, a number of reads and writes, or `auto`: as
    /// long as gives some tens of periods.
    pub every: String,
    /// A model file; its notes say of which characterizer. Without one no kind is said.
    pub model: Option<Vec<u8>>,
}

/// What is kept per volume.
struct VolumeState {
    classes: RequestClassifier,
    characterizer: Option<Box<dyn Characterizer>>,
    /// Whether it asked for anything in the period under way.
    busy: bool,
}

/// Reads a whole trace and says what ran in each period.
pub fn characterize(
    path: &Path,
    options: &CharacterizeOptions,
    progress: OnProgress<'_>,
) -> Result<Value, ExperimentError> {
    let refuse = |message: String| ExperimentError::spec(path, message);
    let every = match every::read(&options.every).map_err(refuse)? {
        Some(every) => every,
        None => every::chosen(path, &options.choice, progress)?,
    };
    let by = options.model.as_deref().map(by).transpose().map_err(refuse)?;
    let model = by.as_deref().zip(options.model.as_deref());
    let kinds = match model {
        Some(model) => with_model(model).map_err(refuse)?.kinds().to_vec(),
        None => Vec::new(),
    };
    let mut study = Study { every, model, volumes: Vec::new(), period: None, done: Vec::new() };
    let mut whole = Period::beginning(0);
    let found = scan(path, &options.choice, progress, |record, time_ns| {
        study.add(record, time_ns, &mut whole).map_err(refuse)
    })?;
    if !found.has_times && matches!(every, Every::Time(_)) {
        let expected = "expected a number of requests, because the trace has no times";
        return Err(refuse(format!("`every`: found `{}`, {expected}", options.every)));
    }
    study.close();
    document(&CharacterizeAnswer {
        written: Written::here(),
        volumes: found.volumes,
        path: path.display().to_string(),
        kinds,
        every: every.text(),
        every_chosen: options.every == every::AUTO,
        total: whole.counts(),
        periods: study.done,
        characterizer: by,
    })
}

/// The characterizer that a model file is of.
fn by(model: &[u8]) -> Result<String, String> {
    let stored = StoredModel::from_bytes(model).map_err(|error| format!("model: {error}"))?;
    let noted = stored.description.notes.get("characterizer").cloned();
    noted.ok_or_else(|| {
        "model: found no note `characterizer`, expected a model of `train kinds`".to_owned()
    })
}

/// A characterizer with its model.
fn with_model((by, model): (&str, &[u8])) -> Result<Box<dyn Characterizer>, String> {
    let mut characterizer = boxed(by, &[]).map_err(|error| format!("model: {error}"))?;
    characterizer.learn(model).map_err(|error| format!("model: {error}"))?;
    Ok(characterizer)
}

/// Periods being gathered.
struct Study<'a> {
    every: Every,
    model: Option<(&'a str, &'a [u8])>,
    volumes: Vec<VolumeState>,
    period: Option<Period>,
    done: Vec<JudgedPeriod>,
}

impl Study<'_> {
    fn add(&mut self, record: &Record, time_ns: u64, whole: &mut Period) -> Result<(), String> {
        let index = record.volume as usize;
        while self.volumes.len() <= index {
            let characterizer = self.model.map(with_model).transpose()?;
            let classes = RequestClassifier::default();
            self.volumes.push(VolumeState { classes, characterizer, busy: false });
        }
        if self.period.as_ref().is_some_and(|period| self.is_over(period, time_ns)) {
            self.close();
        }
        let every = self.every;
        let period = self.period.get_or_insert_with(|| match every {
            Every::Time(Nanos(width)) => Period::beginning(time_ns / width * width),
            Every::Requests(_) => Period::beginning(time_ns),
        });
        let request = request(record, time_ns);
        let volume = &mut self.volumes[index];
        volume.busy = true;
        if let Some(characterizer) = &mut volume.characterizer {
            characterizer.observe(&request);
        }
        let classified = Classified { record, time_ns, class: volume.classes.class(&request) };
        period.add(&classified)?;
        whole.add(&classified)
    }

    fn is_over(&self, period: &Period, time_ns: u64) -> bool {
        match self.every {
            Every::Time(Nanos(width)) => time_ns >= period.start_ns.saturating_add(width),
            Every::Requests(count) => period.accesses() >= count,
        }
    }

    /// Ends the period under way, if there is one, and judges the volumes that were busy in it.
    fn close(&mut self) {
        let Some(period) = self.period.take() else { return };
        let mut judged = Vec::new();
        for (index, volume) in self.volumes.iter_mut().enumerate() {
            let Some(characterizer) = &mut volume.characterizer else { continue };
            if !std::mem::take(&mut volume.busy) {
                continue;
            }
            if let Some(found) = characterizer.classify() {
                judged.push(KindJudgement {
                    volume: index,
                    kind: characterizer.kinds()[found.kind].to_owned(),
                    confidence: found.confidence,
                    scores: found.scores,
                });
            }
        }
        self.done.push(JudgedPeriod { counts: period.counts(), judged });
    }
}

fn request(record: &Record, time_ns: u64) -> Request {
    Request {
        time: Nanos(time_ns),
        offset: Bytes(record.offset_bytes),
        length: Bytes(record.length_bytes),
        op: record.op,
        tenant: TenantId(0),
    }
}

/// Whether a record reads or writes.
fn is_access(record: &Record) -> bool {
    matches!(record.op, Op::Read | Op::Write)
}
