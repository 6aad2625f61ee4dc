//! A result folder: whose results it holds, and the document of one call.
//!
//! For: `mrc.json`, `plan.json`, and refusing to replace the result of another stack. A document
//! appears whole or not at all. Must never know: what a result says beside its name and tenants.
//! Two stacks are the same if their names, their tenants' names and the file names of their traces
//! are: other settings are other cases of one stack.

use crate::part::PartialFile;
use crate::{ExperimentError, Spec, json};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The document of a folder of `run` and `compare`.
pub const RESULT: &str = "result.json";
/// Tenants that a message names.
const NAMED: usize = 4;

/// What of a document says whose it is.
#[derive(Debug, Deserialize)]
struct Document {
    name: String,
    spec: Tenants,
}

#[derive(Debug, Deserialize)]
struct Tenants {
    tenant: Vec<OwnedTrace>,
}

#[derive(Debug, PartialEq, Eq)]
struct FolderOwner {
    name: String,
    tenants: Vec<OwnedTrace>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
struct OwnedTrace {
    name: String,
    trace: String,
}

impl FolderOwner {
    fn new(spec: &Spec) -> FolderOwner {
        let tenants = spec
            .tenants
            .iter()
            .map(|tenant| OwnedTrace { name: tenant.name.clone(), trace: tenant.trace.clone() });
        FolderOwner { name: spec.name.clone(), tenants: tenants.collect() }
    }

    fn is(&self, other: &FolderOwner) -> bool {
        let file = |trace: &str| Path::new(trace).file_name().map(ToOwned::to_owned);
        let alike = |(a, b): (&OwnedTrace, &OwnedTrace)| {
            a.name == b.name && file(&a.trace) == file(&b.trace)
        };
        self.name == other.name
            && self.tenants.len() == other.tenants.len()
            && self.tenants.iter().zip(&other.tenants).all(alike)
    }

    fn text(&self) -> String {
        let tenant = |tenant: &OwnedTrace| format!("{} from {}", tenant.name, tenant.trace);
        let named: Vec<String> = self.tenants.iter().take(NAMED).map(tenant).collect();
        let more = match self.tenants.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("`{}` ({}{more})", self.name, named.join(", "))
    }
}

/// Refuses a folder whose `document` is of another stack or of something else; `option` replaces
/// it.
pub fn check_owner(
    out: &Path,
    document: &str,
    spec: &Spec,
    option: &str,
) -> Result<(), ExperimentError> {
    let path = out.join(document);
    let refuse = |message| Err(ExperimentError::spec(out, message));
    if !path.is_file() {
        return Ok(());
    }
    let bytes = std::fs::read(&path).map_err(|error| ExperimentError::io(&path, error))?;
    let found = serde_json::from_slice::<Document>(&bytes).ok();
    let found = found.map(|found| FolderOwner { name: found.name, tenants: found.spec.tenant });
    let ours = FolderOwner::new(spec);
    let expected = format!(
        "expected that of {}; name another folder, or replace it with `{option}`",
        ours.text()
    );
    match found {
        Some(found) if found.is(&ours) => Ok(()),
        Some(found) => refuse(format!("found the result of {}, {expected}", found.text())),
        None => refuse(format!("found a `{document}` that is no result, {expected}")),
    }
}

/// Where a document goes; nothing is written without a folder.
#[derive(Clone, Copy, Debug)]
pub struct DocumentPlace<'a> {
    /// The result folder.
    pub folder: Option<&'a Path>,
    /// The document's file.
    pub file: &'static str,
}

impl DocumentPlace<'_> {
    /// Makes the folder. Errors: a file is in its place, the document there is of another stack and
    /// `force` does not say to replace it, the operating system's.
    pub fn claim(&self, spec: &Spec, force: bool) -> Result<(), ExperimentError> {
        let Some(folder) = self.folder else { return Ok(()) };
        make_folder(folder, folder)?;
        if force { Ok(()) } else { check_owner(folder, self.file, spec, "--force") }
    }

    /// Writes the document.
    pub fn write(&self, document: &impl Serialize) -> Result<(), ExperimentError> {
        self.folder.map_or(Ok(()), |folder| write_document(&folder.join(self.file), document))
    }
}

/// Makes a folder of the results in `out`. Errors: a file is in its place, the operating system's.
pub fn make_folder(out: &Path, folder: &Path) -> Result<(), ExperimentError> {
    if out.is_file() {
        return Err(ExperimentError::spec(out, "found a file, expected a folder for results"));
    }
    std::fs::create_dir_all(folder).map_err(|error| ExperimentError::io(folder, error))
}

/// Writes a document for people and programs; it appears whole or not at all.
pub fn write_document(path: &Path, document: &impl Serialize) -> Result<(), ExperimentError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| ExperimentError::io(folder, error))?;
    }
    write_whole(path, &json::page(document)?)
}

pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), ExperimentError> {
    let part = PartialFile::new(path);
    std::fs::write(part.path(), text).map_err(|error| part.failure(&error))?;
    part.finish()
}
