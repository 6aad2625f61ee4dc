//! What became of the blocks of one request, for Python.
//!
//! For: `cachewright.Cache`. Must never know: how anything is decided. Unit: blocks.

use cachewright_cache::any_cache::{CacheAnswer as Found, VolumeBlock};
use cachewright_types::TenantId;
use pyo3::prelude::*;
use std::sync::Arc;

/// Blocks that leave, with the names of their tenants.
type Blocks = Vec<(String, u64)>;
/// What became of the blocks of one request.
#[pyclass(module = "cachewright._native", frozen)]
pub struct Answer {
    found: Found,
    names: Arc<Vec<String>>,
}

impl Answer {
    /// The answer to one request; `names` are those of the tenants.
    pub fn new(found: Found, names: Arc<Vec<String>>) -> Answer {
        Answer { found, names }
    }

    fn named(&self, blocks: &[VolumeBlock]) -> Blocks {
        let name = |tenant: TenantId| self.names.get(tenant.index()).cloned().unwrap_or_default();
        blocks.iter().map(|(tenant, number)| (name(*tenant), *number)).collect()
    }
}

#[pymethods]
impl Answer {
    /// Whether every block of the request was cached.
    #[getter]
    fn hit(&self) -> bool {
        self.found.admitted.is_empty() && self.found.bypassed.is_empty()
    }

    /// Blocks of the request found in the cache.
    #[getter]
    fn hits(&self) -> Vec<u64> {
        self.found.hits.clone()
    }

    /// Blocks that were missing and came in.
    #[getter]
    fn admitted(&self) -> Vec<u64> {
        self.found.admitted.clone()
    }

    /// Blocks that were missing and stay out.
    #[getter]
    fn bypassed(&self) -> Vec<u64> {
        self.found.bypassed.clone()
    }

    /// Blocks to be read from the backing store into the cache.
    #[getter]
    fn fetched(&self) -> Vec<u64> {
        self.found.fetched.clone()
    }

    /// Blocks whose new content goes to the backing store as well.
    #[getter]
    fn written_through(&self) -> Vec<u64> {
        self.found.written_through.clone()
    }

    /// Blocks that left to make room, with their tenants.
    #[getter]
    fn evicted(&self) -> Blocks {
        self.named(&self.found.evicted)
    }

    /// Dirty blocks to be written to the backing store, with their tenants.
    #[getter]
    fn written_back(&self) -> Blocks {
        self.named(&self.found.written_back)
    }

    /// Blocks dropped by a trim or invalidated by a write.
    #[getter]
    fn discarded(&self) -> Vec<u64> {
        self.found.discarded.clone()
    }

    fn __repr__(&self) -> String {
        let found = &self.found;
        let lists = [
            ("hits", &found.hits),
            ("admitted", &found.admitted),
            ("bypassed", &found.bypassed),
            ("fetched", &found.fetched),
            ("written_through", &found.written_through),
            ("discarded", &found.discarded),
        ];
        let lists = lists.into_iter().map(|(name, list)| (name, format!("{list:?}")));
        let leaving = [("evicted", &found.evicted), ("written_back", &found.written_back)];
        let text = |blocks: &Vec<VolumeBlock>| {
            let each = self.named(blocks).into_iter();
            let each: Vec<String> =
                each.map(|(name, block)| format!("('{name}', {block})")).collect();
            format!("[{}]", each.join(", "))
        };
        let leaving = leaving.into_iter().map(|(name, blocks)| (name, text(blocks)));
        let parts = lists.chain(leaving).filter(|(_, text)| text != "[]");
        let parts: Vec<String> = parts.map(|(name, text)| format!("{name}={text}")).collect();
        format!("Answer({})", parts.join(", "))
    }
}

/// How many blocks stand in each list, in the order of the columns.
pub fn counts(found: &Found) -> [usize; 8] {
    [
        found.hits.len(),
        found.admitted.len(),
        found.bypassed.len(),
        found.fetched.len(),
        found.written_through.len(),
        found.evicted.len(),
        found.written_back.len(),
        found.discarded.len(),
    ]
}
