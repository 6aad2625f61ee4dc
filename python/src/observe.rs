//! A trace observed: `trace report`, and `observe`, whose trace goes on while it is looked at.
//!
//! Two threads of Python can hold an observer: one reads, and may wait for the next request; the
//! other asks for what is known so far, which never waits for a request.

use crate::errors::of_experiment;
use crate::trace::{TracePaths, held, open_options};
use cachewright_experiment::{Observation, ObserveOptions, ObservedSource, Observer, TraceChoice};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<WorkloadObserver>()
}

/// Counts of a trace's requests, whose memory does not grow with the trace.
#[pyclass(module = "cachewright._native", frozen)]
struct WorkloadObserver {
    reading: Mutex<Observer>,
    seen: Mutex<Seen>,
}

/// What was counted, and what the reader knew of the trace by then.
struct Seen {
    observation: Observation,
    source: ObservedSource,
    requests: u64,
}

#[pymethods]
impl WorkloadObserver {
    #[new]
    #[pyo3(signature = (path, format, on_bad_record, options, *, volume, block, memory))]
    fn new(
        py: Python<'_>,
        path: TracePaths,
        format: Option<String>,
        on_bad_record: &str,
        options: BTreeMap<String, String>,
        volume: Option<String>,
        block: String,
        memory: String,
    ) -> PyResult<Self> {
        let (path, open) = path.open(open_options(format, on_bad_record, options)?)?;
        let options = ObserveOptions { choice: TraceChoice { open, volume }, block, memory };
        let opened = py.detach(|| Observer::open(&path, &options));
        let (observer, observation) = opened.map_err(of_experiment)?;
        let mut source = ObservedSource::default();
        observer.describe(&mut source);
        let seen = Seen { observation, source, requests: 0 };
        Ok(WorkloadObserver { reading: Mutex::new(observer), seen: Mutex::new(seen) })
    }

    /// Requests of the trace, where its file says so.
    fn requests_hint(&self) -> PyResult<Option<u64>> {
        Ok(held(&self.reading)?.requests_hint())
    }

    /// Requests counted so far.
    fn requests(&self) -> PyResult<u64> {
        Ok(held(&self.seen)?.requests)
    }

    /// Reads and counts the next requests, `count` at most; returns whether the trace goes on.
    fn advance(&self, py: Python<'_>, count: usize) -> PyResult<bool> {
        py.detach(|| {
            let mut reading = held(&self.reading)?;
            let found = reading.read(count).map_err(of_experiment)?;
            let mut seen = held(&self.seen)?;
            seen.observation.add_all(reading.batch());
            reading.describe(&mut seen.source);
            if found == 0 {
                seen.observation.settle();
            }
            seen.requests += found as u64;
            Ok(found > 0)
        })
    }

    /// Counts what waits for earlier requests: no more will be read.
    fn settle(&self) -> PyResult<()> {
        held(&self.seen)?.observation.settle();
        Ok(())
    }

    /// What is known so far, as JSON.
    fn answer(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let seen = held(&self.seen)?;
            let answer = seen.observation.document(&seen.source).map_err(of_experiment)?;
            Ok(answer.to_string())
        })
    }
}
