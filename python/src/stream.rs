//! A stack's block accesses as numpy columns, for policies written in Python.
//!
//! For: `BlockStream`. Must never know: what consumes it. Columns are block numbers (u32, dense),
//! whether each is a write, and tenants (u16, index into `tenants()`).

use crate::errors::{RunError, of_experiment};
use crate::work;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

type Columns<'py> =
    (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<bool>>, Bound<'py, PyArray1<u16>>);

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BlockStream>()
}

/// Block accesses in order, from the start.
#[pyclass(module = "cachewright._native", frozen)]
struct BlockStream(Mutex<cachewright_experiment::BlockStream>);

impl BlockStream {
    fn held(&self) -> PyResult<MutexGuard<'_, cachewright_experiment::BlockStream>> {
        self.0.lock().map_err(|_| RunError::new_err("this stream failed before; open it again"))
    }
}

#[pymethods]
impl BlockStream {
    #[new]
    #[pyo3(signature = (stack, origin, settings, progress))]
    fn new(
        py: Python<'_>,
        stack: &str,
        origin: PathBuf,
        settings: Vec<(String, String)>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let opened = work::run(py, progress, |note| {
            cachewright_experiment::BlockStream::open(stack, &origin, &settings, note)
        })?;
        Ok(BlockStream(Mutex::new(opened.map_err(of_experiment)?)))
    }

    /// The next accesses, at most `limit`; empty columns at the end.
    fn next<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Columns<'py>> {
        let (ids, writes, tenants) = py.detach(|| {
            let (mut ids, mut flags, mut tenants) = (Vec::new(), Vec::new(), Vec::new());
            self.held()?.next(limit, &mut ids, &mut flags, &mut tenants);
            let writes: Vec<bool> = flags.into_iter().map(|flag| flag != 0).collect();
            Ok::<_, PyErr>((ids, writes, tenants))
        })?;
        Ok((ids.into_pyarray(py), writes.into_pyarray(py), tenants.into_pyarray(py)))
    }

    /// The stack's cache size in blocks.
    fn capacity_blocks(&self) -> PyResult<u32> {
        Ok(self.held()?.capacity_blocks())
    }

    /// Names of the tenants.
    fn tenants(&self) -> PyResult<Vec<String>> {
        Ok(self.held()?.tenants().to_vec())
    }
}
