//! A document of one call in its result folder.
//!
//! For: `mrc.json` and `plan.json`: nothing of another stack is replaced unless asked for, and a
//! document appears whole or not at all. Must never know: what a document says. Stacks are told
//! apart by their names and the names and trace files of their tenants.

use crate::store::write_document;
use crate::{ExperimentError, Spec};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where a document goes; nothing is written without a folder.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The result folder.
    pub folder: Option<&'a Path>,
    /// The document's file.
    pub file: &'static str,
}

impl Place<'_> {
    /// Makes the folder. Errors: a file is in its place, the document there is of another stack and
    /// `force` does not say to replace it, the operating system's.
    pub fn claim(&self, spec: &Spec, force: bool) -> Result<(), ExperimentError> {
        let Some(folder) = self.folder else { return Ok(()) };
        let refuse = |origin: &Path, message: String| {
            Err(ExperimentError::Spec { origin: origin.to_owned(), message })
        };
        if folder.is_file() {
            return refuse(folder, "found a file, expected a folder for results".to_owned());
        }
        let failure = |path: &Path, error: &std::io::Error| ExperimentError::Io {
            path: path.to_owned(),
            message: error.to_string(),
        };
        std::fs::create_dir_all(folder).map_err(|error| failure(folder, &error))?;
        let path = folder.join(self.file);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) if !force => bytes,
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failure(&path, &error)),
        };
        let expected = "expected another folder, or `force` to replace it";
        let Ok(document) = serde_json::from_slice::<Value>(&bytes) else {
            return refuse(&path, format!("found a file that is no result, {expected}"));
        };
        if whose(&document) == of(spec) {
            return Ok(());
        }
        let found = document["name"].as_str().unwrap_or("without a name");
        refuse(&path, format!("found the result of another stack (`{found}`), {expected}"))
    }

    /// Writes the document.
    pub fn write(&self, document: &Value) -> Result<(), ExperimentError> {
        match self.folder {
            Some(folder) => write_document(&folder.join(self.file), document),
            None => Ok(()),
        }
    }
}

/// A stack's name, and the names and trace files of its tenants.
type Whose = (Option<String>, Vec<(String, Option<PathBuf>)>);

fn of(spec: &Spec) -> Whose {
    let file = |path: &Path| path.file_name().map(PathBuf::from);
    let tenant = |tenant: &crate::spec::TenantSpec| (tenant.name.clone(), file(&tenant.path));
    (Some(spec.name.clone()), spec.tenants.iter().map(tenant).collect())
}

fn whose(document: &Value) -> Whose {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let tenants = document["spec"]["tenant"].as_array().into_iter().flatten();
    let tenant = |tenant: &Value| {
        let trace = text(&tenant["trace"]).unwrap_or_default();
        (
            text(&tenant["name"]).unwrap_or_default(),
            Path::new(&trace).file_name().map(PathBuf::from),
        )
    };
    (text(&document["name"]), tenants.map(tenant).collect())
}
