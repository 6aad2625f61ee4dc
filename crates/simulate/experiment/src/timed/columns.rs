//! What goes with each access of a job's workload, each distinct column of it found once.
//!
//! For: policies that know the future. Must never know: what they make of it. Memory: 4 bytes per
//! access for each column.

use crate::ExperimentError;
use crate::job::Job;
use crate::record::column;
use crate::spec::StackSpec;
use crate::workload::Workload;
use cachewright_policy::{FutureColumn, FutureSlice};
use cachewright_system::FutureKind;

/// The columns of some jobs.
pub(super) struct Columns {
    found: Vec<FutureColumn>,
    /// The column of each job.
    of_job: Vec<usize>,
}

impl Columns {
    /// What is told in each job. Errors: a future that the replay does not have, too many accesses.
    pub(super) fn new(
        workload: &Workload<'_>,
        jobs: &[Job<'_>],
    ) -> Result<Columns, ExperimentError> {
        let mut keys: Vec<(FutureKind, Option<&StackSpec>)> = Vec::new();
        let mut columns = Columns { found: Vec::new(), of_job: Vec::new() };
        for job in jobs {
            let foresight = job.case.needs.future;
            let weighs = foresight == FutureKind::Benefit;
            let key = (foresight, job.case.spec.stack.as_ref().filter(|_| weighs));
            let known = keys.iter().position(|known| *known == key);
            columns.of_job.push(known.unwrap_or(keys.len()));
            if known.is_none() {
                keys.push(key);
                let ratios = if weighs { workload.ratios(job.case)? } else { Vec::new() };
                let found = column(job.case, foresight, workload.recording, &ratios)?;
                columns.found.push(found);
            }
        }
        Ok(columns)
    }

    /// What goes with each access of a job's workload.
    pub(super) fn of_job(&self, job: usize) -> FutureSlice<'_> {
        self.found[self.of_job[job]].as_slice()
    }
}
