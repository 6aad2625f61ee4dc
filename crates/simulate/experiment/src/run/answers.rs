//! The answers of a run while they come in, and the result they make.
//!
//! For: cases that end in any order, beside what stands before them. Must never know: how a case is
//! run, what is kept of it. Invariant: a case has one answer, at its index.

use super::RunOptions;
use crate::case::Case;
use crate::record::RecordedTenants;
use crate::result;
use crate::series::{self, Rows};
use crate::spec::{full_key, resolved};
use crate::store::AnswerStore;
use crate::throughput;
use crate::timed::regions;
use crate::{ExperimentError, Spec};
use cachewright_result::case::Case as CaseAnswer;
use cachewright_result::facts::TenantFacts;
use cachewright_result::run::{RunAnswer, TenantCurve, Workload};
use cachewright_result::written::Written;
use cachewright_system::{LaneResult, Row};

/// A case's answer and its time series, or why there is none.
pub(super) type CaseResult = Result<(CaseAnswer, Vec<Row>), ExperimentError>;

/// The answers that a run has so far.
pub(super) struct RunAnswers {
    answers: Vec<Option<CaseAnswer>>,
    rows: Rows,
    /// Answers that were kept from before.
    reused: usize,
    /// From the first recording.
    head: Option<AnswerHead>,
}

/// What stands before the cases in an answer.
#[derive(Default)]
struct AnswerHead {
    tenants: Vec<TenantFacts>,
    workload: Workload,
    curves: Vec<TenantCurve>,
}

impl RunAnswers {
    /// None yet of so many cases.
    pub(super) fn new(cases: usize) -> RunAnswers {
        RunAnswers { answers: vec![None; cases], rows: Vec::new(), reused: 0, head: None }
    }

    /// Takes a case's answer into the result.
    pub(super) fn take(&mut self, case: &Case, answer: CaseAnswer, rows: Vec<Row>) {
        self.answers[case.index] = Some(answer);
        let index = case.index as u32;
        self.rows.extend(rows.into_iter().map(|row| (index, row)));
    }

    /// Takes an answer that was kept from before.
    pub(super) fn reuse(&mut self, case: &Case, mut answer: CaseAnswer, rows: Vec<Row>) {
        // The same settings may be written, numbered and varied otherwise today.
        answer.case = case.index;
        answer.settings = result::settings(case);
        self.reused += 1;
        self.take(case, answer, rows);
    }

    /// Whether it is known what stands before the cases.
    pub(super) fn has_head(&self) -> bool {
        self.head.is_some()
    }

    /// Notes what stands before the cases, from the first recording.
    pub(super) fn set_head(
        &mut self,
        recorded: &RecordedTenants,
        first: &Case,
        lru: &[LaneResult],
    ) {
        let names = std::iter::once("all")
            .chain(first.spec.tenants.iter().map(|tenant| tenant.name.as_str()));
        let curves = names.zip(lru).filter_map(|(name, result)| {
            let points = result::curve_points(&result.curves.first()?.all);
            Some(TenantCurve { tenant: name.to_owned(), points })
        });
        let workload = result::workload(&recorded.recording, first.spec.cache.block.0);
        let (tenants, curves) = (recorded.tenants.clone(), curves.collect());
        self.head = Some(AnswerHead { tenants, workload, curves });
    }

    /// Puts the result together and writes it.
    pub(super) fn finish(
        mut self,
        store: &AnswerStore,
        spec: &Spec,
        options: &RunOptions,
    ) -> Result<RunAnswer, ExperimentError> {
        self.rows.sort_by_key(|(case, row)| (*case, row.window, row.tenant));
        let AnswerHead { tenants, workload, curves } = self.head.take().unwrap_or_default();
        let mut answer = RunAnswer {
            written: Written::here(),
            name: spec.name.clone(),
            spec: resolved(spec)?,
            workload,
            tenants,
            varied: options.vary.iter().map(|(key, _)| full_key(key)).collect(),
            cases: self.answers.into_iter().flatten().collect(),
            curves,
            series: None,
            throughput: None,
            rooms: None,
            reused: None,
            series_rows: None,
        };
        let Some(out) = &options.out else {
            answer.series_rows = Some(series::plain_rows(&self.rows));
            return Ok(answer);
        };
        let file = |name: &str| (name.to_owned(), out.join(name));
        let (name, path) = file("series.parquet");
        series::write(&path, &self.rows)?;
        answer.series = Some(name);
        let (name, path) = file("throughput.parquet");
        answer.throughput = throughput::write(&path, &answer.cases)?.then_some(name);
        let (name, path) = file("rooms.parquet");
        answer.rooms = regions::write(&path, &answer.cases)?.then_some(name);
        store.write_result(out, &answer)?;
        // Beside the document: what is written does not depend on what was kept.
        answer.reused = Some(self.reused);
        Ok(answer)
    }
}
