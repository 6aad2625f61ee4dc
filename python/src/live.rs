//! A live cache for Python, one request at a time or a batch of columns.
//!
//! For: `cachewright.Cache`. Must never know: how anything is decided. Units: bytes at the border,
//! blocks in answers. One thread at a time: a call while another is under way is refused.

mod answer;

use self::answer::Answer;
use crate::errors::{RunError, SpecError};
use crate::foreign::Loader;
use cachewright_cache::any_cache::{self, CacheAnswer as Found, CacheParts, MAX_POOL_BLOCKS};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_experiment::ExperimentError;
use cachewright_experiment::spec;
use cachewright_types::declare::ValueKind;
use cachewright_types::{
    Bytes, Nanos, Op, Request, Seed, Size, TenantId, Value, parse_bytes, parse_size,
};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// Blocks of one request, at most: its answer names each of them.
const MAX_REQUEST_BLOCKS: u64 = 1 << 22;
/// Tenants, at most.
const MAX_TENANTS: usize = 1 << 16;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Answer>()?;
    module.add_class::<LiveCache>()
}

/// One number per request and kind of block.
type Counted<'py> = Vec<Bound<'py, PyArray1<u32>>>;

struct Held {
    cache: Box<dyn any_cache::AnyCache>,
    shared: bool,
}

/// A cache that decides about requests as they come.
#[pyclass(module = "cachewright._native", frozen)]
struct LiveCache {
    held: Mutex<Held>,
    names: Arc<Vec<String>>,
    loader: Loader,
    block_bytes: u64,
}

fn refused(key: &str, found: &str, expected: &str) -> PyErr {
    SpecError::new_err(format!("`{key}`: found `{found}`, expected {expected}"))
}

/// A capacity in blocks.
fn blocks(text: &str, block_bytes: u64) -> PyResult<u32> {
    let refuse = |expected: &str| refused("capacity", text, expected);
    let size: Size =
        parse_size(text).map_err(|_| refuse("a size such as `64MiB` or `4096 blocks`"))?;
    let blocks = match size {
        Size::Blocks(blocks) => blocks,
        Size::Bytes(bytes) => bytes.0 / block_bytes,
        Size::WorkingSetPercent(_) => {
            return Err(refuse("a size: a live cache knows no working set"));
        }
    };
    let fits = u32::try_from(blocks).ok().filter(|blocks| *blocks <= MAX_POOL_BLOCKS);
    fits.ok_or_else(|| refuse(&format!("at most {MAX_POOL_BLOCKS} blocks")))
}

/// How the capacities divide a cache, and whether all tenants share one.
fn divided(capacities: &[String], tenants: usize, block_bytes: u64) -> PyResult<(bool, Quotas)> {
    let quotas: PyResult<Vec<u32>> =
        capacities.iter().map(|text| blocks(text, block_bytes)).collect();
    match quotas?.as_slice() {
        [all] => Ok((true, Quotas::Shared(*all))),
        each if each.len() == tenants => Ok((false, Quotas::PerTenant(each.to_vec()))),
        each => {
            let expected = format!("1, or {tenants} as tenants");
            Err(refused("capacity", &each.len().to_string(), &expected))
        }
    }
}

/// Refuses columns of another length than that of `op`.
fn alike(len: usize, lens: &[(&str, usize)]) -> PyResult<()> {
    match lens.iter().find(|(_, found)| *found != len) {
        None => Ok(()),
        Some((name, found)) => Err(refused(name, &found.to_string(), &format!("{len} as in `op`"))),
    }
}

impl LiveCache {
    fn held(&self) -> PyResult<MutexGuard<'_, Held>> {
        // Waiting for the lock could wait for a Python policy that waits for this thread.
        self.held.try_lock().map_err(|_| {
            RunError::new_err("this cache is in use; expected one call at a time on one cache")
        })
    }

    /// Refuses to go on with a cache whose Python policy failed.
    fn sound(&self, py: Python<'_>) -> PyResult<()> {
        let checked = self.loader.policies().checked(Ok(()));
        checked.map_err(|error: ExperimentError| self.loader.error(py, error))
    }

    /// The request, if it is one.
    fn request(
        &self,
        op: u8,
        offset: u64,
        length: u64,
        tenant: u16,
        time: u64,
    ) -> PyResult<Request> {
        let op = Op::from_number(op).ok_or_else(|| {
            refused("op", &op.to_string(), "0 (read), 1 (write), 2 (trim) or 3 (flush)")
        })?;
        if length == 0 && op != Op::Flush {
            return Err(refused("length", "0", "at least one byte"));
        }
        let limit = MAX_REQUEST_BLOCKS * self.block_bytes;
        if matches!(op, Op::Read | Op::Write) && length > limit {
            let expected = format!("at most {limit} bytes in one request");
            return Err(refused("length", &length.to_string(), &expected));
        }
        if usize::from(tenant) >= self.names.len() {
            let expected = format!("less than {}", self.names.len());
            return Err(refused("tenant", &tenant.to_string(), &expected));
        }
        Ok(Request {
            time: Nanos(time),
            offset: Bytes(offset),
            length: Bytes(length),
            op,
            tenant: TenantId(tenant),
        })
    }
}

#[pymethods]
impl LiveCache {
    /// `capacities` is one for all tenants, or one for each.
    #[new]
    #[pyo3(signature = (capacities, policy, names, *, block, write, seed, load))]
    fn new(
        py: Python<'_>,
        capacities: Vec<String>,
        policy: &str,
        names: Vec<String>,
        block: &str,
        write: &str,
        seed: u64,
        load: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let size = parse_bytes(block).ok();
        let size =
            size.filter(|size| size.0.is_power_of_two() && (512..=1 << 30).contains(&size.0));
        let expected = "a power of two from 512B to 1GiB";
        let block_bytes = size.ok_or_else(|| refused("block", block, expected))?.0;
        let modes = WriteMode::words().join(", ");
        let mode = WriteMode::read(&Value::Text(write.to_owned()));
        let mode = mode.map_err(|_| refused("write", write, &modes))?;
        if names.is_empty() || names.len() > MAX_TENANTS {
            let found = names.len().to_string();
            return Err(refused("tenants", &found, &format!("1 to {MAX_TENANTS} tenants")));
        }
        let named = spec::scheme_of_option("policy", policy).map_err(SpecError::new_err)?;
        let refuse = |error: String| SpecError::new_err(format!("`policy`: {error}"));
        let loader = Loader::new(load);
        let code = loader.policies().find(&named, Path::new("")).map_err(refuse)?;
        let (shared, quotas) = divided(&capacities, names.len(), block_bytes)?;
        let cache = any_cache::open(&CacheParts {
            policy: (&named.name, &named.pairs),
            code: code.as_ref(),
            tenants: names.len(),
            quotas,
            mode,
            block_shift: block_bytes.trailing_zeros(),
            seed: Seed(seed),
        });
        let cache = cache.map_err(|error| refuse(error.to_string()))?;
        let (names, held) = (Arc::new(names), Mutex::new(Held { cache, shared }));
        let made = LiveCache { held, names, loader, block_bytes };
        made.sound(py)?;
        Ok(made)
    }

    /// Decides about a request (0 read, 1 write, 2 trim, 3 flush).
    fn decide(
        &self,
        py: Python<'_>,
        op: u8,
        offset: u64,
        length: u64,
        tenant: u16,
        time_ns: u64,
    ) -> PyResult<Answer> {
        let request = self.request(op, offset, length, tenant, time_ns)?;
        self.sound(py)?;
        let mut found = Found::default();
        self.held()?.cache.decide(&request, &mut found);
        self.sound(py)?;
        Ok(Answer::new(found, Arc::clone(&self.names)))
    }

    /// Decides about many requests in order; one column of counts per list of an answer.
    fn decide_all<'py>(
        &self,
        py: Python<'py>,
        op: PyReadonlyArray1<'_, u8>,
        offset: PyReadonlyArray1<'_, u64>,
        length: PyReadonlyArray1<'_, u64>,
        tenant: PyReadonlyArray1<'_, u16>,
        time_ns: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<Counted<'py>> {
        let (op, offset, length) = (op.as_array(), offset.as_array(), length.as_array());
        let (tenant, time_ns) = (tenant.as_array(), time_ns.as_array());
        let lens = [
            ("offset_bytes", offset.len()),
            ("length_bytes", length.len()),
            ("tenant", tenant.len()),
            ("time_ns", time_ns.len()),
        ];
        alike(op.len(), &lens)?;
        let request =
            |at: usize| self.request(op[at], offset[at], length[at], tenant[at], time_ns[at]);
        let requests: PyResult<Vec<Request>> = (0..op.len())
            .map(|at| {
                let named =
                    |error: PyErr| SpecError::new_err(format!("request {at}: {}", error.value(py)));
                request(at).map_err(named)
            })
            .collect();
        let requests = requests?;
        self.sound(py)?;
        let columns = py.detach(|| {
            let mut held = self.held()?;
            let mut found = Found::default();
            let mut columns: [Vec<u32>; 8] = Default::default();
            for request in &requests {
                held.cache.decide(request, &mut found);
                if !self.loader.policies().is_sound() {
                    break;
                }
                for (column, count) in columns.iter_mut().zip(answer::counts(&found)) {
                    column.push(count as u32);
                }
            }
            Ok::<_, PyErr>(columns)
        })?;
        self.sound(py)?;
        Ok(columns.into_iter().map(|column| column.into_pyarray(py)).collect())
    }

    /// Changes the capacities; the blocks that leave stand in the answer.
    fn resize(&self, py: Python<'_>, capacities: Vec<String>) -> PyResult<Answer> {
        let (shared, quotas) = divided(&capacities, self.names.len(), self.block_bytes)?;
        self.sound(py)?;
        let mut held = self.held()?;
        let mut found = Found::default();
        if shared != held.shared || !held.cache.set_quotas(&quotas, &mut found) {
            let expected = if held.shared { 1 } else { self.names.len() };
            let expected = format!("{expected}, as when the cache was made");
            return Err(refused("capacity", &capacities.len().to_string(), &expected));
        }
        drop(held);
        self.sound(py)?;
        Ok(Answer::new(found, Arc::clone(&self.names)))
    }

    /// Whether a block is cached.
    fn contains(&self, tenant: u16, block: u64) -> PyResult<bool> {
        let known = usize::from(tenant) < self.names.len();
        Ok(known && self.held()?.cache.contains(TenantId(tenant), block))
    }

    /// Counters of a tenant by name, blocks held, blocks allowed.
    fn counters(&self, tenant: u16) -> PyResult<Vec<(&'static str, u64)>> {
        if usize::from(tenant) >= self.names.len() {
            let expected = format!("less than {}", self.names.len());
            return Err(refused("tenant", &tenant.to_string(), &expected));
        }
        let (held, tenant) = (self.held()?, TenantId(tenant));
        let counts = held.cache.counts(tenant);
        Ok(vec![
            ("reads", counts.reads),
            ("read_hits", counts.read_hits),
            ("writes", counts.writes),
            ("write_hits", counts.write_hits),
            ("read_admissions", counts.read_admissions),
            ("write_admissions", counts.write_admissions),
            ("evictions", counts.evictions),
            ("writebacks", counts.writebacks),
            ("invalidations", counts.invalidations),
            ("requests", counts.requests),
            ("request_hits", counts.request_hits),
            ("held_blocks", held.cache.occupancy(tenant).into()),
            ("capacity_blocks", held.cache.quota(tenant).into()),
        ])
    }

    /// Dirty blocks of all tenants.
    fn dirty_blocks(&self) -> PyResult<u64> {
        Ok(self.held()?.cache.dirty_blocks())
    }

    /// Checks every invariant. Errors: the one that is broken.
    fn audit(&self) -> PyResult<()> {
        self.held()?.cache.audit().map_err(RunError::new_err)
    }
}
