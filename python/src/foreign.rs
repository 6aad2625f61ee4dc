//! Policies written in Python: calls out of a run, and checked answers.
//!
//! For: turning a Python class into the code behind a policy `python:...`. Must never know: caches'
//! rules, which the policy room checks. An exception becomes a sentence for the run and is kept, so
//! that it can be given as the cause of the `PolicyError` that ends it.

use crate::errors::{PolicyError, of_experiment};
use cachewright_experiment::{ExperimentError, ForeignLoader, ForeignPolicies};
use cachewright_policy::{ForeignClass, ForeignPolicy, Verdict as Decision};
use cachewright_types::{BlockId, Value};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Characters of an unfit answer that a message shows.
const SHOWN: usize = 60;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Verdict>()
}

/// What a policy decided about one access.
#[pyclass(module = "cachewright._native", frozen)]
pub struct Verdict(Decision);

#[pymethods]
impl Verdict {
    /// The block was cached.
    #[classattr]
    #[pyo3(name = "HIT")]
    fn hit() -> Verdict {
        Verdict(Decision::Hit)
    }

    /// The block was not cached and stays out.
    #[classattr]
    #[pyo3(name = "BYPASS")]
    fn bypass() -> Verdict {
        Verdict(Decision::Bypass)
    }

    /// The block was not cached and now is; `evicted` left for it.
    #[staticmethod]
    #[pyo3(signature = (evicted=None))]
    fn admit(evicted: Option<u32>) -> Verdict {
        Verdict(Decision::Admit { evicted: evicted.map(BlockId) })
    }

    fn __repr__(&self) -> String {
        match self.0 {
            Decision::Hit => "Verdict.HIT".to_owned(),
            Decision::Bypass => "Verdict.BYPASS".to_owned(),
            Decision::Admit { evicted: None } => "Verdict.admit()".to_owned(),
            Decision::Admit { evicted: Some(block) } => format!("Verdict.admit({})", block.0),
        }
    }
}

/// The first exception of any policy of a run.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// The Python function that finds policies by name, for one run.
pub struct Loader {
    raised: Raised,
    policies: ForeignPolicies,
}

impl Loader {
    /// A loader that calls `load(name, origin)`; without one no policy is found.
    pub fn new(load: Option<Py<PyAny>>) -> Loader {
        let raised = Raised::default();
        let policies = match load {
            Some(load) => {
                let raised = Arc::clone(&raised);
                ForeignPolicies::new(Arc::new(Finder { load, raised }))
            }
            None => ForeignPolicies::default(),
        };
        Loader { raised, policies }
    }

    /// What a run is given.
    pub fn policies(&self) -> ForeignPolicies {
        self.policies.clone()
    }

    /// The exception for an error of a run, with the policy's own exception as its cause.
    pub fn error(&self, py: Python<'_>, error: ExperimentError) -> PyErr {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        let error = match error {
            ExperimentError::Policy(message) => PolicyError::new_err(message),
            other => of_experiment(other),
        };
        match raised {
            // The user stopped the policy, which did nothing wrong.
            Some(stopped) if stopped.is_instance_of::<PyKeyboardInterrupt>(py) => stopped,
            raised => {
                error.set_cause(py, raised);
                error
            }
        }
    }
}

/// Keeps an exception and says what it was: its kind, its words, its file and line.
fn described(py: Python<'_>, error: PyErr, raised: &Raised) -> String {
    let kind = error.get_type(py).name().map_or("an exception".to_owned(), |n| n.to_string());
    let words = error.value(py).to_string();
    let place = place(py, &error).unwrap_or_default();
    raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    let words = if words.is_empty() { words } else { format!(": {words}") };
    format!("{kind}{words}{place}")
}

/// The file and line of the innermost Python call of an exception.
fn place(py: Python<'_>, error: &PyErr) -> Option<String> {
    let mut trace = error.traceback(py)?.into_any();
    while let Ok(next) = trace.getattr("tb_next")
        && !next.is_none()
    {
        trace = next;
    }
    let line: u32 = trace.getattr("tb_lineno").ok()?.extract().ok()?;
    let code = trace.getattr("tb_frame").ok()?.getattr("f_code").ok()?;
    let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
    if file.starts_with('<') {
        return None;
    }
    let file = Path::new(&file).file_name()?.to_string_lossy().into_owned();
    Some(format!(" ({file}, line {line})"))
}

struct Finder {
    load: Py<PyAny>,
    raised: Raised,
}

impl ForeignLoader for Finder {
    fn load(&self, name: &str, origin: &Path) -> Result<Arc<dyn ForeignClass>, String> {
        Python::attach(|py| {
            let call = match self.load.bind(py).call1((name, origin)) {
                Ok(call) => call.unbind(),
                Err(error) if error.is_instance_of::<crate::errors::SpecError>(py) => {
                    return Err(error.value(py).to_string());
                }
                Err(error) => {
                    return Err(format!("`{name}`: {}", described(py, error, &self.raised)));
                }
            };
            let class = Class { call, raised: Arc::clone(&self.raised), has: OnceLock::new() };
            Ok(Arc::new(class) as Arc<dyn ForeignClass>)
        })
    }

    fn around_thread(&self, work: &mut (dyn FnMut() + Send)) {
        // The interpreter makes a state for each thread that it is called from, and drops it with
        // the outermost call. Held around the thread, it is made once and not at each access.
        Python::attach(|py| py.detach(work));
    }
}

/// A class, or a function that makes objects.
struct Class {
    call: Py<PyAny>,
    raised: Raised,
    /// Whether its objects have `resize` and `remove`, known with the first.
    has: OnceLock<[bool; 2]>,
}

impl Class {
    fn object(
        &self,
        py: Python<'_>,
        capacity_blocks: u32,
        settings: &[(String, Value)],
    ) -> PyResult<Result<Object, String>> {
        let keywords = PyDict::new(py);
        for (key, value) in settings {
            match value {
                Value::Int(number) => keywords.set_item(key, number)?,
                Value::Float(number) => keywords.set_item(key, number)?,
                Value::Bool(flag) => keywords.set_item(key, flag)?,
                Value::Text(text) => keywords.set_item(key, text)?,
                // Schemes have no such settings.
                other => keywords.set_item(key, other.to_string())?,
            }
        }
        let made = self.call.bind(py).call((capacity_blocks,), Some(&keywords))?;
        let method = |name: &str| Ok::<_, PyErr>(made.getattr_opt(name)?.map(Bound::unbind));
        let (access, resize, remove) = (method("access")?, method("resize")?, method("remove")?);
        let Some(access) = access else {
            let kind = made.get_type().name()?;
            return Ok(Err(format!(
                "found an object of type `{kind}` without a method `access`, expected \
                 `access(block, write)`"
            )));
        };
        let _ = self.has.set([resize.is_some(), remove.is_some()]);
        let raised = Arc::clone(&self.raised);
        Ok(Ok(Object { access, resize, remove, raised }))
    }

    fn has(&self, which: usize) -> bool {
        self.has.get().is_some_and(|has| has[which])
    }
}

impl ForeignClass for Class {
    fn make(
        &self,
        capacity_blocks: u32,
        settings: &[(String, Value)],
    ) -> Result<Box<dyn ForeignPolicy>, String> {
        Python::attach(|py| match self.object(py, capacity_blocks, settings) {
            Ok(made) => made.map(|object| Box::new(object) as Box<dyn ForeignPolicy>),
            Err(error) => Err(described(py, error, &self.raised)),
        })
    }

    fn resizes(&self) -> bool {
        self.has(0)
    }

    fn removes(&self) -> bool {
        self.has(1)
    }
}

/// One cache: the bound methods of a Python object.
struct Object {
    access: Py<PyAny>,
    resize: Option<Py<PyAny>>,
    remove: Option<Py<PyAny>>,
    raised: Raised,
}

/// An unfit answer in a few characters.
fn shown(found: &Bound<'_, PyAny>) -> String {
    let text = found.repr().map_or("an object without a text".to_owned(), |text| text.to_string());
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

impl ForeignPolicy for Object {
    fn access(&mut self, block: BlockId, write: bool) -> Result<Decision, String> {
        Python::attach(|py| {
            let found = self.access.bind(py).call1((block.0, write));
            let found = found.map_err(|error| described(py, error, &self.raised))?;
            match found.cast::<Verdict>() {
                Ok(verdict) => Ok(verdict.get().0),
                Err(_) => {
                    let found = shown(&found);
                    Err(format!("returned {found}, expected a `cachewright.Verdict`"))
                }
            }
        })
    }

    fn remove(&mut self, block: BlockId) -> Result<(), String> {
        let Some(remove) = &self.remove else {
            return Err("found no such method, expected `remove(block)`".to_owned());
        };
        Python::attach(|py| match remove.bind(py).call1((block.0,)) {
            Ok(_) => Ok(()),
            Err(error) => Err(described(py, error, &self.raised)),
        })
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) -> Result<(), String> {
        let Some(resize) = &self.resize else {
            return Err("found no such method, expected `resize(capacity)`".to_owned());
        };
        Python::attach(|py| {
            let found = resize.bind(py).call1((capacity_blocks,));
            let found = found.map_err(|error| described(py, error, &self.raised))?;
            let blocks: Vec<u32> = found.extract().map_err(|_| {
                let expected = "expected a list of the blocks that leave, first out first";
                format!("returned {}, {expected}", shown(&found))
            })?;
            evicted.extend(blocks.into_iter().map(BlockId));
            Ok(())
        })
    }
}
