//! The interface to policies whose decisions come from code outside the workspace.
//!
//! For: the policy `python:...` and the glue that runs such code. Must never know: the registry,
//! which language answers. Units: blocks.

use crate::access::Verdict;
use cachewright_types::{BlockId, Value};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// One cache of the code outside. Every error is a sentence without the policy's name.
pub trait ForeignPolicy: Send {
    /// Decides about one access to a block.
    fn access(&mut self, block: BlockId, write: bool) -> Result<Verdict, String>;
    /// Forgets a block, cached or not.
    fn remove(&mut self, block: BlockId) -> Result<(), String>;
    /// Changes the capacity; blocks that leave are appended to `evicted`.
    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) -> Result<(), String>;
}

/// What makes caches of the code outside.
pub trait ForeignClass: Send + Sync {
    /// An empty cache. Errors: what the code says.
    fn make(
        &self,
        capacity_blocks: u32,
        settings: &[(String, Value)],
    ) -> Result<Box<dyn ForeignPolicy>, String>;
    /// Whether its caches can change their capacity.
    fn resizes(&self) -> bool;
    /// Whether its caches can forget a block.
    fn removes(&self) -> bool;
}

/// The first thing that went wrong in any cache of a run.
#[derive(Debug, Default)]
pub struct CodeFault(Mutex<Option<String>>);

impl CodeFault {
    /// Keeps `message` if it is the first.
    pub fn raise(&self, message: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
    }

    /// What went wrong first.
    pub fn message(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Code outside under its name, with the place where its faults go.
#[derive(Clone)]
pub struct ForeignCode {
    /// The name in the stack file.
    pub name: String,
    /// The code.
    pub class: Arc<dyn ForeignClass>,
    /// Where its faults go.
    pub fault: Arc<CodeFault>,
}

impl fmt::Debug for ForeignCode {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "ForeignCode({})", self.name)
    }
}

impl PartialEq for ForeignCode {
    fn eq(&self, other: &ForeignCode) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.class, &other.class)
    }
}
