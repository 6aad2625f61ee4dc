//! The answer of `wa` (`wa.json`): write amplification of separations on a trace.
//!
//! Units: pages; a drive write is as many host pages as the drive has logical pages.

use crate::devices::DriveWork;
use crate::document::Written;
use crate::trace::DriveTenantFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The answer of `wa`: one drive under every scheme asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AmplificationAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Name of the stack.
    pub name: String,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes of a superblock.
    pub superblock_bytes: u64,
    /// Superblocks kept free for host writes.
    pub reserve_superblocks: u32,
    /// Logical pages of the drive.
    pub logical_pages: u32,
    /// Distinct pages that the trace writes.
    pub working_pages: u32,
    /// Most pages that hold data at one time.
    pub live_pages: u32,
    /// The capacity as it was asked for.
    pub capacity: String,
    /// Whether the drive is as large as the trace requires.
    pub scaled: bool,
    /// Pages that the load writes.
    pub load_pages: u64,
    /// Pages that the trace writes, replayed once.
    pub trace_pages: u64,
    /// Pages measured.
    pub user_pages: u64,
    /// Pages measured over logical pages, a ratio.
    pub drive_writes: f64,
    /// Whether the trace is replayed more than once.
    pub looped: bool,
    /// How often the trace is replayed.
    pub rounds: f64,
    /// The traces.
    pub tenants: Vec<DriveTenantFacts>,
    /// Which trainer made the models: `native`, its name, or `none` with a given model.
    pub trainer: String,
    /// The given model file; null without one.
    pub model: Option<GivenModel>,
    /// What a reader must know of the numbers.
    pub warnings: Vec<String>,
    /// Every scheme, by over-provisioning, separation and reclaim policy.
    pub cases: Vec<AmplificationCase>,
    /// Cases whose answers were kept from before. It is not written into the folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reused: Option<usize>,
}

/// A model file that was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GivenModel {
    /// Path of the file.
    pub file: String,
    /// Whether its weights are 8-bit integers.
    pub int8: bool,
    /// Notes of its training, by name.
    pub notes: BTreeMap<String, String>,
}

/// The drive under one scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AmplificationCase {
    /// Number of the case, from 0.
    pub case: usize,
    /// The separation with its settings.
    pub separation: String,
    /// The reclaim policy with its settings.
    pub reclaim: String,
    /// Over-provisioning, a ratio.
    pub op: f64,
    /// Whether the separation knows the future, so that it is a bound.
    pub bound: bool,
    /// Pages of a superblock.
    pub block_pages: u32,
    /// What the drive did.
    #[serde(flatten)]
    pub work: DriveWork,
    /// Whether repetition of the trace flatters the scheme.
    pub flattered: bool,
}
