//! Policies whose decisions come from code outside the workspace, such as a Python class.
//!
//! For: the name `python:...` in stack files: an object of that code decides, and each answer is
//! checked before the engine sees it. Units: blocks.
//!
//! The set of resident blocks is kept here as well. An answer that contradicts it breaks a rule: a
//! hit on a block that is not cached, an eviction of one, more blocks than the capacity. The first
//! broken rule, or error of the code, is kept in a [`CodeFault`](crate::CodeFault) that the run
//! looks at. From then on the cache answers by itself, so that the engine stays consistent until
//! the run stops. An object of capacity 0 is not called. Its ids are never given to other blocks:
//! what the code remembers of a block cannot be known.

use crate::registry::{Entry, Need, Registered};
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_memory::prefetch;
use cachewright_snapshot::refused;
use cachewright_types::declare::Declared;
use cachewright_types::{BlockId, Key, Seed, SettingError, Value};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// How the names of such policies begin in stack files.
pub const PREFIX: &str = "python:";

/// Whether a policy's name is that of code outside.
pub fn is_foreign(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The settings given in a stack file; only the code knows which it has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignSettings {
    /// By key; each key once.
    pub pairs: Vec<(String, Value)>,
}

impl Declared for ForeignSettings {
    fn keys() -> Vec<Key> {
        Vec::new()
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<(), SettingError> {
        self.pairs.retain(|(known, _)| known != key);
        self.pairs.push((key.to_owned(), value.clone()));
        Ok(())
    }

    fn values(&self) -> Vec<(&'static str, Option<Value>)> {
        Vec::new()
    }

    fn differences(&self, other: &ForeignSettings) -> Vec<&'static str> {
        if self == other { Vec::new() } else { vec![""] }
    }
}

/// A cache whose decisions come from outside. Without code it admits nothing.
pub struct Foreign {
    settings: ForeignSettings,
    code: Option<(Box<dyn ForeignPolicy>, ForeignCode)>,
    resident: Vec<bool>,
    held: u32,
    capacity: u32,
    /// Accesses that the code has decided, for messages.
    accesses: u64,
    failed: bool,
}

impl Foreign {
    /// Keeps what went wrong; from now on the code is not called.
    fn fail(&mut self, message: &str) {
        self.failed = true;
        if let Some((_, code)) = &self.code {
            code.fault.raise(format!("policy `{}`: {message}", code.name));
        }
    }

    /// The object to call, until something goes wrong.
    fn object(&mut self) -> Option<&mut dyn ForeignPolicy> {
        match &mut self.code {
            Some((object, _)) if !self.failed => Some(&mut **object),
            _ => None,
        }
    }

    fn is_resident(&self, block: BlockId) -> bool {
        self.resident.get(block.index()).copied().unwrap_or(false)
    }

    /// Why an answer cannot be, if it cannot.
    fn broken(&self, block: BlockId, verdict: Verdict) -> Option<String> {
        let resident = self.is_resident(block);
        match verdict {
            Verdict::Hit if resident => None,
            Verdict::Hit => Some("a hit on a block that is not cached".to_owned()),
            Verdict::Bypass if resident => Some("a bypass of a block that is cached".to_owned()),
            Verdict::Bypass => None,
            Verdict::Admit { .. } if resident => {
                Some("the admission of a block that is cached already".to_owned())
            }
            Verdict::Admit { evicted: None } if self.held == self.capacity => Some(format!(
                "an admission without an eviction into a cache that holds {} of {} blocks",
                self.held, self.capacity
            )),
            Verdict::Admit { evicted: None } => None,
            Verdict::Admit { evicted: Some(evicted) } if self.is_resident(evicted) => None,
            Verdict::Admit { evicted: Some(evicted) } => {
                Some(format!("the eviction of block {}, which is not cached", evicted.0))
            }
        }
    }

    fn take(&mut self, block: BlockId) -> bool {
        let resident = self.resident.get_mut(block.index()).is_some_and(std::mem::take);
        self.held -= u32::from(resident);
        resident
    }

    fn resident_blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        let each = self.resident.iter().enumerate().filter(|(_, resident)| **resident);
        each.map(|(index, _)| BlockId(index as u32))
    }

    /// Takes the blocks that the code gave up, and as many more as do not fit: none, unless a rule
    /// was broken.
    fn give_up(&mut self, given_up: &[BlockId], evicted: &mut Vec<BlockId>) {
        for block in given_up {
            if self.take(*block) {
                evicted.push(*block);
            } else {
                let found = format!("the eviction of block {}, which is not cached", block.0);
                self.fail(&format!("`resize` returned {found}, expected cached blocks"));
            }
        }
        let over = self.held.saturating_sub(self.capacity);
        if over > 0 {
            let (held, capacity) = (self.held, self.capacity);
            self.fail(&format!(
                "`resize` left {held} blocks in a cache of {capacity}, expected {over} more to \
                 leave"
            ));
            let rest: Vec<BlockId> = self.resident_blocks().take(over as usize).collect();
            for block in rest {
                self.take(block);
                evicted.push(block);
            }
        }
    }
}

impl Registered for Foreign {
    type Settings = ForeignSettings;
    const ENTRY: Entry = Entry {
        name: "python",
        doc: "a Python class decides",
        source: "docs/python.md",
        needs: &[Need::Code],
    };

    fn new(capacity_blocks: u32, settings: &ForeignSettings, _: Seed) -> Self {
        Foreign {
            settings: settings.clone(),
            code: None,
            resident: Vec::new(),
            held: 0,
            capacity: capacity_blocks,
            accesses: 0,
            failed: false,
        }
    }
}

impl PolicyHooks for Foreign {
    fn attach_code(&mut self, code: &ForeignCode) {
        match code.class.make(self.capacity, &self.settings.pairs) {
            Ok(object) => self.code = Some((object, code.clone())),
            Err(error) => {
                let capacity = self.capacity;
                let made = format!("a cache of {capacity} blocks: {error}");
                code.fault.raise(format!("policy `{}`: {made}", code.name));
            }
        }
    }
}

refused!(Foreign: "a policy of code outside");

impl Policy for Foreign {
    fn access(&mut self, access: Access) -> Verdict {
        let block = access.block;
        let resident = self.is_resident(block);
        let stay = if resident { Verdict::Hit } else { Verdict::Bypass };
        if self.capacity == 0 {
            return stay;
        }
        self.accesses += 1;
        let Some(object) = self.object() else { return stay };
        let verdict = match object.access(block, access.write) {
            Ok(verdict) => verdict,
            Err(error) => {
                self.fail(&format!("access {} (block {}): {error}", self.accesses, block.0));
                return stay;
            }
        };
        if let Some(broken) = self.broken(block, verdict) {
            let number = self.accesses;
            self.fail(&format!("access {number} (block {}): returned {broken}", block.0));
            return stay;
        }
        if let Verdict::Admit { evicted } = verdict {
            evicted.map(|evicted| self.take(evicted));
            self.resident[block.index()] = true;
            self.held += 1;
        }
        verdict
    }

    fn contains(&self, block: BlockId) -> bool {
        self.is_resident(block)
    }

    fn tracks(&self, _: BlockId) -> bool {
        true
    }

    fn len(&self) -> u32 {
        self.held
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.capacity = capacity_blocks;
        let mut given_up = Vec::new();
        if let Some(object) = self.object()
            && let Err(error) = object.resize(capacity_blocks, &mut given_up)
        {
            self.fail(&format!("`resize` to {capacity_blocks} blocks: {error}"));
        }
        self.give_up(&given_up, evicted);
    }

    fn remove(&mut self, block: BlockId) -> bool {
        if let Some(object) = self.object()
            && let Err(error) = object.remove(block)
        {
            self.fail(&format!("`remove` of block {}: {error}", block.0));
        }
        self.take(block)
    }

    fn reserve_ids(&mut self, count: usize) {
        self.resident.resize(count.max(self.resident.len()), false);
    }

    fn touch(&self, block: BlockId) {
        prefetch(&self.resident, block.index());
    }

    fn audit(&self) -> Result<(), String> {
        if self.held > self.capacity {
            return Err(format!("{} blocks in a cache of {}", self.held, self.capacity));
        }
        let found = self.resident_blocks().count();
        if found != self.held as usize {
            return Err(format!("{found} blocks resident, {} counted", self.held));
        }
        Ok(())
    }
}

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
