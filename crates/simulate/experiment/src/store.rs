//! The result directory: answers kept case by case, so that a sweep can be stopped and continued.
//!
//! For: `cases/KEY.json` (one answer and its time series) and `result.json`. Must never know: what
//! an answer means. A key is made of the versions, the resolved settings and the traces' identity;
//! a changed input has another key, so stale answers are never used.

use crate::folder::{RESULT, make_folder, write_document, write_whole};
use crate::{ExperimentError, VERSION, json};
use cachewright_result::run::RunAnswer;
use cachewright_result::written::SCHEMA_VERSION;
use cachewright_system::{Row, series::QuotaState};
use cachewright_types::seed::mix;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The shape of kept answers; another one, or another schema of documents, makes all of them
/// unknown.
const SHAPE: u32 = 4;

/// Where answers are kept, if anywhere.
pub struct AnswerStore {
    cases: Option<PathBuf>,
    fresh: bool,
    /// Answers written and found so far.
    kept: AtomicUsize,
}

impl AnswerStore {
    /// Whether answers are kept at all.
    pub fn keeps(&self) -> bool {
        self.cases.is_some()
    }

    /// Answers of this run that the folder holds.
    pub fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// Opens (and makes) the directory; with `fresh` old answers are not read. Errors: a file is
    /// in its place, the operating system's.
    pub fn open(out: Option<&Path>, fresh: bool) -> Result<AnswerStore, ExperimentError> {
        let cases = out.map(|out| out.join("cases"));
        if let (Some(out), Some(cases)) = (out, &cases) {
            make_folder(out, cases)?;
        }
        Ok(AnswerStore { cases, fresh, kept: AtomicUsize::new(0) })
    }

    /// The key of a case, from its settings and the facts read from its traces, both as JSON text,
    /// and the fingerprint of their block accesses.
    pub fn key(resolved: &str, tenants: &str, fingerprint: u64) -> String {
        let text =
            format!("{VERSION} {SCHEMA_VERSION} {SHAPE} {resolved} {tenants} {fingerprint:x}");
        let hash = |seed: u64| text.bytes().fold(seed, |hash, byte| mix(hash ^ u64::from(byte)));
        format!("{:016x}{:016x}", hash(1), hash(2))
    }

    /// The answer kept under `key`; one that cannot be read is none.
    pub fn load<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<(T, Vec<Row>)>, ExperimentError> {
        let Some(cases) = self.cases.as_ref().filter(|_| !self.fresh) else { return Ok(None) };
        let path = cases.join(format!("{key}.json"));
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ExperimentError::io(&path, error)),
        };
        let kept: Option<(T, Vec<[u64; 8]>)> = serde_json::from_slice(&bytes).ok();
        self.kept.fetch_add(usize::from(kept.is_some()), Ordering::Relaxed);
        Ok(kept.map(|(answer, rows)| (answer, rows.into_iter().map(row_of).collect())))
    }

    /// Keeps an answer; it appears whole or not at all.
    pub fn save(
        &self,
        key: &str,
        answer: &impl Serialize,
        rows: &[Row],
    ) -> Result<(), ExperimentError> {
        let Some(cases) = &self.cases else { return Ok(()) };
        let rows: Vec<[u64; 8]> = rows.iter().map(columns_of).collect();
        write_whole(&cases.join(format!("{key}.json")), &json::text(&(answer, rows))?)?;
        self.kept.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Writes `result.json`.
    pub fn write_result(&self, out: &Path, result: &RunAnswer) -> Result<(), ExperimentError> {
        write_document(&out.join(RESULT), result)
    }
}

fn columns_of(row: &Row) -> [u64; 8] {
    let (window, tenant) = (u64::from(row.window), u64::from(row.tenant));
    let (held, quota) = (row.occupancy_blocks, row.quota_blocks);
    [window, row.time_ns, tenant, row.accesses, row.hits, held, quota, row.state as u64]
}

fn row_of([window, time_ns, tenant, accesses, hits, held, quota, state]: [u64; 8]) -> Row {
    Row {
        window: window as u32,
        time_ns,
        tenant: tenant as u32,
        accesses,
        hits,
        occupancy_blocks: held,
        quota_blocks: quota,
        state: QuotaState::ALL.get(state as usize).copied().unwrap_or_default(),
    }
}
